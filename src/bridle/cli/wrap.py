"""Breaks streamed prose between words, at the width of a terminal. Pure.

Code stays as it is: lines inside fences, and lines that are indented by four columns or more.
"""

import re

from bridle.cli.style import cells

_PIECES = re.compile(r"\n|[^\S\n]+|\S+")
_MARKER = re.compile(r"[-*•]|\d{1,3}[.)]")
_CODE = 4  # columns of indentation


class Wrap:
    """Is fed text piece by piece, and gives it back with line breaks in the right places.

    The last word is held back until it is known to be whole; `flush` gives it out.
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
        """Some more text."""
        out: list[str] = []
        for piece in _PIECES.findall(text):
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
        """The word that is held back."""
        word, self._word = self._word, ""
        if not word:
            return ""
        gap, self._gap = self._gap, ""
        if not self._first:
            self._begin(word, gap)
        elif self._breaks(cells(gap) + cells(word), width):
            self._column = self._hang + cells(word)
            return "\n" + " " * self._hang + word
        self._column += cells(gap) + cells(word)
        return gap + word

    def _breaks(self, room: int, width: int) -> bool:
        return not (self._fenced or self._code) and self._column + room > width

    def _begin(self, word: str, gap: str) -> None:
        self._first = word
        indent = cells(gap.expandtabs(4))
        marked = _MARKER.fullmatch(word) is not None
        self._code = indent >= _CODE and not marked
        self._hang = min(indent + (len(word) + 1 if marked else 0), 16)

    def _end_line(self) -> None:
        if self._first.startswith("```"):
            self._fenced = not self._fenced
        self._first = self._gap = ""
        self._column = self._hang = 0
        self._code = False


def wrapped(text: str, width: int) -> str:
    """A whole text at once."""
    wrap = Wrap()
    return wrap.feed(text, width) + wrap.flush(width)
