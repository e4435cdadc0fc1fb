"""Accepts a key for a request only if it was pressed for it: typing ahead answers nothing. Pure.

A request has to have been drawn, and then no key may have been pressed for a while. Both are judged
by when a key was pressed, not by when it is handled.
"""

QUIET = 0.5  # seconds without any key
_WRITING = 3  # letters in a hurry: somebody writes, and means something else


class KeyGuard:
    """Stands before one request at a time; `set_drawn` starts it anew."""

    def __init__(self, quiet: float = QUIET) -> None:
        self._quiet = quiet
        self._since: float | None = None  # when it was drawn, or the last key that came too soon
        self._is_open = False
        self._early: list[str] = []

    def hide(self) -> None:
        """Accept nothing: the request is not on the screen, or not yet."""
        self._since = None
        self._is_open = False
        self._early.clear()

    def set_drawn(self, at: float) -> None:
        """The request is on the screen from now on."""
        self.hide()
        self._since = at

    @property
    def is_drawn(self) -> bool:
        """Whether the request has been on the screen."""
        return self._since is not None

    def accepts(self, at: float, letter: str = "") -> bool:
        """Whether a key pressed then counts. After one that does not, the wait begins anew."""
        if self._since is None:
            return False
        if at < self._since:  # pressed before it was drawn, and handled late
            self._early.append(letter)
            return False
        if self._is_open or at - self._since >= self._quiet:
            self._is_open = True
            self._early.clear()
            return True
        self.reject(at, letter)
        return False

    def reject(self, at: float, letter: str = "") -> None:
        """Begin the wait anew: after a key without a meaning, somebody may be writing."""
        if self._since is not None:
            self._since = max(self._since, at)
            self._is_open = False
            self._early.append(letter)

    def take_stray_text(self) -> str:
        """Return the letters that were meant for something else, once that is plain; only once."""
        if sum(map(bool, self._early)) < _WRITING:
            return ""
        text = "".join(self._early)
        self._early.clear()
        return text
