"""A program in a group of its own, watched until it and its children are gone.

Output is handed on as it comes. Whatever ends the run (the program itself, the time, a cancel, the
reader who has had enough), everybody is ended: TERM, a short grace, KILL. A shell gets no TERM: it
is stopped, so that nothing more of its line runs, and killed at the end. How depends on who stands
over them. A command has a supervisor (workspace/supervise.py), which is told through its lifeline
and sees to it also when bridle is killed; or it lies in a space of processes of its own, which ends
with its first. A plain program (a search) has neither: its group is signalled, before its leader is
reaped, so that its number cannot be somebody else's by then, and who left the group is looked for
(family.py).
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from bridle.errors import ToolError
from bridle.tools.family import Family
from bridle.tools.threads import Threads
from bridle.workspace.lookup import folders

if TYPE_CHECKING:
    from bridle.workspace.sandbox import Start

GRACE = 0.5  # seconds between TERM and KILL
_GLANCE = 0.02  # seconds between two looks at who is left
_DRAIN = 0.2  # seconds for what a program wrote last
_FAREWELL = 3.0  # seconds that a supervisor has for ending everybody
_CHUNK = 1 << 16
_waiters = Threads(most=4096)  # a thread for each running program; tools cannot use them up

_ALLOWED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    )
)

Starter = Callable[[Sequence[str], int], "Start"]
Process = subprocess.Popen[bytes]


class Ended(Struct, frozen=True):
    """How a program ended. `code` is None when it did not end by itself."""

    code: int | None
    timed_out: bool = False
    left_behind: bool = False


def clean_environment(roots: Sequence[str] = ()) -> dict[str, str]:
    """What a program may know of ours: a short list of names, and never a key.

    Of the PATH the folders with an absolute name; `roots` are those whose programs are not found.
    """
    found = {
        name: value
        for name, value in os.environ.items()
        if name in _ALLOWED or name.startswith("LC_")
    }
    if "PATH" in found:
        found["PATH"] = os.pathsep.join(folders(roots))
    return {**found, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class Program:
    """One run of a program.

    `starter` says what is really executed, given the words and the lifeline of a supervisor.
    `handles` are given to the program besides its output. `alone`: it starts nobody, so that when
    it has ended by itself nobody is looked for.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str,
        take: Callable[[bytes], bool],
        *,
        starter: Starter | None = None,
        handles: Sequence[int] = (),
        alone: bool = False,
    ) -> None:
        self._argv = argv
        self._alone = alone
        self._cwd = cwd
        self._take = take
        self._starter = starter
        self._handles = tuple(handles)
        self._lifeline = -1
        self._kind: Literal["plain", "supervised", "own space"] = "plain"
        self._family = Family()
        self._enough = asyncio.Event()
        self._eof = asyncio.Event()

    async def run(self, seconds: float | None, environment: Mapping[str, str]) -> Ended:
        """Start it and stay until its group is gone. `take` gives False when it wants no more."""
        reader, writer = os.pipe()
        try:
            process = self._start(writer, environment)
        except BaseException:
            os.close(reader)
            self._let_go()
            raise
        finally:
            os.close(writer)
        self._family.lead(process.pid)
        os.set_blocking(reader, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(reader, self._read, reader)
        by_itself = False
        try:
            ended = await self._watch(process, seconds)
            by_itself = ended.code is not None
            return ended
        finally:
            self._kill(process, thorough=not by_itself)
            self._let_go()
            loop.remove_reader(reader)
            os.close(reader)
            if process.returncode is None:
                _waiters.submit(process.wait)

    def _start(self, writer: int, environment: Mapping[str, str]) -> Process:
        theirs, self._lifeline = os.pipe() if self._starter else (-1, -1)
        given: tuple[int, ...] = ()
        try:
            start = self._starter(self._argv, theirs) if self._starter else None
            given = start.handles if start is not None else ()
            process = subprocess.Popen(
                [*self._argv] if start is None else start.argv,
                cwd=self._cwd,
                env=self._family.marked(environment),
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
                pass_fds=(*given, *self._handles),
            )
        except (OSError, ValueError) as error:  # ValueError: NUL, or a lone surrogate
            raise ToolError(f"The command cannot be started: {error}.", error) from error
        finally:
            for handle in {theirs, *given} - {-1}:
                os.close(handle)
        if start is not None:
            self._kind = "own space" if start.own_end else "supervised"
        return process

    def _read(self, reader: int) -> None:
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(reader)
            self._eof.set()
        elif not self._enough.is_set() and not self._take(data):
            self._enough.set()

    async def _watch(self, process: Process, seconds: float | None) -> Ended:
        exited = asyncio.wrap_future(_waiters.submit(lambda: _wait(process.pid)))
        enough = asyncio.ensure_future(self._enough.wait())
        ended = False
        try:
            await asyncio.wait((exited, enough), timeout=seconds, return_when="FIRST_COMPLETED")
            ended = exited.done()
        finally:
            enough.cancel()
            if not ended:  # too long, enough, or cancelled
                await self._stop(process, exited)
            exited.cancel()  # nobody waits any more; it may come true after the loop is closed
        left_behind = await self._end_group(process)
        timed_out = not ended and not self._enough.is_set()
        return Ended(process.wait() if ended else None, timed_out, left_behind)

    async def _stop(self, process: Process, exited: "asyncio.Future[None]") -> None:
        """Ask, wait a little, and have everybody ended by whoever stands over them."""
        self._warn(process)
        await self._grace(exited)
        if self._kind == "supervised":
            self._let_go()
            await asyncio.wait((exited,), timeout=_FAREWELL)
        elif self._kind == "own space":  # its first process is gone before its last
            _signal(process, signal.SIGKILL)
            await self._drained(GRACE)

    async def _grace(self, exited: "asyncio.Future[None]") -> None:
        """Wait until those who were asked to end have done so, but not long."""
        if self._kind != "own space":  # others end by themselves, or their supervisor sees to it
            await asyncio.wait((exited,), timeout=GRACE)
            return
        for _ in range(round(GRACE / _GLANCE)):
            if exited.done() or not self._family.has_work():
                return
            await asyncio.wait((exited,), timeout=_GLANCE)

    async def _end_group(self, process: Process) -> bool:
        """End what the leader left in its group. Does anybody still hold the output?"""
        quiet = await self._drained(_DRAIN)
        if not quiet:
            self._warn(process)
            await self._drained(GRACE)
        self._kill(process, thorough=not quiet)
        return not await self._drained(GRACE)

    def _warn(self, process: Process) -> None:
        if self._kind == "supervised":
            with suppress(OSError):  # it has ended
                os.write(self._lifeline, b"T")
            return
        if self._kind == "own space":  # its first process takes all others with it
            self._family.ask_to_end()
            return
        self._family.tell(signal.SIGTERM)  # first: who started whom is still to be seen
        _signal(process, signal.SIGTERM)

    def _kill(self, process: Process, *, thorough: bool) -> None:
        if process.returncode is None:
            if self._kind == "supervised" and not thorough and not _was_killed(process):
                return  # it has ended by itself, and nobody was left by then
            _signal(process, signal.SIGKILL)
            if self._kind != "own space" and (thorough or not self._alone):
                self._family.end(thorough=thorough or self._kind == "supervised")

    def _let_go(self) -> None:
        handle, self._lifeline = self._lifeline, -1
        if handle >= 0:
            os.close(handle)

    async def _drained(self, seconds: float) -> bool:
        if not self._eof.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._eof.wait(), seconds)
        return self._eof.is_set()


def _wait(pid: int) -> None:
    """Wait for the end without reaping: until then the group's number stays taken."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _was_killed(process: Process) -> bool:
    """Has somebody ended the supervisor, so that it saw to nothing?"""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    return found is not None and found.si_code != os.CLD_EXITED


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal the group, unless its leader is reaped: then the number may be somebody else's."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
