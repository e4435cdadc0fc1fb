"""`--worktree`: a session with files of its own; and the word that another works on the same ones.

The worktrees lie in the state folder. What was trusted of the repository's files is trusted of the
same files there: a rule that forbids something forbids it in both.
"""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.failure import complain
from bridle.errors import AgentError
from bridle.stores.reader import SessionFolder

if TYPE_CHECKING:
    from bridle.stores.session_index import ActiveSession

_FOLDER = "worktrees"


def with_worktree(
    flags: dict[str, Any], state: str | os.PathLike[str], here: Callable[[], Path]
) -> dict[str, Any]:
    """The flags with the worktree as the workspace, where one was asked for. `ConfigError`."""
    name = flags.get("worktree")
    if name is None:
        return flags
    if len(name.split()) > 1:
        raise click.UsageError(
            "the words behind --worktree were taken for its name\n"
            "Put the prompt before it, or name it: --worktree=NAME."
        )
    root = Path(flags.get("workspace") or here())
    name = name or f"{time.strftime('%m%d-%H%M')}-{secrets.token_hex(2)}"
    return {**flags, "workspace": str(_entered(root, name, Path(state)))}


def _entered(root: Path, name: str, state: Path) -> Path:
    """The folder to work in: of the worktree that there is, or of one that is made."""
    from bridle.workspace.git.worktree import add_worktree, checked, list_worktrees

    folder = state / _FOLDER
    if os.path.lexists(folder / name):
        for one in list_worktrees(root, folder=folder):
            if one.name == name:
                return Path(checked(one).root)
    made = Path(add_worktree(root, name, folder=folder).root)
    _carry_trust(root, made, state)
    return made


def _carry_trust(root: Path, made: Path, state: Path) -> None:
    """What the person has trusted word for word in the one folder counts in the other."""
    from bridle.config.trust import Trust

    trust = Trust(state)
    trusted = {one.name: one.data for one in trust.files(root) if one.trusted}
    same = tuple(one for one in trust.files(made) if trusted.get(one.name) == one.data)
    if same:
        trust.grant(made, same)


def words_of(workspace: Path, state: str | os.PathLike[str]) -> str:
    """Where a session with a worktree works, and how its changes come back; empty for others."""
    above = Path(os.path.realpath(state), _FOLDER)
    try:
        name = Path(os.path.realpath(workspace)).relative_to(above).parts[0]
    except (ValueError, IndexError):
        return ""
    return (
        f"working in {workspace}, a worktree on the branch bridle/{name}; "
        f"what is committed there comes back with: git merge bridle/{name}"
    )


class Beside:
    """Looks for other sessions on the same files while the rest starts, and tells of them.

    In a thread: the first look at the system's list of locks waits for the kernel, 10 ms or so.
    """

    def __init__(self, folder: SessionFolder, workspace: Path, besides: str) -> None:
        self._found: list[ActiveSession] = []
        self._looking: Thread | None = None
        if (folder.folder / "sessions").is_dir():
            looked = (folder, str(workspace), besides)
            self._looking = Thread(target=self._look, args=looked, daemon=True)
            self._looking.start()

    def _look(self, folder: SessionFolder, workspace: str, besides: str) -> None:
        from bridle.stores.session_index import active_sessions

        with suppress(AgentError, OSError):
            self._found = active_sessions(folder.folder, workspace, besides)

    def tell(self) -> None:
        """Say so, once, where another process works on the same files."""
        looking, self._looking = self._looking, None
        if looking is None:
            return
        looking.join()
        if found := self._found:
            first, more = found[0], f" and {len(found) - 1} more" if len(found) > 1 else ""
            complain(
                f"another session works in this folder, {first.session_id} ({first.owner}){more}; "
                "--worktree gives this one files of its own"
            )
