"""Textual's driver, for terminals that go away and for bytes that are no text.

Writes to standard output; a terminal that was closed swallows what is written, so that the end is
not held up by it, and is told to the application. Bytes that are no UTF-8 come as replacement
characters and end nothing.
"""

import os
import selectors
import sys
from codecs import getincrementaldecoder
from typing import IO, TYPE_CHECKING, Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App

_READ = 16 * 1024  # bytes at once
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
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_LOOK):
                    if not (data := self._read()):
                        return self._gone()
                    for event in parser.feed(decode(data)):
                        self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)
        return None

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
