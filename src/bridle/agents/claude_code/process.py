"""The `claude` program: find it, start it, and exchange lines of JSON with it.

`ClaudeProcess` has the shape of the SDK's transport. The SDK's own one passes our whole environment
on, has no process group of its own and takes five seconds to give up. Here the caller chooses the
environment, and everything that the program starts ends with it, also if bridle is killed. This
module does not know what the lines mean.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from bridle.workspace import programs
from bridle.workspace.process.supervised_process import SupervisedProcess

LONGEST = 2**26  # bytes of one line: pictures come whole
_END_SECONDS = 2.0  # seconds to write down its conversation after its input has ended


def find_program(roots: Sequence[str] = ()) -> str | None:
    """Find the program that the SDK brings, or else one on the PATH outside of the roots.

    Neither is started, and the SDK is not imported.
    """
    spec = find_spec("claude_agent_sdk")
    bundled = str(Path(spec.origin).parent / "_bundled" / "claude") if spec and spec.origin else ""
    if bundled and os.access(bundled, os.X_OK):
        return bundled
    return programs.find_program("claude", roots or programs.working_folder())


class ClaudeProcess:
    """One run of the program. `connect` starts it; `close` or `kill` ends it and its children."""

    def __init__(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> None:
        self._argv = argv
        self._cwd = cwd
        self._environment = environment
        self._process: SupervisedProcess | None = None
        self._is_ending = False
        self._writing = asyncio.Lock()

    async def connect(self) -> None:
        """Start the program. Raise `OSError` if that fails."""
        self._process = await SupervisedProcess.start(
            self._argv, self._cwd, self._environment, name="claude", line_limit=LONGEST
        )

    def is_ready(self) -> bool:
        """Whether it can be written to."""
        return self._process is not None and self._process.is_alive

    async def write(self, data: str) -> None:
        """Write one line. Raise `ConnectionError` if the program does not read any more."""
        if self._process is None or not self._process.is_alive:
            raise ConnectionError("the program has ended")
        async with self._writing:
            try:
                self._process.writer.write(data.encode())
                await self._process.writer.drain()
            except (OSError, RuntimeError) as error:  # its end of the pipe is closed
                raise ConnectionError(str(error)) from error

    async def end_input(self) -> None:
        """Close its input: the polite way of asking it to end."""
        self._is_ending = True
        if self._process is not None:
            self._process.close_input()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what it says until it ends.

        Raise the SDK's `ProcessError` if it ends without having been asked to. Lines that are not
        JSON objects are skipped: some builds write other things, too.
        """
        process = self._process
        if process is None:
            raise ConnectionError("the program was not started")
        while line := await process.reader.readline():
            if line.startswith(b"{"):
                try:
                    message = msgspec.json.decode(line, type=dict[str, Any])
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                yield message
        await process.wait()
        if process.exit_code or not self._is_ending:  # else whoever waits would wait for ever
            from claude_agent_sdk import ProcessError

            raise ProcessError("Claude Code ended", exit_code=process.exit_code)

    async def close(self) -> None:
        """End it and everything it started, after it had time to write down its conversation."""
        self._is_ending = True
        if self._process is not None:
            await self._process.end(patience=_END_SECONDS)

    async def kill(self) -> None:
        """Kill it and everything it started."""
        if self._process is not None:
            await self._process.kill()

    @property
    def exit_code(self) -> int | None:
        """How it ended by itself, a signal as a negative number; None if it did not."""
        return self._process.exit_code if self._process is not None else None

    def stderr_tail(self) -> str:
        """Return the end of what it wrote to stderr."""
        return self._process.stderr_tail() if self._process is not None else ""
