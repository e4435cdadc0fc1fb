"""What a terminal sends, parted into keys and pastes. Pure.

A paste stands between two marks. Everything in between is text, escape sequences as well: if only
one of its characters were taken for a key, whoever wrote the text could press Enter.
"""

from collections.abc import Iterator
from typing import NamedTuple

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
