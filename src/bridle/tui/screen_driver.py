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
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste

from bridle.tui.screen_pastes import Parted, Piece

if TYPE_CHECKING:
    from textual.app import App

_READ = 16 * 1024  # bytes at once
_HELD = 0.02  # seconds until the beginning of a mark counts as a key
_LOOK = 0.1  # seconds until it is asked again whether to stop


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
