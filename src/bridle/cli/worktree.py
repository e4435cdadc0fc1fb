"""`--worktree`, and the warning if another session works in the same folder.

Worktrees are in the state folder. A file that is trusted in the repository is trusted in them, too.
"""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from bridle.cli.exit_codes import complain
from bridle.errors import AgentError, UsageError
from bridle.stores.session_index import ActiveSession, active_sessions

_FOLDER = "worktrees"  # in the state folder


def open_worktree(root: Path, name: str, state: Path) -> Path:
    """Return the worktree of that name; create it if needed. Raise `ConfigError`.

    `root` is a folder of the repository.
    """
    from bridle.workspace.git.worktree import add_worktree, check_worktree, list_worktrees

    if len(name.split()) > 1:
        raise UsageError(
            "the text after --worktree is not a name",
            hint="Put the prompt before --worktree, or write --worktree=NAME.",
        )
    name = name or f"{time.strftime('%m%d-%H%M')}-{secrets.token_hex(2)}"
    folder = state / _FOLDER
    if os.path.lexists(folder / name):
        for tree in list_worktrees(root, folder=folder):
            if tree.name == name:
                return Path(check_worktree(tree).root)
    made = Path(add_worktree(root, name, folder=folder).root)
    _copy_trust(root, made, state)
    return made


def _copy_trust(root: Path, worktree: Path, state: Path) -> None:
    """Trust those files of the worktree whose content is trusted in the folder that it is of."""
    from bridle.config.trust import Trust

    trust = Trust(state)
    trusted = {file.name: file.data for file in trust.files(root) if file.trusted}
    same = tuple(file for file in trust.files(worktree) if trusted.get(file.name) == file.data)
    if same:
        trust.grant(worktree, same)


def worktree_note(workspace: Path, state: Path) -> str:
    """Return where a session with a worktree works, and how to merge it; empty without one."""
    worktrees = Path(os.path.realpath(state), _FOLDER)
    try:
        name = Path(os.path.realpath(workspace)).relative_to(worktrees).parts[0]
    except (ValueError, IndexError):
        return ""
    return (
        f"working in {workspace}, a worktree on the branch bridle/{name}; "
        f"to get what is committed there: git merge bridle/{name}"
    )


class OtherSessions:
    """Looks for sessions of other processes in a workspace while the rest starts.

    It uses a thread, because the first look at the system's list of locks takes about 10 ms.
    """

    def __init__(self, state: Path, workspace: Path, own_id: str) -> None:
        self._sessions: list[ActiveSession] = []
        self._thread: Thread | None = None
        if (state / "sessions").is_dir():
            arguments = (state, str(workspace), own_id)
            self._thread = Thread(target=self._find, args=arguments, daemon=True)
            self._thread.start()

    def _find(self, state: Path, workspace: str, own_id: str) -> None:
        with suppress(AgentError, OSError):
            self._sessions = active_sessions(state, workspace, own_id)

    def warn(self) -> None:
        """Warn, once, if there are any."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join()
        if sessions := self._sessions:
            first = sessions[0]
            more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
            complain(
                f"another session works in this folder, {first.session_id} ({first.owner}){more}; "
                "--worktree gives this session its own copy of the files"
            )
