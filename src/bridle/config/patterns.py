r"""Is a pattern of the person's own fit to stand before the log? It meets every word that is said.

It has to be a regular expression, to match something, and to be quick on every text: a pattern like
`(a+)+$` takes longer with each character than all that came before. Tried out, not proved. A
pattern is never repeated in an error: it may say what is to be kept secret.
"""

import re
from collections.abc import Iterable

from bridle.errors import ConfigError
from bridle.workspace.slowness import SHORT, is_slow

_LENGTHS = (*SHORT, 500, 2000)  # characters of a text that is tried
_SLOW = 0.004  # seconds of our own: hundreds of times what a text of that length should take
_LONGEST = 1000  # characters of a pattern
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
    if is_slow(compiled, _LENGTHS, _SLOW):
        raise ConfigError(f"{place}: the pattern may take for ever on some texts", hint=_HINT)
