"""Colours, widths and line breaks of text in a terminal.

Colours only if a person looks at it and has not asked for none. Prose is broken between words as it
streams; code is left as it is: lines inside fences, and lines indented by four columns or more.
"""

import os
import re
from collections.abc import Mapping
from typing import TextIO

_PIECES = r"\n|[^\S\n]+|\S+"  # compiled at first use: most commands break no lines
_LIST_MARKER = r"[-*•]|\d{1,3}[.)]"
_CODE = 4  # columns of indentation


class Paint:
    """Puts colour around text, or leaves it as it is."""

    __slots__ = ("on",)

    def __init__(self, on: bool = False) -> None:
        self.on = on

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def dim(self, text: str) -> str:
        """Of lesser importance."""
        return self._wrap("2", text)

    def bold(self, text: str) -> str:
        """Of most importance."""
        return self._wrap("1", text)

    def red(self, text: str) -> str:
        """A failure, or something removed."""
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        """A success, or something added."""
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        """Needs attention or a decision."""
        return self._wrap("33", text)

    def cyan(self, text: str) -> str:
        """A name."""
        return self._wrap("36", text)


def paint_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Paint:
    """Return colours for a terminal that has them, unless NO_COLOR is set."""
    plain = environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    return Paint(stream.isatty() and not plain)


def erasing(environ: Mapping[str, str] = os.environ) -> str:
    """Return what erases the terminal's line; empty if the terminal cannot do it."""
    return "" if environ.get("TERM", "dumb") == "dumb" else "\r\x1b[K"


def erasing_above(lines: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return what erases so many lines above the cursor; empty if the terminal cannot do it."""
    return "" if environ.get("TERM", "dumb") == "dumb" else "\r" + "\x1b[1A\x1b[K" * lines


def width_of(stream: TextIO) -> int:
    """Return the columns of the terminal; 200 if it is not a terminal."""
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns or 80)
    except (OSError, ValueError):
        return 200


def cells(text: str) -> int:
    """Return how many columns the text takes."""
    if text.isascii():
        return len(text)
    import unicodedata  # a megabyte of tables, for what is not ASCII

    columns = 0
    for char in text:
        if not unicodedata.combining(char):
            columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return columns


def cut(text: str, width: int) -> str:
    """Return at most so many columns of the text, with an ellipsis if there is more."""
    if cells(text) <= width:
        return text
    chars, room = [], max(0, width - 1)
    for char in text:
        room -= cells(char)
        if room < 0:
            break
        chars.append(char)
    return "".join(chars) + "…"


def plain(text: str) -> str:
    """Return text from elsewhere on one line, harmless."""
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    from bridle.workspace.text import neutral  # its tables take 5 ms, for what is rarely there

    return neutral(text)


class Wrap:
    """Breaks streamed text between words.

    The last word is held back until it is known to be whole; `flush` returns it.
    """

    def __init__(self) -> None:
        self._word = ""
        self._gap = ""
        self._column = 0
        self._hang = 0  # where the next line of a paragraph begins
        self._fenced = False
        self._code = False  # this line is indented like code
        self._first = ""  # the first word of the line

    def feed(self, text: str, width: int) -> str:
        """Take in the next piece of text and return what can be written."""
        out: list[str] = []
        for piece in re.findall(_PIECES, text):
            if piece == "\n":
                out.append(self.flush(width) + self._gap + "\n")
                self._end_line()
            elif piece.isspace():
                out.append(self.flush(width))
                self._gap += piece
            else:
                self._word += piece
        return "".join(out)

    def flush(self, width: int) -> str:
        """Return the word that is held back, with the line break that it may need."""
        word, self._word = self._word, ""
        if not word:
            return ""
        gap, self._gap = self._gap, ""
        columns = cells(gap) + cells(word)
        if not self._first:
            self._first = word
            indent = cells(gap.expandtabs(4))
            is_list = re.fullmatch(_LIST_MARKER, word) is not None
            self._code = indent >= _CODE and not is_list
            self._hang = min(indent + (len(word) + 1 if is_list else 0), 16)
        elif self._column + columns > width and not (self._fenced or self._code):
            self._column = self._hang + cells(word)
            return "\n" + " " * self._hang + word
        self._column += columns
        return gap + word

    def _end_line(self) -> None:
        if self._first.startswith("```"):
            self._fenced = not self._fenced
        self._first = self._gap = ""
        self._column = self._hang = 0
        self._code = False


def wrapped(text: str, width: int) -> str:
    """Return a whole text with line breaks."""
    wrap = Wrap()
    return wrap.feed(text, width) + wrap.flush(width)
