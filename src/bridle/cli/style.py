"""Colours, only where a person looks and has not asked for none, and widths; pure text."""

import os
from collections.abc import Mapping
from typing import TextIO


class Paint:
    """Puts colour around text, or leaves it as it is."""

    __slots__ = ("on",)

    def __init__(self, on: bool = False) -> None:
        self.on = on

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def dim(self, text: str) -> str:
        """Beside the point, but good to know."""
        return self._wrap("2", text)

    def bold(self, text: str) -> str:
        """What the eye should find first."""
        return self._wrap("1", text)

    def red(self, text: str) -> str:
        """It failed, or takes something away."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """It worked, or adds something."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """It wants a decision."""
        return self._wrap("33", text)

    def cyan(self, text: str) -> str:
        """A name."""
        return self._wrap("36", text)


def paint_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Paint:
    """Colour on a terminal that has it, unless NO_COLOR is set."""
    plain = environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    return Paint(stream.isatty() and not plain)


def erasing(environ: Mapping[str, str] = os.environ) -> str:
    """What takes a terminal's line back; nothing where the terminal cannot do it."""
    return "" if environ.get("TERM", "dumb") == "dumb" else "\r\x1b[K"


def erasing_above(environ: Mapping[str, str] = os.environ) -> str:
    """What takes back the line above the cursor; nothing if the terminal cannot do it."""
    return "" if environ.get("TERM", "dumb") == "dumb" else "\r\x1b[1A\x1b[K"


def width_of(stream: TextIO) -> int:
    """Columns of the terminal; wide where there is none."""
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns or 80)
    except (OSError, ValueError):
        return 200


def cells(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    import unicodedata  # a megabyte of tables, for what is not ASCII

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """At most so many columns; an ellipsis says that there is more."""
    if cells(text) <= width:
        return text
    kept, room = [], max(0, width - 1)
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + "…"


def plain(text: str) -> str:
    """Text from elsewhere on one line, harmless."""
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    from bridle.workspace.text import neutral  # its tables take 5 ms, for what is rarely there

    return neutral(text)
