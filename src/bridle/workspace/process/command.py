"""One command, run to its end together with everything it has started.

Output is handed on as it comes. Whatever ends the run (the command itself, the time limit, a
cancel, a reader who has had enough), every process is ended: TERM, a short grace, KILL. A shell
gets no TERM: it is stopped, so that it does not run the rest of its line, and killed at the end.
How this is done depends on what the command runs below:

- a supervisor (`workspace/supervise.py`), which is asked through its lifeline and ends everything
  also if bridle is killed;
- a process namespace of its own (bubblewrap), which ends with its first process;
- nothing (a search). Its process group is signalled before its first process is reaped, so that
  the group's number cannot belong to somebody else by then, and processes that left the group are
  looked for in /proc (`process_tree`).
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from bridle.errors import ToolError
from bridle.workspace.process.process_tree import ProcessTree
from bridle.workspace.process.supervised_process import GRACE, Lifeline
from bridle.workspace.programs import path_folders
from bridle.workspace.sandbox import Start

# The environment of a child process: a short list of harmless variables, and never a key.

INHERITED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
)


def clean_environment(roots: Sequence[str] = ()) -> dict[str, str]:
    """Return the part of our environment that a program may have.

    PATH keeps only absolute folders, and none inside `roots`: whatever a tool call may have
    written there must not be run by its name.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith("LC_")
    }
    if "PATH" in inherited:
        inherited["PATH"] = os.pathsep.join(path_folders(roots))
    plain_terminal = {
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return {**inherited, **plain_terminal}


_POLL = 0.02  # seconds between two looks at what is left
_DRAIN = 0.2  # seconds to wait for the last output of a command that has ended
_KILL_SECONDS = 3.0  # seconds that a supervisor has to kill everything
_CHUNK = 1 << 16

Starter = Callable[[Sequence[str], int], Start]
_Process = subprocess.Popen[bytes]


class ExitStatus(Struct, frozen=True):
    """How a command ended. `code` is None if it did not end by itself."""

    code: int | None
    timed_out: bool = False
    left_behind: bool = False  # something that it started still runs


class Command:
    """One run of a command.

    `take` gets the output as it comes and returns False if it wants no more. `starter` decides what
    is really executed, given the command and the lifeline of a supervisor. `handles` are file
    handles that the command inherits. `starts_nothing`: if it has ended by itself, its children are
    not looked for.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str,
        take: Callable[[bytes], bool],
        *,
        starter: Starter | None = None,
        handles: Sequence[int] = (),
        starts_nothing: bool = False,
    ) -> None:
        self._argv = argv
        self._cwd = cwd
        self._take = take
        self._starter = starter
        self._handles = tuple(handles)
        self._starts_nothing = starts_nothing
        self._lifeline: Lifeline | None = None
        self._kind: Literal["plain", "supervised", "namespace"] = "plain"
        self._tree = ProcessTree()
        self._is_enough = asyncio.Event()
        self._eof = asyncio.Event()

    async def run(self, seconds: float | None, environment: Mapping[str, str]) -> ExitStatus:
        """Start the command, and return when it and everything it has started have ended."""
        reader, writer = os.pipe()
        try:
            process = self._start(writer, environment)
        except BaseException:
            os.close(reader)
            self._close_lifeline()
            raise
        finally:
            os.close(writer)
        self._tree.leader = process.pid
        os.set_blocking(reader, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(reader, self._read, reader)
        by_itself = False
        try:
            status = await self._watch(process, seconds)
            by_itself = status.code is not None
            return status
        finally:
            self._kill(process, thorough=not by_itself)
            self._close_lifeline()
            loop.remove_reader(reader)
            os.close(reader)
            if process.returncode is None:
                threading.Thread(target=process.wait, name="bridle-reap", daemon=True).start()

    def _start(self, writer: int, environment: Mapping[str, str]) -> _Process:
        start: Start | None = None
        supervisor_end = -1
        try:
            if self._starter is not None:
                self._lifeline = Lifeline()
                supervisor_end = self._lifeline.supervisor_end
                start = self._starter(self._argv, supervisor_end)
            process = subprocess.Popen(
                [*self._argv] if start is None else start.argv,
                cwd=self._cwd,
                env=self._tree.with_mark(environment),
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
                pass_fds=(*(start.handles if start is not None else ()), *self._handles),
            )
        except (OSError, ValueError) as error:  # ValueError: NUL, or a lone surrogate
            raise ToolError(f"The command cannot be started: {error}.", error) from error
        finally:
            inherited = start.handles if start is not None else ()
            for handle in {supervisor_end, *inherited} - {-1}:
                os.close(handle)
        if start is not None:
            self._kind = "namespace" if start.has_namespace else "supervised"
        if self._kind == "namespace" and self._lifeline is not None:
            self._lifeline.begin()
        return process

    def _read(self, reader: int) -> None:
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(reader)
            self._eof.set()
        elif not self._is_enough.is_set() and not self._take(data):
            self._is_enough.set()

    async def _watch(self, process: _Process, seconds: float | None) -> ExitStatus:
        exited = asyncio.wrap_future(_exit_of(process.pid))
        enough = asyncio.ensure_future(self._is_enough.wait())
        by_itself = False
        try:
            await asyncio.wait((exited, enough), timeout=seconds, return_when="FIRST_COMPLETED")
            by_itself = exited.done()
        finally:
            enough.cancel()
            if not by_itself:  # too long, enough, or cancelled
                await self._stop(process, exited)
            exited.cancel()  # nobody waits any more; it may complete after the loop is closed
        left_behind = await self._end_group(process)
        return ExitStatus(
            process.wait() if by_itself else None,
            timed_out=not by_itself and not self._is_enough.is_set(),
            left_behind=left_behind,
        )

    async def _stop(self, process: _Process, exited: "asyncio.Future[None]") -> None:
        """Ask everything to end, wait a little, and have the rest killed."""
        self._ask_to_end(process)
        await self._wait_grace(exited)
        if self._kind == "supervised":
            self._close_lifeline()
            await asyncio.wait((exited,), timeout=_KILL_SECONDS)
        elif self._kind == "namespace":  # its first process is gone before its last
            _signal(process, signal.SIGKILL)
            await self._wait_for_eof(GRACE)

    async def _wait_grace(self, exited: "asyncio.Future[None]") -> None:
        """Wait until what was asked to end has ended, but not long."""
        if self._kind != "namespace":
            await asyncio.wait((exited,), timeout=GRACE)
            return
        for _ in range(round(GRACE / _POLL)):
            if exited.done() or not self._tree.has_work():
                return
            await asyncio.wait((exited,), timeout=_POLL)

    async def _end_group(self, process: _Process) -> bool:
        """End what the command left behind. Return whether something still holds the output."""
        quiet = await self._wait_for_eof(_DRAIN)
        if not quiet:
            self._ask_to_end(process)
            await self._wait_for_eof(GRACE)
        self._kill(process, thorough=not quiet)
        return not await self._wait_for_eof(GRACE)

    def _ask_to_end(self, process: _Process) -> None:
        if self._kind == "supervised":
            if self._lifeline is not None:
                self._lifeline.ask_to_end()
        elif self._kind == "namespace":  # its first process takes all others with it
            self._tree.ask_to_end()
        else:
            self._tree.send_signal(signal.SIGTERM)  # first: now it can be seen who started whom
            _signal(process, signal.SIGTERM)

    def _kill(self, process: _Process, *, thorough: bool) -> None:
        if process.returncode is not None:
            return
        if self._kind == "supervised" and not thorough and not _was_killed(process):
            return  # the supervisor has ended by itself, and so it has left nothing
        _signal(process, signal.SIGKILL)
        if self._kind != "namespace" and (thorough or not self._starts_nothing):
            self._tree.kill(thorough=thorough or self._kind == "supervised")

    def _close_lifeline(self) -> None:
        if self._lifeline is not None:
            self._lifeline.close()

    async def _wait_for_eof(self, seconds: float) -> bool:
        """Wait for the end of the output, at most so long, and return whether it has come."""
        if not self._eof.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._eof.wait(), seconds)
        return self._eof.is_set()


def _exit_of(pid: int) -> "Future[None]":
    """Return a future that is done when the process has ended.

    The process is not reaped: until then the number of its group stays taken.
    """
    exited: Future[None] = Future()

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if exited.set_running_or_notify_cancel():
            exited.set_result(None)

    threading.Thread(target=wait, name=f"bridle-wait-{pid}", daemon=True).start()
    return exited


def _was_killed(process: _Process) -> bool:
    """Was the supervisor itself ended by a signal, so that it could end nothing?"""
    status = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    return status is not None and status.si_code != os.CLD_EXITED


def _signal(process: _Process, number: signal.Signals) -> None:
    """Signal the group, unless its leader is reaped: then the number may be somebody else's."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
