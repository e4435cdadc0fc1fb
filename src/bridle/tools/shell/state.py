"""What the shell of a session remembers between commands.

Its temporary folder, its jobs in the background and the guarded files of the workspace. It is kept
in the memory that a session gives to its tools, and closed with the session. The current folder is
in the same memory.
"""

import fcntl
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
from bridle.tools.shell.jobs import Jobs, jobs_of
from bridle.tools.thread_pool import in_thread
from bridle.tools.workspace_files import workspace_of
from bridle.workspace.fs import is_below, private_folder
from bridle.workspace.git.objects import current_commits
from bridle.workspace.process.command import clean_environment
from bridle.workspace.protected_files import Restoration
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.text import one_line

_KEY = "shell"
_FIRST_HANDLE = 100  # for the report of the folder: above the handles that scripts use
_MAX_PATH = 4096
_MAX_NAMED = 5  # files
_NO_ACCESS = Access()


class ShellState:
    """The state of one session's shell.

    `origin` is the id of the session that this one was started for, directly or through others, or
    its own id; `folder` is the folder of that session, empty if it has none.
    """

    def __init__(
        self,
        roots: Sequence[str],
        sandbox: Sandbox | None,
        *,
        origin: str = "",
        folder: str = "",
        jobs: Jobs | None = None,
    ) -> None:
        state = sandbox.state if sandbox is not None else ""
        self._guarded = [guarded_root(root, state) for root in roots]
        self._roots = tuple(guarded.root for guarded in self._guarded)
        self._origin = origin
        self._folder = folder
        self._commits: Mapping[str, Sequence[str]] | None = None
        self._explained_unreadable = False
        self.jobs = jobs if jobs is not None else Jobs()
        self.temp = sandbox.temp if sandbox is not None else private_folder(self)

    async def begin(
        self, access: Access = _NO_ACCESS, *, level: str = "none", free: bool = False
    ) -> Run:
        """Take note of the guarded files before a command. Undo what jobs did to them meanwhile."""
        run = Run(access=access, roots=self._roots, level=level, is_free=free)
        try:
            await in_thread(self._begin, run)
        except BaseException:
            run.is_over = True
            raise
        return run

    def _begin(self, run: Run) -> None:
        if self._commits is None:
            self._commits = _commits_before(self._origin, self._folder, self._roots)
        run.commits = self._commits
        for guarded in self._guarded:
            run.changed = run.changed.plus(self._with_paths(guarded.root, guarded.begin(run)))

    def end(self, run: Run) -> Restoration:
        """Restore the guarded files that a command has changed without permission."""
        restored = Restoration()
        for guarded in self._guarded:
            restored = restored.plus(self._with_paths(guarded.root, guarded.end(run)))
        return restored

    def _with_paths(self, root: str, restored: Restoration) -> Restoration:
        """Make the names absolute, except those in the first folder of the workspace."""
        if root == self._roots[0]:
            return restored
        parts = (
            tuple(name if name.startswith("/") else f"{root}/{name}" for name in part)
            for part in restored
        )
        return Restoration(*parts)

    def explain(self, run: Run, output: str, failed: bool) -> str:
        """Say which guarded files the command could not read or change, if that may matter.

        Unreadable ones are mentioned once in any case: many programs ignore them silently.
        """
        prefix = f"{self._roots[0]}/"
        unreadable, unwritable = (
            [one_line(path.removeprefix(prefix), 200) for path in paths]
            for paths in (run.unreadable, run.unwritable)
        )
        notes = []
        named = [path for path in unreadable if path.rpartition("/")[2] in output]
        is_first = unreadable and not self._explained_unreadable
        if (named and failed) or ((named or failed) and is_first):
            self._explained_unreadable = True
            paths = named or unreadable
            notes.append(
                f"commands cannot read {_join(paths)}, because it holds "
                f"credentials. If it is needed, ask the person for the rule `allow: "
                f"read({paths[0]})`; a command that names the file, such as cat, needs approval"
            )
        named = [path for path in unwritable if path.rpartition("/")[2] in output]
        if named and failed:
            notes.append(
                f"commands cannot change {_join(named)}, because it runs by itself. "
                "Use write or edit; a person is asked"
            )
        return ". ".join(notes)

    @property
    def is_at_work(self) -> bool:
        """Whether a job is running."""
        return bool(self.jobs.running_jobs)

    async def close(self) -> None:
        """Stop the jobs, and remove what was kept about guarded files."""
        await self.jobs.close()
        for guarded in self._guarded:
            guarded.discard_backups()

    def environment(self, *, is_confined: bool) -> dict[str, str]:
        """Return the environment of a command, with caches in a folder that it can write to."""
        environment = {**clean_environment(), "TMPDIR": self.temp}
        if is_confined:
            environment["GOCACHE"] = f"{self.temp}/go-build"
            environment["npm_config_cache"] = f"{self.temp}/npm"
        return environment


def _join(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more


def state_of(context: ToolContext[Any], sandbox: Sandbox | None) -> ShellState:
    """Return the state of this session's shell, which is made on first use."""
    state = context.memory.get(_KEY)
    if not isinstance(state, ShellState):
        folder = context.folder
        if folder and context.origin:
            folder = str(Path(folder).with_name(context.origin))
        state = context.memory[_KEY] = ShellState(
            workspace_of(context.workspace).roots,
            sandbox,
            origin=context.origin or context.session_id,
            folder=folder,
            jobs=jobs_of(context),
        )
        context.at_close(state.close)
    return state


# --- commits from before the first command ---

_COMMITS_FILE = "git-commits.json"
_MAX_REMEMBERED = 256
_Commits = dict[str, tuple[str, ...]]
_commits_lock = threading.Lock()
_commits_in_memory: dict[str, _Commits] = {}  # by origin, of sessions without a folder


def _commits_before(origin: str, folder: str, roots: Sequence[str]) -> _Commits:
    """Return which commits the refs of each root led to before the first command.

    They are kept in the session's folder, for when it is resumed. Subagents use those of the
    session that they were started for.
    """
    file = Path(folder, _COMMITS_FILE)
    with _commits_lock:
        known = dict(_commits_in_memory.get(origin, {}))
        with suppress(OSError, msgspec.MsgspecError):
            known |= msgspec.json.decode(file.read_bytes() if folder else b"{}", type=_Commits)
        missing = [root for root in roots if root not in known]
        known |= {root: current_commits(root, roots) for root in missing}
        if folder and missing:
            with suppress(OSError, UnicodeError):
                file.write_bytes(msgspec.json.encode(known))
        elif origin and missing:
            _commits_in_memory[origin] = known
            for oldest in list(_commits_in_memory)[:-_MAX_REMEMBERED]:
                del _commits_in_memory[oldest]
    return known


# --- the current folder ---


def current_folder(context: ToolContext[Any]) -> str:
    """Return where the next command starts. Raise `ToolError` if that folder is gone."""
    root = context.workspace.root
    cwd = context.memory.get(CWD, root)
    if not isinstance(cwd, str) or not _is_folder_inside(cwd, root):
        context.memory.pop(CWD, None)
        raise ToolError(
            "Not run: the folder in which the last command ended is gone. "
            "The next command starts in the workspace's folder."
        )
    return cwd


def remember_folder(context: ToolContext[Any], folder: str) -> str:
    """Remember where a command ended, if it reported that. Return a note if it has changed."""
    root = context.workspace.root
    if not folder or folder == context.memory.get(CWD, root):
        return ""
    if _is_folder_inside(folder, root):
        context.memory[CWD] = folder
        return f"the next command starts in {one_line(os.path.relpath(folder, root), 200)}"
    context.memory.pop(CWD, None)
    return "it ended outside the workspace; the next command starts in the workspace's folder"


def _is_folder_inside(path: str, root: str) -> bool:
    real = os.path.realpath(path)
    return is_below(real, root) and real == path and Path(real).is_dir()


class FolderReport:
    """A handle through which bash reports at its end in which folder it is."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.handle = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _FIRST_HANDLE)
        os.close(writer)

    def __enter__(self) -> "FolderReport":
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._reader)
        os.close(self.handle)

    def bash_arguments(self, command: str) -> list[str]:
        """Return the arguments of bash with which it runs this command and reports."""
        trap = f"trap 'pwd -P 2>/dev/null >&{self.handle}' EXIT"
        script = f'{trap}; __command=$1; shift; eval -- "$__command"'
        return ["--noprofile", "--norc", "-c", script, "bash", command]

    def folder(self) -> str:
        """Return the folder, empty if none was reported."""
        with suppress(OSError):
            report = os.read(self._reader, _MAX_PATH + 1)
            if report.endswith(b"\n") and report.startswith(b"/"):
                return os.fsdecode(report[:-1])
        return ""
