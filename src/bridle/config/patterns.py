r"""Is a pattern of the person's own fit to stand before the log? It meets every word that is said.

It has to be a regular expression, to match something, and to be quick on every text: a pattern like
`(a+)+$` takes longer with each character than all that came before. Tried out, not proved. A
pattern is never repeated in an error: it may say what is to be kept secret.
"""

import re
from collections.abc import Iterable, Iterator
from time import thread_time

from bridle.errors import ConfigError

_STEPS = (8, 12, 16, 20, 24, 28, 500, 2000)  # characters; a bad one is slow at once, not for hours
_SLOW = 0.004  # seconds of our own: hundreds of times what a text of that length should take
_LONGEST = 1000  # characters of a pattern
_USUAL = ("a", "A", "1", " ", "-", "_", ".", "/", "aA1", "a.", "a-", "a ")
_HINT = "Say how often at most, for example \\w{1,64} instead of \\w+, and repeat no repeats."


def check_patterns(patterns: Iterable[str], place: str) -> tuple[str, ...]:
    """The patterns, each of them fit. Raise `ConfigError`."""
    found = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for number, pattern in enumerate(found, 1):
        check_pattern(pattern, f"{place}, pattern {number}")
    return found


def check_pattern(pattern: str, place: str) -> None:
    """Raise `ConfigError` for what is no pattern, matches nothing at all, or is slow."""
    if not isinstance(pattern, str):
        raise ConfigError(
            f"{place}: `redact` should hold text, not {type(pattern).__name__}",
            hint="Write each pattern in single quotes: - 'ACME-[0-9]{6}'.",
        )
    if len(pattern) > _LONGEST:
        raise ConfigError(f"{place}: the pattern is too long", hint="Write it as several.")
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"{place}: the pattern is no regular expression: {error}",
            hint="Mend it; what stands for itself needs a backslash: \\. \\( \\[ \\+",
        ) from None
    if compiled.search("") is not None:
        raise ConfigError(
            f"{place}: the pattern matches even where there is nothing",
            hint="Let it ask for at least one character: + instead of *.",
        )
    if _is_slow(compiled):
        raise ConfigError(f"{place}: the pattern may take for ever on some texts", hint=_HINT)


def _is_slow(compiled: re.Pattern[str]) -> bool:
    return any(_takes_long(compiled, text) for text in _trials(compiled.pattern))


def _trials(pattern: str) -> Iterator[str]:
    """Texts that almost match: what the pattern itself is made of, over and over."""
    words = dict.fromkeys((*re.findall(r"\w+", pattern), *pattern, *_USUAL))
    begins = dict.fromkeys(("", *re.findall(r"^[\w =:@/-]+", pattern)))
    for length in _STEPS:
        for word in list(words)[:40]:
            for begin in begins:
                yield begin + (word * length)[:length] + "\x00"


def _takes_long(compiled: re.Pattern[str], text: str) -> bool:
    """Three times too slow is no chance of the moment."""
    for _ in range(3):
        begun = thread_time()
        compiled.search(text)
        if thread_time() - begun < _SLOW:
            return False
    return True
