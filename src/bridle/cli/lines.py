"""Lines from standard input without holding up the event loop, and whole texts from it.

The terminal's own line editing is enough: no cursor tricks, so pipes and dumb terminals work.
"""

import asyncio
import os
import sys

import click

_LARGEST = 10_000_000  # bytes of a prompt


class Lines:
    """Reads lines from a file descriptor, whatever it is: terminal, pipe or file."""

    def __init__(self, handle: int = 0) -> None:
        self._handle = handle
        self._held = bytearray()
        self._ended = handle == 0 and sys.stdin is None  # closed: the number may be another file's

    @property
    def is_terminal(self) -> bool:
        """Is a person typing?"""
        return os.isatty(self._handle)

    async def next(self) -> str | None:
        """The next line without its end; None when there are no more."""
        while b"\n" not in self._held and not self._ended:
            await self._ready()
            self._read()
        line, newline, rest = self._held.partition(b"\n")
        self._held = rest
        if not newline and self.is_terminal:
            self._ended = False  # Ctrl-D ends a question; the next one may be answered
        if not newline and not line:
            return None
        return line.decode("utf-8", "surrogateescape").removesuffix("\r")

    def discard(self) -> None:
        """Forget what a person typed ahead: it was not meant for the next question."""
        if self.is_terminal:
            import termios

            termios.tcflush(self._handle, termios.TCIFLUSH)
            self._held.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._handle, 65536)
        except OSError:  # closed, or the terminal is gone
            data = b""
        self._held += data
        self._ended = not data
        if len(self._held) > 2 * _LARGEST:
            raise click.UsageError(f"a line is longer than {_LARGEST:,} bytes")

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        try:
            loop.add_reader(self._handle, _wake, waiter)
        except OSError:  # a plain file or /dev/null: always ready
            return
        try:
            await waiter
        finally:
            loop.remove_reader(self._handle)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def read_all() -> str:
    """Everything on standard input, as text."""
    if sys.stdin is None:
        return ""
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise click.UsageError(
            f"the prompt on standard input is larger than {_LARGEST:,} bytes\n"
            "Put it into a file of the workspace and ask for that to be read."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 text (byte {error.start})\n"
            "Convert it first, for example with iconv."
        ) from None


def check_text(text: str, what: str) -> str:
    """Text that came in as bytes has to be UTF-8."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise click.UsageError(f"{what} is not valid UTF-8\nType it again, or convert it first.")
    return text
