"""Regular expressions from a schema or a model, on text from elsewhere: none may stop the runtime.

Python's engine backtracks, and it holds the interpreter while it does. So a longer text is
rehearsed: growing beginnings of it are searched first, each ended so that the search must fail,
and when one of them has cost too much the whole is not tried. Lengths grow by a quarter, which
bounds what the first one that is too dear can cost, be the blow-up polynomial or exponential.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from time import thread_time

# Does a regular expression take for ever on some texts? `(a+)+$` doubles with each letter.

SHORT = (8, 12, 16, 18, 20, 22, 24, 26, 28)  # characters; small steps, for what doubles with each
_USUAL = ("a", "A", "1", " ", "-", "_", ".", "/", "aA1", "a.", "a-", "a ")


def is_slow(compiled: re.Pattern[str], lengths: Sequence[int], seconds: float) -> bool:
    """Does it take longer than so many seconds of our own on a text of one of these lengths?"""
    texts = _trials(compiled.pattern, lengths)
    return any(_takes_long(compiled, text, seconds) for text in texts)


def _trials(pattern: str, lengths: Sequence[int]) -> Iterator[str]:
    """Texts that almost match: what the pattern itself is made of, over and over."""
    words = dict.fromkeys((*re.findall(r"\w+", pattern), *pattern, *_USUAL))
    begins = dict.fromkeys(("", *re.findall(r"^[\w =:@/-]+", pattern)))
    for length in lengths:
        for word in list(words)[:40]:
            for begin in begins:
                yield begin + (word * length)[:length] + "\x00"


def _takes_long(compiled: re.Pattern[str], text: str, seconds: float) -> bool:
    """Three times too slow is no chance of the moment."""
    for _ in range(3):
        begun = thread_time()
        compiled.search(text)
        if thread_time() - begun < seconds:
            return False
    return True


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
