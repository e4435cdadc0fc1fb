"""Cuts markdown, as it streams in, into pieces that will not change any more, and an open end.

Pure. A piece ends where a blank line stands before something new, and around fenced code; long code
is cut every few lines. So that only the open end is ever drawn again.
"""

import re
from typing import Literal

from msgspec import Struct

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_HEADING = re.compile(r"^#{1,6}(?:[ \t]|$)")
_MOST = 24  # lines of code in one piece
_LIST = 24  # lines of a list, after which its next item begins another piece


class Piece(Struct, frozen=True):
    """A part of the text. `joined`: it goes on right where the piece before it ended."""

    kind: Literal["text", "code"]
    text: str
    language: str = ""
    joined: bool = False


class Pieces:
    """Is fed text; `done` only grows."""

    def __init__(self) -> None:
        self.done: list[Piece] = []
        self._lines: list[str] = []
        self._rest = ""  # a line whose end has not come
        self._fence = ""
        self._language = ""
        self._joined = False
        self._blank = False

    def feed(self, text: str) -> None:
        """Some more."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._line(line)

    def close(self) -> None:
        """No more comes: the open end is a piece, too."""
        if (piece := self.open()) is not None:
            self.done.append(piece)
        self._lines, self._rest, self._fence, self._joined = [], "", "", False

    def open(self) -> Piece | None:
        """What may still change."""
        rest = [self._rest] if self._rest else []
        if self._fence:
            if rest and self._closes(self._rest):
                rest = []
            text = "\n".join([*self._lines, *rest])
            if not text and self._joined:
                return None
            return Piece("code", text, self._language, self._joined)
        text = "\n".join([*self._lines, *rest]).strip("\n")
        return Piece("text", text, joined=self._joined) if text.strip() else None

    def _line(self, line: str) -> None:
        if self._fence:
            self._code(line)
        elif found := _FENCE.match(line):
            self._flush()
            self._fence, self._language = found[1], found[2]
        elif not line.strip():
            self._blank = True
            self._lines.append("")
        else:
            if self._lines and (_HEADING.match(line) or (self._blank and self._is_new(line))):
                self._flush()
            elif len(self._lines) >= _LIST and _ITEM.match(line) and _ITEM.match(self._lines[0]):
                loose = self._blank
                self._flush()
                self._joined = not loose
            self._blank = False
            self._lines.append(line)

    def _code(self, line: str) -> None:
        if self._closes(line):
            if self._lines or not self._joined:
                self.done.append(self._piece())
            self._lines, self._fence, self._joined = [], "", False
            return
        self._lines.append(line)
        if len(self._lines) >= _MOST:
            self.done.append(self._piece())
            self._lines, self._joined = [], True

    def _piece(self) -> Piece:
        return Piece("code", "\n".join(self._lines), self._language, self._joined)

    def _closes(self, line: str) -> bool:
        found = line.strip()
        return len(found) >= len(self._fence) and not found.strip(self._fence[0]) and bool(found)

    def _is_new(self, line: str) -> bool:
        """Does this begin something that the lines before cannot contain?"""
        if line[0] in " \t":
            return False
        begins = next((one for one in self._lines if one), "")
        return not (_ITEM.match(line) and _ITEM.match(begins.lstrip()))

    def _flush(self) -> None:
        text = "\n".join(self._lines).strip("\n")
        if text.strip():
            self.done.append(Piece("text", text, joined=self._joined))
        self._lines, self._blank, self._joined = [], False, False


def pieces_of(text: str) -> list[Piece]:
    """All pieces of a text that is whole."""
    pieces = Pieces()
    pieces.feed(text)
    pieces.close()
    return pieces.done


def code_blocks(text: str) -> list[str]:
    """The fenced code of a text, each block whole."""
    found: list[str] = []
    for piece in pieces_of(text):
        if piece.kind == "code":
            if piece.joined and found:
                found[-1] += "\n" + piece.text
            else:
                found.append(piece.text)
    return found
