r"""Does a regular expression take for ever on some texts? `(a+)+$` doubles with each letter.

Tried out on texts that almost match, the short ones first, so a bad one shows itself at once. Tried
out, not proved. What the expression is for is not known here.
"""

import re
from collections.abc import Iterator, Sequence
from time import thread_time

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
