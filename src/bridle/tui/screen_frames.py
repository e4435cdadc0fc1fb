"""When the screen is drawn next: at most about 20 times a second. Knows the clock alone."""

from time import perf_counter

FRAME = 0.05  # seconds between two drawings
_SHARE = 4  # a drawing that takes long is followed by so many times that time for the keys


class Frames:
    """When to draw next: at once after a pause, else in step."""

    def __init__(self) -> None:
        self._due = 0.0

    def wait(self) -> float:
        """Seconds until the next drawing may be."""
        return max(0.0, self._due - perf_counter())

    def drawn(self, began: float) -> None:
        """One was made; it began then."""
        now = perf_counter()
        self._due = now + max(FRAME - (now - began), _SHARE * (now - began))
