"""Text that a person hands in whole: read from standard input, and checked. No event loop."""

import os
import sys

import click

LARGEST = 10_000_000  # bytes of a prompt


def prompt_of(given: tuple[str, ...], example: str) -> str:
    """The prompt: the words that were given, or what is on standard input."""
    if given == ("-",) or (not given and sys.stdin and not sys.stdin.isatty()):
        text = read_all()
    elif not given:
        raise click.UsageError(f"there is no prompt\nFor example: {example}")
    else:
        text = check_text(" ".join(given), "the prompt")
    if not text.strip():
        from bridle.errors import EmptyPrompt

        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return text


def person() -> str:
    """Who sits here, as the system knows them; "me" where it knows nobody."""
    if named := os.environ.get("USER") or os.environ.get("LOGNAME"):
        return named
    import getpass

    try:
        return getpass.getuser() or "me"
    except (OSError, KeyError, ImportError):  # a user id without an entry, as in a container
        return "me"


def read_all() -> str:
    """Everything on standard input, as text."""
    if sys.stdin is None:
        return ""
    data = sys.stdin.buffer.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise click.UsageError(
            f"the prompt on standard input is larger than {LARGEST:,} bytes\n"
            "Put it into a file of the workspace and ask for that to be read."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 text (byte {error.start})\n"
            "Convert it first, for example with iconv."
        ) from None


def check_text(text: str, what: str) -> str:
    """Text that came in as bytes has to be UTF-8."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise click.UsageError(f"{what} is not valid UTF-8\nType it again, or convert it first.")
    return text
