"""What the shell of one session remembers between its commands.

The folder in which the last one ended, the temporary folder, the protected files, the jobs in the
background. Lives in the memory that a session hands to its tools, and is closed with it.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.promises.tool import CHANGED, CWD, Access, ToolContext
from bridle.tools.jobs import Job, Jobs
from bridle.tools.threads import in_thread
from bridle.workspace.elsewhere import OF_WORKTREE, elsewhere
from bridle.workspace.git_objects import has_blob
from bridle.workspace.git_paths import GitConfiguration
from bridle.workspace.guarded_files import Guarded, GuardedFiles
from bridle.workspace.keepsake import Keepsake
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.taming import Tamed
from bridle.workspace.temporary import private_folder
from bridle.workspace.text import one_line
from bridle.workspace.watched import NAMES, Mended, Watched

_ROOM = "shell"
_HIGH = 100  # the report comes through a handle above those that scripts use
_LONGEST = 4096


_NONE = Access()
_SHOWN = 5  # files that are named
_MOST_HIDDEN, _MOST_CLOSED = 300, 100  # files of the workspace that bubblewrap covers
_MOST_REPOSITORIES = 200  # inside a folder of the workspace, those of earlier commands too


class Run(NamedTuple):
    """One command while it runs: what it may use, and which guarded files it cannot.

    `changed` is what was put back before it began, done by a job in the background.
    """

    access: Access
    unreadable: tuple[str, ...] = ()
    unwritable: tuple[str, ...] = ()
    is_free: bool = False  # a person let it run outside of the sandbox
    changed: Mended = Mended()


class Room:
    """The shell's own things in one session. `memory` is the session's, for all of its tools."""

    def __init__(
        self,
        roots: Sequence[str],
        sandbox: Sandbox | None,
        memory: dict[str, Any] | None = None,
    ) -> None:
        self._memory = {} if memory is None else memory
        self._runs: list[Run] = []
        self._began = time.time_ns()
        self.has_told = False  # the model knows which files commands cannot read
        state = sandbox.state if sandbox is not None else ""
        home = os.path.expanduser("~")  # noqa: PTH111 - a string is wanted
        self._git = [GitConfiguration(os.path.realpath(root), home) for root in roots]
        self._guarded = [
            GuardedFiles(os.path.realpath(root), git)
            for root, git in zip(roots, self._git, strict=True)
        ]
        places: list[tuple[str, Sequence[str]]] = [
            (root, _protected(git, root)) for root, git in zip(roots, self._git, strict=True)
        ]
        places += [(own, OF_WORKTREE) for root in roots if (own := elsewhere(root).own)]
        self._watched = [
            Watched(place, names, keepsake=Keepsake(state, place) if state else None)
            for place, names in places
        ]
        self._is_new = True
        self._tamed = [Tamed(os.path.realpath(root), home) for root in roots]
        self.jobs = Jobs()
        self.temp = sandbox.temp if sandbox is not None else private_folder(self)

    async def begin(
        self, access: Access = _NONE, *, level: str = "none", free: bool = False
    ) -> Run:
        """Note what protected files hold, before a command. What a job did to them is put back."""
        if not self.jobs.running:
            self._runs.clear()
            self._memory.pop(CHANGED, None)
        run = await in_thread(partial(self._prepared, access, level))
        run = run._replace(is_free=free)
        self._runs.append(run)
        return run

    def _prepared(self, access: Access, level: str) -> Run:
        has_jobs = bool(self.jobs.running)
        changed = self.mend() if has_jobs else Mended()
        found = [(guarded.root, guarded.look()) for guarded in self._guarded]
        if not has_jobs:
            changed = self._look()
        run = Run(access, changed=changed)
        if level == "bubblewrap":
            run = run._replace(
                unreadable=tuple(_oldest(self._unreadable(found, access))),
                unwritable=tuple(self._unwritable(found, access))[:_MOST_CLOSED],
            )
        return run

    def _unreadable(self, found: list[tuple[str, Guarded]], access: Access) -> list[str]:
        return [
            f"{root}/{path}"
            for root, guarded in found
            for path in dict.fromkeys(guarded.credentials)
            if not access.reads(self._named(root, path))
        ]

    def _unwritable(self, found: list[tuple[str, Guarded]], access: Access) -> list[str]:
        """None where git is at work: it could not leave half of its files as they are."""
        if access.git:
            return []
        return [
            f"{root}/{path}"
            for root, guarded in found
            for path in guarded.autorun
            if not access.writes(self._named(root, path))
        ]

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
        first = f"{self._guarded[0].root}/"
        return [one_line(path.removeprefix(first), 200) for path in paths]

    def _named(self, root: str, path: str) -> str:
        """A path as the gate names it: from the first folder of the workspace, or whole."""
        return path if root == self._guarded[0].root else f"{root}/{path}"

    def _look(self) -> Mended:
        found = self._recover() if self._is_new else Mended()
        self._is_new = False
        for watched, git, guarded in zip(
            self._watched, self._git, self._guarded, strict=False
        ):  # the worktrees' come after
            watched.names = _protected(git, watched.root)
            seen = dict.fromkeys((*watched.repositories, *guarded.repositories))
            watched.repositories = tuple(seen)[:_MOST_REPOSITORIES]
        for watched in self._watched:
            watched.look()
        for tamed in self._tamed:
            tamed.look()
        return found

    def _recover(self) -> Mended:
        """What was under way when a bridle was killed here is mended now."""
        found = self._together([watched.recover() for watched in self._watched])
        said = "(changed when bridle was last ended here; what stood there is beside it)"
        return Mended(*(tuple(f"{name} {said}" for name in part) for part in found[:2]))

    def end(self, run: Run, job: Job | None = None) -> Mended:
        """A command has ended: put back what it did to protected files."""
        found = self.mend(job)
        if run in self._runs:
            self._runs.remove(run)
        return found

    def mend(self, ended: Job | None = None) -> Mended:
        """Put back what was done to protected files, and tame what was made wild."""
        found = self._together([watched.mend() for watched in self._watched])
        undone = [name for guarded in self._guarded for name in self._restored(guarded)]
        found = found.and_then(Mended(undone=tuple(undone)))
        for tamed in self._tamed:
            found = found.and_then(tamed.mend())
        if all(job is ended for job in self.jobs.running):
            for watched in self._watched:
                watched.rest()
        return found

    def _restored(self, guarded: GuardedFiles) -> list[str]:
        """What runs by itself and was changed without permission is as it was."""
        root, runs = guarded.root, tuple(self._runs)
        if any(run.is_free for run in runs):
            return []
        by_tools = self._memory.get(CHANGED, ())
        git = {run.access.git for run in runs}

        def allowed(path: str) -> bool:
            named = self._named(root, path)
            return named in by_tools or any(run.access.writes(named) for run in runs)

        def is_mounted(path: str) -> bool:
            return all(f"{root}/{path}" in run.unwritable for run in runs)

        def from_git(path: str, data: bytes) -> bool:
            return has_blob(root, path, data, None if "any" in git else self._began)

        done = guarded.restore(allowed, is_mounted, from_git if git - {""} else None)
        return [self._named(root, one) for one in done]

    def _together(self, parts: list[Mended]) -> Mended:
        """All of it. What is not in the workspace's own folder is named by its whole path."""
        found = parts[0]
        for watched, part in zip(self._watched[1:], parts[1:], strict=True):
            names = (tuple(f"{watched.root}/{one}" for one in some) for some in part[:2])
            found = found.and_then(Mended(*names))
        return found

    @property
    def is_at_work(self) -> bool:
        """Does something run in the background?"""
        return bool(self.jobs.running)

    async def close(self) -> None:
        """End what runs in the background."""
        await self.jobs.close()
        for watched in self._watched:
            watched.rest()

    def environment(self, confined: bool) -> dict[str, str]:
        """What a command may know. Caches that it has to write lie in its own folder."""
        found = {**clean_environment(), "TMPDIR": self.temp}
        if confined:
            found |= {"GOCACHE": f"{self.temp}/go-build", "npm_config_cache": f"{self.temp}/npm"}
        return found


def _protected(git: GitConfiguration, root: str) -> tuple[str, ...]:
    """The names in a root that no command may change, and what git's configuration leads to."""
    return (*NAMES, *git.paths.files_in(os.path.realpath(root)))


def _oldest(paths: list[str]) -> list[str]:
    """As many as can be hidden: the ones not changed for the longest time.

    A command can make any number of files with such names, but none that is older.
    """
    if len(paths) <= _MOST_HIDDEN:
        return paths
    return sorted(paths, key=_changed)[:_MOST_HIDDEN]


def _changed(path: str) -> int:
    with suppress(OSError):
        return Path(path).lstat().st_ctime_ns
    return 0


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def room_of(context: ToolContext[Any], sandbox: Sandbox | None) -> Room:
    """The room of this session, made when it is first needed."""
    room = context.memory.get(_ROOM)
    if not isinstance(room, Room):
        roots = getattr(context.workspace, "roots", (context.workspace.root,))
        room = context.memory[_ROOM] = Room(roots, sandbox, context.memory)
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
    within = real == root or real.startswith(root.rstrip("/") + "/")
    return within and real == path and Path(real).is_dir()
