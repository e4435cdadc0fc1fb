"""Long pastes, folded to a marker in the composer and sent whole. Pure.

What was pasted is made neutral first, so that what is sent is what would have been shown. A marker
that the person has changed or deleted is no marker any more: its text is not sent.
"""

import re

from bridle.workspace.text import neutral, quantity

MOST_LINES = 20
MOST_CHARACTERS = 2_000
_GENEROUS = 20  # times as much, for what was written and not pasted

_MARKER = re.compile(r"\[pasted [0-9,]+ (?:lines?|characters)(?: #\d+)?\]")


def harmless(text: str) -> str:
    """The text as a composer may hold it: line ends are one kind, the rest is neutral."""
    return neutral(text.replace("\r\n", "\n").replace("\r", "\n"))


class Pastes:
    """The long texts behind the markers of one composer."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str, *, pasted: bool = True) -> str:
        """What to put into the composer for this text: itself, or a marker of its own."""
        room = 1 if pasted else _GENEROUS
        text = harmless(text)
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MOST_LINES * room and len(text) <= MOST_CHARACTERS * room:
            return text
        size = quantity(lines, "line") if lines > 1 else quantity(len(text), "character")
        marker, number = f"[pasted {size}]", 2
        while self._texts.get(marker, text) != text:
            marker, number = f"[pasted {size} #{number}]", number + 1
        self._texts[marker] = text
        return marker

    def unfold(self, text: str) -> str:
        """The whole text, with every marker's own in its place."""
        return _MARKER.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def marker_at(self, line: str, column: int) -> tuple[int, int] | None:
        """Where the marker that ends at this column begins and ends, if there is one of ours."""
        for found in _MARKER.finditer(line):
            if found.end() == column and found[0] in self._texts:
                return found.span()
        return None

    def __contains__(self, marker: object) -> bool:
        return marker in self._texts
