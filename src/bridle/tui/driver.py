"""Textual's driver, for terminals that are closed, invalid UTF-8, and pastes.

Output to a terminal that was closed is dropped, so that it does not delay the end, and the
application is told. Invalid UTF-8 becomes replacement characters. A paste is text, whatever is in
it; Textual's own parser would take what follows an escape character in it for keys, and whoever
wrote the text could press Enter.
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
_MARK_TIMEOUT = 0.02  # seconds until the beginning of a mark counts as a key
_POLL = 0.1  # seconds between two checks whether to stop
START, END = "\x1b[200~", "\x1b[201~"


class InputPiece(NamedTuple):
    """A part of the input: keys, or a whole paste."""

    text: str
    is_paste: bool = False


class PasteSplitter:
    """Split what a terminal sends into keys and pastes; it may be fed in any pieces."""

    def __init__(self) -> None:
        self._held = ""  # possibly the beginning of a mark
        self._pasted: list[str] | None = None  # a paste whose end has not come

    @property
    def is_waiting(self) -> bool:
        """Is there held input that is a key if nothing follows it?"""
        return bool(self._held) and self._pasted is None

    def feed(self, text: str) -> Iterator[InputPiece]:
        """Yield keys as they come, and a paste once it is complete."""
        text, self._held = self._held + text, ""
        while text:
            mark = START if self._pasted is None else END
            before, found, rest = text.partition(mark)
            if not found:
                held = _prefix_length(text, mark)
                before, self._held = text[: len(text) - held], text[len(text) - held :]
            if self._pasted is not None:
                self._pasted.append(before)
            elif before:
                yield InputPiece(before)
            if not found:
                return
            if self._pasted is None:
                self._pasted = []
            else:
                yield InputPiece("".join(self._pasted).replace("\0", ""), is_paste=True)
                self._pasted = None
            text = rest

    def flush(self) -> Iterator[InputPiece]:
        """Yield held input as a key: nothing followed it."""
        if self.is_waiting:
            text, self._held = self._held, ""
            yield InputPiece(text)


def _prefix_length(text: str, mark: str) -> int:
    """Return how many characters at the end may be the beginning of the mark."""
    return next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)


class _TerminalOutput:
    """Standard output; what is written after the terminal was closed is dropped."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._is_closed = False

    def write(self, text: str) -> int:
        if not self._is_closed:
            try:
                return self._file.write(text)
            except (OSError, ValueError):
                self._is_closed = True
        return len(text)

    def flush(self) -> None:
        if not self._is_closed:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._is_closed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class ScreenDriver(LinuxDriver):
    """Textual's driver for POSIX terminals, with our output and our input thread."""

    def __init__(self, app: "App[Any]", **more: Any) -> None:
        super().__init__(app, **more)
        self._file: Any = _TerminalOutput(sys.__stdout__)  # type: ignore[arg-type]

    def run_input_thread(self) -> None:
        """Read input until the application ends or the terminal is closed."""
        parser, splitter = XTermParser(self._debug), PasteSplitter()
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_MARK_TIMEOUT if splitter.is_waiting else _POLL):
                    if not (data := self._read()):
                        return self._on_closed()
                    self._process(parser, splitter.feed(decode(data)))
                else:
                    self._process(parser, splitter.flush())
                for event in parser.tick():
                    self.process_message(event)
        return None

    def _process(self, parser: XTermParser, pieces: Iterable[InputPiece]) -> None:
        """Hand on keys and pastes in their order."""
        for text, is_paste in pieces:
            for event in [Paste(text)] if is_paste else parser.feed(text):
                self.process_message(event)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _READ)
        except OSError:
            return b""

    def _on_closed(self) -> None:
        """Tell the application that the terminal was closed."""
        leave = getattr(self._app, "terminate", None)
        if leave is not None:
            self._app.call_later(leave)
