r"""Check the person's `redact` patterns, which are matched against everything that is recorded.

A pattern has to be a regular expression, to match something, and to be fast on every text: a
pattern like `(a+)+$` takes longer with each character than with all before it. Speed is tried out,
not proved. An error never repeats a pattern, because it may say what is to be kept secret.
"""

import re
from collections.abc import Iterable

from bridle.errors import ConfigError
from bridle.workspace.regex_safety import SHORT, is_slow

_LENGTHS = (*SHORT, 500, 2000)  # characters of the texts that are tried
_SLOW = 0.004  # seconds of our own: hundreds of times what a text of that length should take
_LONGEST = 1000  # characters of a pattern
_HINT = "Say how often at most, for example \\w{1,64} instead of \\w+, and repeat no repeats."


def check_patterns(patterns: Iterable[str], location: str) -> tuple[str, ...]:
    """Return the patterns. Raise `ConfigError` for the first that cannot be used."""
    checked = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for number, pattern in enumerate(checked, 1):
        check_pattern(pattern, f"{location}, pattern {number}")
    return checked


def check_pattern(pattern: str, location: str) -> None:
    """Raise `ConfigError` if it is not a regular expression, matches an empty text, or is slow."""
    if not isinstance(pattern, str):
        raise ConfigError(
            f"{location}: `redact` should hold text, not {type(pattern).__name__}",
            hint="Write each pattern in single quotes: - 'ACME-[0-9]{6}'.",
        )
    if len(pattern) > _LONGEST:
        raise ConfigError(f"{location}: the pattern is too long", hint="Write it as several.")
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"{location}: the pattern is not a regular expression: {error}",
            hint="Correct it; a sign that stands for itself needs a backslash: \\. \\( \\[ \\+",
        ) from None
    if compiled.search("") is not None:
        raise ConfigError(
            f"{location}: the pattern matches an empty text",
            hint="Let it ask for at least one character: + instead of *.",
        )
    if is_slow(compiled, _LENGTHS, _SLOW):
        raise ConfigError(f"{location}: the pattern may take for ever on some texts", hint=_HINT)
