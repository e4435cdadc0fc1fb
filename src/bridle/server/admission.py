"""How many streams may be open: in all, and for each name."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from bridle.protocols.session_errors import Refusal


class TooManyStreams(Refusal):
    """There is no room for another stream."""

    status_code = 429
    code = "too_many_streams"
    hint = "Close one, or watch all sessions through the one stream of /api/events."


class Admission:
    """Counts who is in."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._names: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._names.total()

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """Room for one as long as this lasts. Raise `TooManyStreams`."""
        if len(self) >= self._most:
            raise TooManyStreams(f"{self._most} streams are open, and there may be no more")
        if self._names[name] >= self._each:
            who = f"{name} has" if name else "one name has"
            raise TooManyStreams(f"{who} {self._each} streams open, and there may be no more")
        self._names[name] += 1
        try:
            yield
        finally:
            self._names[name] -= 1
            if not self._names[name]:
                del self._names[name]
