"""The title of the terminal's window: what state the session is in, and which one it is. Pure.

The one that was there before is put aside at the beginning and put back at the end; terminals that
cannot do that ignore it.
"""

from bridle.workspace.text import one_line

SAVE, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
_MARKS = {"waiting for your answer": "? ", "working": "* ", "stopping": "* "}
_LONGEST = 80


def titled(state: str, title: str) -> str:
    """What is to be written. `state` is what the line above the composer says."""
    name = one_line(title, _LONGEST).encode("utf-8", "replace").decode()
    text = f"{_MARKS.get(state, '')}{name} · bridle" if name else f"{_MARKS.get(state, '')}bridle"
    return f"\x1b]2;{text}\x07"


class Title:
    """What was written last: the same is not written twice."""

    def __init__(self) -> None:
        self._last = ""

    def change(self, state: str, title: str) -> str:
        """What is to be written now, if anything."""
        said = titled(state, title)
        if said == self._last:
            return ""
        before = "" if self._last else SAVE
        self._last = said
        return before + said

    def restore(self) -> str:
        """What puts the old one back, if it was changed."""
        changed, self._last = self._last, ""
        return RESTORE if changed else ""
