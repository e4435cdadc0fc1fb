"""Regular expressions from a schema, on text from a model: neither may stop the runtime.

Python's engine backtracks, and it holds the interpreter while it does. So a longer text is
rehearsed: growing beginnings of it are searched first, each ended so that the search must fail,
and when one of them has cost too much the whole is not tried. Lengths grow by a quarter, which
bounds what the first one that is too dear can cost, be the blow-up polynomial or exponential.
"""

import re
from collections.abc import Callable
from time import thread_time

from bridle.errors import ConfigError

LONGEST = 100_000  # characters; beyond that a text is not searched
_FREE = 16  # characters that are searched without a rehearsal
_DEAR = 0.01  # seconds of this thread's own time for one rehearsal
_END = "\x00"  # what hardly any pattern lets a text end in


class Unsearchable(Exception):
    """The text is too long, or too dear, for this pattern."""


def compile_pattern(pattern: object, where: str) -> Callable[[str], bool]:
    """A search that is bounded in time; it raises `Unsearchable` where it gave up."""
    try:
        search = re.compile(pattern).search if isinstance(pattern, str) else None
    except (re.error, OverflowError, RecursionError) as error:
        raise _refused(where, str(error)) from error
    if search is None:
        raise _refused(where, "it is not a text")

    def fits(text: str) -> bool:
        if len(text) > _FREE and not _rehearse(search, text):
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


def _refused(where: str, why: str) -> ConfigError:
    return ConfigError(
        f"The JSON Schema is broken at {where}: the pattern cannot be used: {why}.",
        hint="Write the pattern as Python's `re` understands it.",
    )
