"""The `claude` program, below a supervisor: lines of JSON in, lines of JSON out, and nobody left.

Has the shape of the SDK's transport, whose own one hands on our whole environment, has no group of
its own and takes five seconds to give up. Here the environment is the one that is given, everybody
whom the program starts ends with it, also when bridle is killed, and an end takes a moment.
Knows nothing of what the lines mean.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from bridle.workspace import lookup
from bridle.workspace.sandbox import supervised
from bridle.workspace.text import neutral

LONGEST = 2**26  # bytes of one line: pictures come whole
_STDERR = 8192  # bytes of what it complained about last
_SHOWN = 600  # characters of that in a message
_FAREWELL = 2.0  # seconds to write down its conversation after its input has ended
_END = 5.0  # seconds that a supervisor has for ending everybody


def find_program(roots: Sequence[str] = ()) -> str | None:
    """The program that the SDK brings, or else one on the PATH, but for those in a root.

    Neither is started, and the SDK is not imported.
    """
    spec = find_spec("claude_agent_sdk")
    brought = str(Path(spec.origin).parent / "_bundled" / "claude") if spec and spec.origin else ""
    if brought and os.access(brought, os.X_OK):
        return brought
    return lookup.find_program("claude", roots or lookup.here())


class ClaudeProcess:
    """One run of the program. `connect` starts it, `close` leaves nothing of it."""

    def __init__(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> None:
        self._argv = argv
        self._cwd = cwd
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline = -1
        self._code: int | None = None
        self._is_ending = False
        self._stderr = bytearray()
        self._listening: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    @property
    def pid(self) -> int:
        """The supervisor's number; 0 where nothing runs."""
        return self._process.pid if self._process is not None else 0

    @property
    def exit_code(self) -> int | None:
        """How it ended, as soon as it has; a negative number is a signal."""
        return self._process.returncode if self._process is not None else self._code

    def complaint(self) -> str:
        """What it said on stderr last, made harmless and short."""
        text = neutral(bytes(self._stderr).decode("utf-8", "replace")).strip()
        return text if len(text) <= _SHOWN else "… " + text[-_SHOWN:]

    async def connect(self) -> None:
        """Start it. Raise `OSError` where that cannot be done."""
        theirs, self._lifeline = os.pipe()
        try:
            start = supervised(self._argv, theirs)
            self._process = await asyncio.create_subprocess_exec(
                *start.argv,
                cwd=self._cwd,
                env=dict(self._environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                pass_fds=start.handles,
                limit=LONGEST,
            )
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(theirs)
        self._listening = asyncio.create_task(self._listen())

    def is_ready(self) -> bool:
        """Can it be spoken to?"""
        return self._process is not None and self._process.returncode is None

    async def write(self, data: str) -> None:
        """Say one line. Raise `ConnectionError` where nobody listens any more."""
        if self._process is None or self._process.stdin is None or not self.is_ready():
            raise ConnectionError("the program has ended")
        async with self._writing:
            try:
                self._process.stdin.write(data.encode())
                await self._process.stdin.drain()
            except (OSError, RuntimeError) as error:  # its end of the pipe is closed
                raise ConnectionError(str(error)) from error

    async def end_input(self) -> None:
        """Nothing more will be said: the polite way of asking it to end."""
        self._is_ending = True
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, RuntimeError):
                self._process.stdin.close()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it says, until it ends. Raise the SDK's `ProcessError` where nobody has asked it to.

        A line that is no JSON object is passed over: other builds write there, too.
        """
        process = self._process
        if process is None or process.stdout is None:
            raise ConnectionError("the program was not started")
        while line := await process.stdout.readline():
            if line.startswith(b"{"):
                with suppress(msgspec.DecodeError, UnicodeDecodeError):
                    yield msgspec.json.decode(line, type=dict[str, Any])
        code = await process.wait()
        if code or not self._is_ending:  # whoever waits for an answer would wait for long
            from claude_agent_sdk import ProcessError

            raise ProcessError("Claude Code ended", exit_code=code)

    async def close(self) -> None:
        """End it, and everybody it started: asked first, for it has to write down what was said."""
        try:
            await self.end_input()
            await self._gone(_FAREWELL)
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End everybody at once."""
        self._let_go()  # the supervisor does it, with all those who left the group
        self._code = self.exit_code  # how it ended by itself, if it did
        process, self._process = self._process, None
        if process is None:
            return
        ending = asyncio.ensure_future(self._released(process))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait((ending,))
            raise

    async def _gone(self, seconds: float) -> None:
        if self._process is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), seconds)

    def _let_go(self) -> None:
        handle, self._lifeline = self._lifeline, -1
        if handle >= 0:
            os.close(handle)

    async def _released(self, process: asyncio.subprocess.Process) -> None:
        """It has ended, its pipes are closed, and nobody listens."""
        try:
            await asyncio.wait_for(process.wait(), _END)
        except TimeoutError:  # a supervisor that was stopped by somebody
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
        transport = getattr(process, "_transport", None)
        if transport is not None:  # a reader that was stopped in the middle keeps its pipe open
            transport.close()
        await asyncio.sleep(0)

    async def _listen(self) -> None:
        """What it says on stderr, of which the end is kept."""
        assert self._process is not None and self._process.stderr is not None
        with suppress(OSError):
            while data := await self._process.stderr.read(4096):
                self._stderr += data
                del self._stderr[:-_STDERR]
