"""Regular expressions from a schema or a model, on text from elsewhere: none may stop the runtime.

Python's engine backtracks, and it holds the interpreter while it does. So a longer text is
rehearsed: growing beginnings of it are searched first, each ended so that the search must fail,
and when one of them has cost too much the whole is not tried. Lengths grow by a quarter, which
bounds what the first one that is too dear can cost, be the blow-up polynomial or exponential.
"""

import re
from collections.abc import Callable
from time import thread_time

LONGEST = 100_000  # characters; beyond that a text is not searched
_FREE = 16  # characters that are searched without a rehearsal
_DEAR = 0.01  # seconds of this thread's own time for one rehearsal
_END = "\x00"  # what hardly any pattern lets a text end in


class Unsearchable(Exception):
    """The text is too long, or too dear, for this pattern."""


def bounded_search(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """A search that is bounded in time; it raises `Unsearchable` where it gave up.

    Raise `ValueError` for a pattern that cannot be read.
    """
    try:
        search = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    tame = "(" not in pattern and len(re.findall(r"[*+{]", pattern)) < 2  # cannot blow up

    def fits(text: str) -> bool:
        if len(text) > _FREE and not (tame and len(text) < 1000) and not _rehearse(search, text):
            raise Unsearchable(
                f"a text of {len(text)} characters is too long, or too hard, "
                f"to be checked against the pattern {pattern}"
            )
        return search(text) is not None

    return fits


def _rehearse(search: Callable[[str], object], text: str) -> bool:
    """May the whole text be searched?"""
    if len(text) > LONGEST:
        return False
    length, began = _FREE, thread_time()
    while length < len(text):
        search(text[:length] + _END)
        now = thread_time()
        if now - began > _DEAR:
            return False
        began = now
        length += length // 4
    return True
