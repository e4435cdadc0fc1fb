"""A key counts for a question only if it was pressed for it: who types ahead answers nothing. Pure.

A question has to have been drawn, and then nothing may have been pressed for a while. Both are
judged by when a key was pressed, not by when somebody got round to it.
"""

QUIET = 0.5  # seconds without any key
_WRITING = 3  # letters in a hurry: somebody writes, and means something else


class Guard:
    """Stands before one question at a time; `drawn` starts it anew."""

    def __init__(self, quiet: float = QUIET) -> None:
        self._quiet = quiet
        self._since: float | None = None  # when it was drawn, or the last key that came too soon
        self._open = False
        self._early: list[str] = []

    def hide(self) -> None:
        """What is asked is not on the screen, or not yet."""
        self._since = None
        self._open = False
        self._early.clear()

    def drawn(self, at: float) -> None:
        """What is asked stands on the screen from now on."""
        self.hide()
        self._since = at

    @property
    def is_drawn(self) -> bool:
        """Has it been on the screen?"""
        return self._since is not None

    def lets(self, at: float, letter: str = "") -> bool:
        """Does a key count that was pressed then? After one that does not, the wait begins anew."""
        if self._since is None:
            return False
        if at < self._since:  # pressed before it was drawn, and handed on late
            self._early.append(letter)
            return False
        if self._open or at - self._since >= self._quiet:
            self._open = True
            self._early.clear()
            return True
        self.slipped(at, letter)
        return False

    def slipped(self, at: float, letter: str = "") -> None:
        """A key that means nothing here: somebody may be writing, so the wait begins anew."""
        if self._since is not None:
            self._since = max(self._since, at)
            self._open = False
            self._early.append(letter)

    def strayed(self) -> str:
        """Letters that were meant for something else, once that is plain; each of them once."""
        if sum(map(bool, self._early)) < _WRITING:
            return ""
        found = "".join(self._early)
        self._early.clear()
        return found
