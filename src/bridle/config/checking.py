"""Does a value fit its setting? Says no in a person's words, with the place and what to do.

A value is never repeated in an error: it may be a key.
"""

from typing import Any

import msgspec

from bridle.config.settings import TYPES
from bridle.errors import ConfigError


def fitting(key: str, value: Any, place: str, *, strict: bool = True) -> Any:
    """The value in its type; `strict=False` takes numbers that are written as text."""
    try:
        fitted = msgspec.convert(value, TYPES[key], strict=strict)
    except msgspec.ValidationError as error:
        subject = place if place.startswith("--") else f"{place}: `{key}`"
        raise ConfigError(f"{subject} {_in_words(str(error))}", hint=_wanted(key)) from None
    if isinstance(fitted, str) and not fitted.isprintable():
        raise ConfigError(f"{place}: `{key}` holds unreadable characters", hint="Write it anew.")
    return fitted


_WORDS = {
    " | null`": "`",
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a mapping",
    " >= ": " of at least ",
    " <= ": " of at most ",
    " > ": " above ",
}


def _in_words(problem: str) -> str:
    if problem.startswith("Invalid enum value"):
        return "has a value that is not among the choices"
    for word, plain in _WORDS.items():
        problem = problem.replace(word, plain)
    return "should be " + problem.removeprefix("Expected ").replace(", got ", ", not ")


def _wanted(key: str) -> str:
    choices = getattr(TYPES[key], "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return f"Choose one of {', '.join(choices)}."
    if TYPES[key] is str:
        return "Text that could be read as a number, a date or yes/no needs quotes."
    if TYPES[key] in (bool, bool | None):
        return "Write true or false."
    if key == "redact":
        return "Write one pattern a line, in single quotes: - 'ACME-[0-9]{6}'."
    if key == "hosts":
        return "Write one host a line: - docs.python.org."
    if key == "agent_env":
        return "Write one name a line: - GEMINI_API_KEY."
    return "Write a plain number, without quotes or units."


def nearest(key: str) -> str:
    """A hint for a name that is not a setting."""
    from difflib import get_close_matches

    if near := get_close_matches(key, [*TYPES, "limits"], 1, 0.6):
        return f"Did you mean `{near[0]}`?"
    return f"There are: {', '.join(TYPES)}."


def check_key(key: str, origin: str) -> None:
    """A key goes into an HTTP header: no spaces, no line ends, nothing but ASCII."""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(
            f"{origin}: the API key holds characters that no key has",
            hint="Copy the key again, without quotes, spaces or line ends.",
        )


def check_url(url: str, origin: str) -> None:
    """Only what a browser would call a web address."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{origin}: the base URL has to begin with http:// or https://",
            hint="For example http://127.0.0.1:11434/v1 for a local server.",
        )
