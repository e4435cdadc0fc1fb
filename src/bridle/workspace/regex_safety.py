"""Regular expressions from a schema or a model, on text from elsewhere: none may stop the runtime.

Python's engine backtracks, and it holds the interpreter while it does. So for a longer text, the
search is tried on growing beginnings of it first, each ended so that the search must fail. If one
of them takes too long, the whole text is not searched. Lengths grow by a quarter, which limits the
cost of the first one that takes too long, whether the time grows polynomially or exponentially.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from time import thread_time

# Does a regular expression take very long on some texts? `(a+)+$` takes twice as long per letter.

SHORT = (8, 12, 16, 18, 20, 22, 24, 26, 28)  # characters; small steps, since each may double it
_USUAL = ("a", "A", "1", " ", "-", "_", ".", "/", "aA1", "a.", "a-", "a ")


def is_slow(compiled: re.Pattern[str], lengths: Sequence[int], seconds: float) -> bool:
    """Does it take more than so many seconds of CPU time on a text of one of these lengths?"""
    texts = _sample_texts(compiled.pattern, lengths)
    return any(_takes_long(compiled, text, seconds) for text in texts)


def _sample_texts(pattern: str, lengths: Sequence[int]) -> Iterator[str]:
    """Yield texts that almost match: parts of the pattern itself, repeated."""
    words = dict.fromkeys((*re.findall(r"\w+", pattern), *pattern, *_USUAL))
    begins = dict.fromkeys(("", *re.findall(r"^[\w =:@/-]+", pattern)))
    for length in lengths:
        for word in list(words)[:40]:
            for begin in begins:
                yield begin + (word * length)[:length] + "\x00"


def _takes_long(compiled: re.Pattern[str], text: str, seconds: float) -> bool:
    """Is it too slow three times, so that it is not by chance?"""
    for _ in range(3):
        begun = thread_time()
        compiled.search(text)
        if thread_time() - begun < seconds:
            return False
    return True


MAX_LENGTH = 100_000  # characters of a text that is searched
_SAFE_LENGTH = 16  # characters that are searched without a trial
_MAX_SECONDS = 0.01  # of this thread's CPU time for one trial
_END = "\x00"  # hardly any pattern matches a text that ends so


class Unsearchable(Exception):
    """The text is too long for this pattern, or the search would take too long."""


def bounded_search(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """Return a search that is bounded in time. It raises `Unsearchable` if it gives up.

    Raise `ValueError` for a pattern that cannot be read.
    """
    try:
        search = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    is_linear = "(" not in pattern and len(re.findall(r"[*+{]", pattern)) < 2  # cannot blow up

    def matches(text: str) -> bool:
        if (
            len(text) > _SAFE_LENGTH
            and not (is_linear and len(text) < 1000)
            and not _is_searchable(search, text)
        ):
            raise Unsearchable(
                f"a text of {len(text)} characters is too long, or too hard, "
                f"to be checked against the pattern {pattern}"
            )
        return search(text) is not None

    return matches


def _is_searchable(search: Callable[[str], object], text: str) -> bool:
    """Try beginnings of the text. Return whether the whole text may be searched."""
    if len(text) > MAX_LENGTH:
        return False
    length, began = _SAFE_LENGTH, thread_time()
    while length < len(text):
        search(text[:length] + _END)
        now = thread_time()
        if now - began > _MAX_SECONDS:
            return False
        began = now
        length += length // 4
    return True
