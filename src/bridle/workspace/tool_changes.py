"""Which files tools other than commands are changing in this process, with permission.

A command that runs meanwhile, perhaps in another session, must not be taken for the one who did it.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_under_way: Counter[str] = Counter()
_done: set[str] = set()


@contextmanager
def changing(root: str, paths: Iterable[str]) -> Iterator[None]:
    """While a tool may change these files, named from the root or by their whole paths."""
    whole = [path if path.startswith("/") else f"{root}/{path}" for path in paths]
    with _lock:
        _under_way.update(whole)
    try:
        yield
    finally:
        with _lock:
            _under_way.subtract(whole)
            for path in whole:
                if not _under_way[path]:
                    del _under_way[path]
            _done.update(whole)


def take(root: str) -> set[str]:
    """The files below a root that tools are changing now, or have changed since this was asked."""
    with _lock:
        done = {path for path in _done if path.startswith(f"{root}/")}
        _done.difference_update(done)
        return done.union(_under_way)
