"""How far a long piece of work has come: one line on standard error, rewritten, gone at the end.

Nothing where nobody looks: in a pipe or a file there is no line.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bridle.cli.style import erasing
from bridle.workspace.text import size_of as size_of

_FIRST = 0.3  # seconds; what is quicker needs no line
_EVERY = 0.1


class Progress:
    """Is told bytes done and bytes in all; writes at most ten times a second."""

    def __init__(
        self, what: str, *, shown: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._clock = clock
        self._back = erasing()
        self._shown = shown and bool(self._back)
        self._next = clock() + _FIRST
        self._stands = False

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if not self._shown or now < self._next:
            return
        self._next = now + _EVERY
        share = f"{100 * done // total:3d} % of " if total else ""
        sys.stderr.write(f"{self._back}{self._what}  {share}{size_of(total or done)}")
        sys.stderr.flush()
        self._stands = True

    def clear(self) -> None:
        """Leave no trace."""
        if self._stands:
            sys.stderr.write(self._back)
            sys.stderr.flush()
            self._stands = False


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A line that lives as long as the work, where standard error is a terminal."""
    line = Progress(what, shown=sys.stderr.isatty())
    try:
        yield line
    finally:
        line.clear()
