"""What the user gives to a command: a prompt, standard input, and their name."""

import os
import select
import sys

from bridle.errors import EmptyPrompt, UsageError
from bridle.workspace.text import quantity

MAX_BYTES = 10_000_000  # of a prompt
_FIRST_BYTE = 3.0  # seconds to wait for a pipe that perhaps no one writes to


def read_prompt(words: tuple[str, ...], example: str) -> str:
    """Return the words as a prompt, or what is on standard input if there are none."""
    if words == ("-",) or (not words and sys.stdin and not sys.stdin.isatty()):
        text = read_stdin()
    elif not words:
        raise UsageError("there is no prompt", hint=f"For example: {example}")
    else:
        text = check_text(" ".join(words), "the prompt")
    if not text.strip():
        raise EmptyPrompt("the prompt is empty", hint="Describe what to do.")
    return text


def read_piped(*, quiet: bool) -> str:
    """Return what is piped or redirected into standard input; empty if it is a terminal.

    A pipe may be open although nobody writes to it, as in many CI jobs. If nothing comes for three
    seconds, say so and return nothing; once something has come, read to the end.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    if poll.poll(_FIRST_BYTE * 1000):
        return read_stdin()
    if not quiet:
        from bridle.cli.exit_codes import complain

        complain(
            f"nothing came from standard input for {quantity(_FIRST_BYTE, 'second')}, "
            "so the prompt is sent without it",
            'To wait for it, write - after the prompt: bridle run "…" -. '
            "To skip the wait, add </dev/null.",
        )
    return ""


def user_name() -> str:
    """Return the user's login name; "me" if the system knows none."""
    if name := os.environ.get("USER") or os.environ.get("LOGNAME"):
        return name
    import getpass

    try:
        return getpass.getuser() or "me"
    except (OSError, KeyError, ImportError):  # a user id without an entry, as in a container
        return "me"


def read_stdin() -> str:
    """Return everything on standard input, as text."""
    if sys.stdin is None:
        return ""
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"standard input is larger than {MAX_BYTES:,} bytes",
            hint="Put it in a file in the workspace and ask the model to read that file.",
        )
    if (place := data.find(b"\0")) >= 0:
        raise UsageError(
            f"standard input is binary (byte {place}), but a prompt must be text",
            hint="Put it in a file in the workspace; to send an image, use --image.",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 text (byte {error.start})",
            hint="Convert it first, for example with iconv.",
        ) from None


def check_text(text: str, what: str) -> str:
    """Return the text if it came in as valid UTF-8; `what` names it in the error."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise UsageError(f"{what} is not valid UTF-8", hint="Type it again, or convert it first.")
    return text
