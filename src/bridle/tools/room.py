"""What the shell of one session remembers between its commands.

The folder in which the last one ended, the temporary folder, the protected files, the jobs in the
background. Lives in the memory that a session hands to its tools, and is closed with it.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from bridle.errors import ToolError
from bridle.protocols.tool import CWD, Access, ToolContext
from bridle.tools.guarded_root import Run, guarded_root
from bridle.tools.jobs import Jobs
from bridle.tools.threads import in_thread
from bridle.workspace.fs import is_below
from bridle.workspace.git_objects import commits_now
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.temporary import private_folder
from bridle.workspace.text import one_line
from bridle.workspace.watched import Mended

_ROOM = "shell"
_HIGH = 100  # the report comes through a handle above those that scripts use
_LONGEST = 4096


_NONE = Access()
_SHOWN = 5  # files that are named
_COMMITS = "git-commits.json"
_Commits = dict[str, tuple[str, ...]]
_reading_commits = threading.Lock()
_without_folder: dict[str, _Commits] = {}  # of families whose sessions are not on disk
_MOST_FAMILIES = 256


class Room:
    """The shell's own things in one session.

    `family` is the id of the session that it was begun for, directly or through others, or its own
    id; `folder` is the folder of that session, empty if there is none.
    """

    def __init__(
        self,
        roots: Sequence[str],
        sandbox: Sandbox | None,
        family: str = "",
        folder: str = "",
    ) -> None:
        state = sandbox.state if sandbox is not None else ""
        self._guarded = [guarded_root(root, state) for root in roots]
        self._roots = tuple(guarded.root for guarded in self._guarded)
        self._family = family
        self._folder = folder
        self._commits: Mapping[str, Sequence[str]] | None = None
        self.has_told = False  # the model knows which files commands cannot read
        self.jobs = Jobs()
        self.temp = sandbox.temp if sandbox is not None else private_folder(self)

    async def begin(
        self, access: Access = _NONE, *, level: str = "none", free: bool = False
    ) -> Run:
        """Note what guarded files hold, before a command. What a job did to them is put back."""
        run = Run(access=access, roots=self._roots, level=level, is_free=free)
        try:
            await in_thread(self._begin, run)
        except BaseException:
            run.is_over = True
            raise
        return run

    def _begin(self, run: Run) -> None:
        if self._commits is None:
            self._commits = _commits_before(self._family, self._folder, self._roots)
        run.commits = self._commits
        for guarded in self._guarded:
            run.changed = run.changed.and_then(self._named(guarded.root, guarded.begin(run)))

    def end(self, run: Run) -> Mended:
        """A command has ended: put back what it did to guarded files."""
        found = Mended()
        for guarded in self._guarded:
            found = found.and_then(self._named(guarded.root, guarded.end(run)))
        return found

    def _named(self, root: str, found: Mended) -> Mended:
        """What is not in the first folder is named by its whole path."""
        if root == self._roots[0]:
            return found
        parts = (
            tuple(name if name.startswith("/") else f"{root}/{name}" for name in part)
            for part in found
        )
        return Mended(*parts)

    def explain(self, run: Run, output: str, failed: bool) -> str:
        """Why guarded files could not be read or changed, if that may have been in the way.

        That some cannot be read is said once in any case, for many programs do not say it.
        """
        unreadable, unwritable = map(self._shown, (run.unreadable, run.unwritable))
        notes = []
        named = [path for path in unreadable if path.rpartition("/")[2] in output]
        if (named and failed) or ((named or failed) and unreadable and not self.has_told):
            self.has_told = True
            first = (named or unreadable)[0]
            notes.append(
                f"commands cannot read {_list(named or unreadable)}, because it holds "
                f"credentials. If it is needed, ask the person for the rule `allow: "
                f"read({first})`; a command that names the file, such as cat, needs approval"
            )
        named = [path for path in unwritable if path.rpartition("/")[2] in output]
        if named and failed:
            notes.append(
                f"commands cannot change {_list(named)}, because it runs by itself. "
                "Use write or edit; a person is asked"
            )
        return ". ".join(notes)

    def _shown(self, paths: Sequence[str]) -> list[str]:
        first = f"{self._roots[0]}/"
        return [one_line(path.removeprefix(first), 200) for path in paths]

    @property
    def is_at_work(self) -> bool:
        """Does something run in the background?"""
        return bool(self.jobs.running)

    async def close(self) -> None:
        """End what runs in the background."""
        await self.jobs.close()
        for guarded in self._guarded:
            guarded.rest()

    def environment(self, confined: bool) -> dict[str, str]:
        """What a command may know. Caches that it has to write lie in its own folder."""
        found = {**clean_environment(), "TMPDIR": self.temp}
        if confined:
            found |= {"GOCACHE": f"{self.temp}/go-build", "npm_config_cache": f"{self.temp}/npm"}
        return found


def _commits_before(family: str, folder: str, roots: Sequence[str]) -> _Commits:
    """What the refs of each root led to before the first command of a family of sessions.

    They are kept in the session's folder, for when it is resumed.
    """
    file = Path(folder, _COMMITS)
    with _reading_commits:
        known = dict(_without_folder.get(family, {}))
        with suppress(OSError, msgspec.MsgspecError):
            known |= msgspec.json.decode(file.read_bytes() if folder else b"{}", type=_Commits)
        missing = [root for root in roots if root not in known]
        known |= {root: commits_now(root, roots) for root in missing}
        if folder and missing:
            with suppress(OSError, UnicodeError):
                file.write_bytes(msgspec.json.encode(known))
        elif family and missing:
            _without_folder[family] = known
            for old in list(_without_folder)[:-_MOST_FAMILIES]:
                del _without_folder[old]
    return known


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def room_of(context: ToolContext[Any], sandbox: Sandbox | None) -> Room:
    """The room of this session, made when it is first needed."""
    room = context.memory.get(_ROOM)
    if not isinstance(room, Room):
        roots = getattr(context.workspace, "roots", (context.workspace.root,))
        folder = context.folder
        if folder and context.origin:
            folder = str(Path(folder).with_name(context.origin))
        family = context.origin or context.session_id
        room = context.memory[_ROOM] = Room(roots, sandbox, family, folder)
        context.at_close(room.close)
    return room


def jobs_of(context: ToolContext[Any]) -> Jobs:
    """The jobs of this session; none where no command was run yet."""
    room = context.memory.get(_ROOM)
    return room.jobs if isinstance(room, Room) else Jobs()


def cwd_of(context: ToolContext[Any]) -> str:
    """Where the next command starts. Raise `ToolError` where that folder is gone."""
    root = context.workspace.root
    cwd = context.memory.get(CWD, root)
    if not isinstance(cwd, str) or not _is_inside(cwd, root):
        context.memory.pop(CWD, None)
        raise ToolError(
            "Not run: the folder in which the last command ended is gone. "
            "The next command starts in the workspace's folder."
        )
    return cwd


class Whereabouts:
    """A handle through which the shell says, at its end, in which folder it is."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        import fcntl

        self.handle = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(writer)

    def __enter__(self) -> "Whereabouts":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reader)
        os.close(self.handle)

    def words(self, command: str) -> list[str]:
        """The words after `bash` that run this command, and report."""
        trap = f"trap 'pwd -P 2>/dev/null >&{self.handle}' EXIT"
        script = f'{trap}; __command=$1; shift; eval -- "$__command"'
        return ["--noprofile", "--norc", "-c", script, "bash", command]

    def heard(self) -> str:
        """The folder that was said; empty when nothing was."""
        with suppress(OSError):
            said = os.read(self._reader, _LONGEST + 1)
            if said.endswith(b"\n") and said.startswith(b"/"):
                return os.fsdecode(said[:-1])
        return ""


def remember(context: ToolContext[Any], said: str) -> str:
    """Keep the folder in which a command ended; a word where it is not inside the workspace."""
    root = context.workspace.root
    if not said or said == context.memory.get(CWD, root):
        return ""
    if _is_inside(said, root):
        context.memory[CWD] = said
        return f"the next command starts in {one_line(os.path.relpath(said, root), 200)}"
    context.memory.pop(CWD, None)
    return "it ended outside the workspace; the next command starts in the workspace's folder"


def _is_inside(path: str, root: str) -> bool:
    real = os.path.realpath(path)
    return is_below(real, root) and real == path and Path(real).is_dir()
