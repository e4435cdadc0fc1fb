"""Read lines from standard input without blocking the event loop.

The terminal's own line editing is used, so that pipes and dumb terminals work.
"""

import asyncio
import os
import select
import sys

from bridle.cli.user_input import MAX_BYTES
from bridle.errors import UsageError


class LineReader:
    """Reads lines from a file descriptor, whatever it is: terminal, pipe or file.

    If several wait for one, it goes to who asked last, whose question is on the screen.
    """

    def __init__(self, handle: int = 0) -> None:
        self._handle = handle
        self._buffer = bytearray()
        self._ended = handle == 0 and sys.stdin is None  # closed: the number may be another file's
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_terminal(self) -> bool:
        """Return whether a person types."""
        return os.isatty(self._handle)

    async def next(self) -> str | None:
        """Return the next line without its end; None at the end of the input."""
        while b"\n" not in self._buffer and not self._ended:
            await self._wait_for_input()
        line, newline, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        if not newline and self.is_terminal:
            self._ended = False  # Ctrl-D ends a question; the next one may be answered
        self._wake_waiter()
        if not newline and not line:
            return None
        return line.decode("utf-8", "surrogateescape").removesuffix("\r")

    def _wake_waiter(self) -> None:
        """Wake who asked last if what is left is enough for them."""
        if self._waiting and (b"\n" in self._buffer or self._ended):
            waiter = self._waiting[-1]
            if not waiter.done():
                waiter.set_result(None)

    def discard(self) -> None:
        """Drop what a person typed ahead: it was not meant for the next question."""
        if self.is_terminal:
            import termios

            termios.tcflush(self._handle, termios.TCIFLUSH)
            self._buffer.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._handle, 65536)
        except OSError:  # closed, or the terminal is gone
            data = b""
        self._buffer += data
        self._ended = not data
        if len(self._buffer) > 2 * MAX_BYTES:
            raise UsageError(f"a line is longer than {MAX_BYTES:,} bytes")

    async def _wait_for_input(self) -> None:
        """Wait until something was read, and nobody has asked for a line after us."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.append(waiter)
        try:
            loop.add_reader(self._handle, self._read_for_waiter)
            await waiter
        except OSError:  # a plain file or /dev/null: always ready
            self._read()
        finally:
            self._waiting.remove(waiter)
            if not self._waiting:
                loop.remove_reader(self._handle)

    def _read_for_waiter(self) -> None:
        """Read, and wake who asked last. What came may have been discarded meanwhile."""
        waiter = self._waiting[-1]
        if waiter.done() or not select.select([self._handle], [], [], 0)[0]:
            return
        try:
            self._read()
            waiter.set_result(None)
        except UsageError as error:
            waiter.set_exception(error)
