"""A program that bridle talks to over its pipes, below a supervisor.

The supervisor (`workspace/supervise.py`) ends everything that the program has started: when the
program ends, when bridle asks for it, and when bridle itself is killed.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

from bridle.workspace.process.process_tree import ProcessTree
from bridle.workspace.sandbox import supervised_start
from bridle.workspace.text import neutral

GRACE = 0.5  # seconds between one way of asking a program to end and the next
_KILL_SECONDS = 5.0  # seconds that the supervisor has to kill everything
_DRAIN = 0.1  # seconds to wait for what the program wrote to stderr last
_POLL = 0.005  # seconds between two looks at whether the program has ended
_STDERR = 8192  # bytes that are kept of the end of stderr


class Lifeline:
    """Our end of the pipe that a supervisor listens to.

    If it is closed, also because bridle was killed, the supervisor kills everything below it.
    `supervisor_end` is what the supervisor is started with.
    """

    def __init__(self) -> None:
        self.supervisor_end, self._our_end = os.pipe()

    def begin(self) -> None:
        """Let a command in a namespace begin, which waits until its handles are closed here."""
        with suppress(OSError):  # it has ended
            os.write(self._our_end, b".")

    def ask_to_end(self) -> None:
        """Have the supervisor send TERM to everything below it."""
        with suppress(OSError):  # the supervisor has ended
            os.write(self._our_end, b"T")

    def close(self) -> None:
        """Have the supervisor kill everything below it."""
        handle, self._our_end = self._our_end, -1
        if handle >= 0:
            os.close(handle)


class SupervisedProcess:
    """One running program and its pipes. `start` makes it, `end` or `kill` leaves nothing of it."""

    def __init__(self, name: str, process: Process, lifeline: Lifeline, tree: ProcessTree) -> None:
        self.name = name
        self._process = process
        self._lifeline = lifeline
        self._tree = tree
        self._stderr = bytearray()
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._killing: asyncio.Task[None] | None = None
        self._own_exit_code: int | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        *,
        name: str = "",
        line_limit: int = 2**16,
    ) -> "SupervisedProcess":
        """Start the program. Raise `OSError` or `ValueError` (a NUL in an argument) if it fails.

        `line_limit` bounds what `reader.readline()` accepts, in bytes.
        """
        tree, lifeline = ProcessTree(), Lifeline()
        try:
            start = supervised_start(argv, lifeline.supervisor_end)
            process = await asyncio.create_subprocess_exec(
                *start.argv,
                cwd=cwd,
                env=tree.with_mark(environment),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                pass_fds=start.handles,
                limit=line_limit,
            )
        except BaseException:
            lifeline.close()
            raise
        finally:
            os.close(lifeline.supervisor_end)
        tree.leader = process.pid
        return cls(name or argv[0], process, lifeline, tree)

    @property
    def reader(self) -> asyncio.StreamReader:
        """The program's output."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def writer(self) -> asyncio.StreamWriter:
        """The program's input."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Is the program still running?"""
        return self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        """How the program ended by itself, a signal as a negative number.

        None if it runs, or was killed from here.
        """
        return self._process.returncode if self._killing is None else self._own_exit_code

    def stderr_tail(self, longest: int | None = 600) -> str:
        """Return the end of what the program wrote to stderr, without control characters."""
        text = neutral(bytes(self._stderr).decode("utf-8", "replace")).strip()
        return text if longest is None or len(text) <= longest else "… " + text[-longest:]

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the program, at most so long, and return whether it has ended.

        `Process.wait` would also wait for whoever else holds the program's output open.
        """
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while self._process.returncode is None:
            if deadline is not None and loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL)
        return True

    async def describe_exit(self) -> str:
        """Say how the program ended, after "the program …". Its last words have arrived then."""
        if await self.wait(GRACE):
            await asyncio.wait((self._stderr_reader,), timeout=GRACE)
        return exit_description(self.exit_code)

    def close_input(self) -> None:
        """Close its input, which is the polite way of asking it to end."""
        with suppress(OSError, RuntimeError):
            self.writer.close()

    async def end(self, *, patience: float = GRACE) -> None:
        """End the program and everything it has started: politely, then with TERM, then with KILL.

        First its input is closed and it has `patience` seconds to end by itself; with 0 this step
        is left out.
        """
        try:
            if patience:
                self.close_input()
                await self.wait(patience)
            if self.is_alive:
                self._lifeline.ask_to_end()
                await self.wait(GRACE)
        finally:
            await self.kill()

    async def kill(self) -> None:
        """Kill the program and everything it has started. A cancel is raised when that is done."""
        if self._killing is None:
            self._own_exit_code = self._process.returncode
            self._lifeline.close()  # the supervisor kills everything, also what left the session
            self._killing = asyncio.create_task(self._kill())
        try:
            await asyncio.shield(self._killing)
        except asyncio.CancelledError:
            await asyncio.wait((self._killing,))
            raise

    async def _kill(self) -> None:
        ended = await self.wait(_KILL_SECONDS)
        if not ended:  # somebody has stopped the supervisor
            with suppress(ProcessLookupError):
                self._process.kill()
        if not ended or self._process.returncode == -signal.SIGKILL:  # it could not do its work
            await self._tree.kill_until_gone(GRACE)
        await self.wait()
        await self._release()

    async def _release(self) -> None:
        """Close the pipes, also if somebody still holds their other ends."""
        await asyncio.wait((self._stderr_reader,), timeout=_DRAIN)
        self._stderr_reader.cancel()
        await asyncio.wait((self._stderr_reader,))
        self.close_input()
        with suppress(OSError, RuntimeError):
            async with asyncio.timeout(GRACE):
                await self.writer.wait_closed()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:  # a reader that was stopped in the middle keeps its pipe open
            transport.close()
        await asyncio.sleep(0)

    async def _read_stderr(self) -> None:
        """Keep the end of what the program writes to stderr."""
        assert self._process.stderr is not None
        with suppress(OSError):
            while data := await self._process.stderr.read(1 << 16):
                self._stderr += data
                del self._stderr[:-_STDERR]


def exit_description(code: int | None) -> str:
    """Say how a program ended, after "the program …"."""
    if code is None:
        return "stopped speaking"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
