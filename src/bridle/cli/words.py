"""Text that a person hands in whole: read from standard input, and checked. No event loop."""

import os
import sys

import click

from bridle.workspace.text import quantity

LARGEST = 10_000_000  # bytes of a prompt
_FIRST_BYTE = 3.0  # seconds until something has to come from a pipe that need not be written to


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


def piped(*, quiet: bool) -> str:
    """What is piped or redirected into standard input; empty if it is a terminal.

    A pipe may be open although nobody writes to it, as in many CI jobs: if nothing comes for three
    seconds there is nothing, and a line says so. What has begun to come is read to its end.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not _is_there(sys.stdin.fileno()):
        if not quiet:
            from bridle.cli.failure import complain

            complain(
                f"nothing came from standard input for {quantity(_FIRST_BYTE, 'second')}, "
                "so the prompt is sent without it",
                'To wait for it, write - after the prompt: bridle run "…" -. '
                "To skip the wait, add </dev/null.",
            )
        return ""
    return read_all()


def below(text: str, more: str) -> str:
    """A prompt with what was read from standard input."""
    return f"{text}\n\n<stdin>\n{more.rstrip()}\n</stdin>" if more.strip() else text


def _is_there(handle: int) -> bool:
    """Does something come from there in time, or its end? A file has all it will ever have."""
    import select

    ready = select.poll()
    ready.register(handle, select.POLLIN | select.POLLHUP)
    return bool(ready.poll(_FIRST_BYTE * 1000))


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
            f"standard input is larger than {LARGEST:,} bytes\n"
            "Put it in a file in the workspace and ask the model to read that file."
        )
    if (place := data.find(b"\0")) >= 0:
        raise click.UsageError(
            f"standard input is binary (byte {place}), and a prompt is text\n"
            "Put it in a file in the workspace; send a picture with --image."
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
