"""Textual's driver, for terminals that go away and for bytes that are no text.

Writes to standard output; a terminal that was closed swallows what is written, so that the end is
not held up by it, and is told to the application. Bytes that are no UTF-8 come as replacement
characters and end nothing. What is pasted is text, whatever is in it: Textual's own parser takes
what follows an escape character in it for keys.
"""

import os
import selectors
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste

if TYPE_CHECKING:
    from textual.app import App

_READ = 16 * 1024  # bytes at once
_HELD = 0.02  # seconds until the beginning of a mark counts as a key
_LOOK = 0.1  # seconds until it is asked again whether to stop
START, END = "\x1b[200~", "\x1b[201~"


class Piece(NamedTuple):
    """Some of what came."""

    text: str
    pasted: bool = False


class Parted:
    """Fed as the terminal sends it, cut anywhere."""

    def __init__(self) -> None:
        self._held = ""  # may be the beginning of a mark
        self._pasted: list[str] | None = None  # a paste whose end has not come

    @property
    def is_waiting(self) -> bool:
        """Is something held that would be a key, if nothing follows it?"""
        return bool(self._held) and self._pasted is None

    def feed(self, text: str) -> Iterator[Piece]:
        """Keys as they come; a paste once it is whole."""
        text, self._held = self._held + text, ""
        while text:
            mark = START if self._pasted is None else END
            before, found, rest = text.partition(mark)
            if not found:
                held = _beginning(text, mark)
                before, self._held = text[: len(text) - held], text[len(text) - held :]
            if self._pasted is not None:
                self._pasted.append(before)
            elif before:
                yield Piece(before)
            if not found:
                return
            if self._pasted is None:
                self._pasted = []
            else:
                yield Piece("".join(self._pasted).replace("\0", ""), pasted=True)
                self._pasted = None
            text = rest

    def flush(self) -> Iterator[Piece]:
        """Nothing followed what is held: it is a key."""
        if self.is_waiting:
            text, self._held = self._held, ""
            yield Piece(text)


def _beginning(text: str, mark: str) -> int:
    """How many characters at the end may be the beginning of the mark."""
    return next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)


class _Steady:
    """A stream that may be gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._gone = False

    def write(self, text: str) -> int:
        """Write it, if anybody is there."""
        if not self._gone:
            try:
                return self._file.write(text)
            except (OSError, ValueError):
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Let it out, if anybody is there."""
        if not self._gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._gone = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class ScreenDriver(LinuxDriver):
    """Powers display and input."""

    def __init__(self, app: "App[Any]", **more: Any) -> None:
        super().__init__(app, **more)
        self._file: Any = _Steady(sys.__stdout__)  # type: ignore[arg-type]

    def run_input_thread(self) -> None:
        """Read keys until the application ends, or the terminal does."""
        parser, parted = XTermParser(self._debug), Parted()
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_HELD if parted.is_waiting else _LOOK):
                    if not (data := self._read()):
                        return self._gone()
                    self._take(parser, parted.feed(decode(data)))
                else:
                    self._take(parser, parted.flush())
                for event in parser.tick():
                    self.process_message(event)
        return None

    def _take(self, parser: XTermParser, pieces: Iterable[Piece]) -> None:
        """Keys and pastes, in their order."""
        for text, pasted in pieces:
            for event in [Paste(text)] if pasted else parser.feed(text):
                self.process_message(event)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _READ)
        except OSError:
            return b""

    def _gone(self) -> None:
        """The terminal was closed."""
        leave = getattr(self._app, "send_away", None)
        if leave is not None:
            self._app.call_later(leave)
