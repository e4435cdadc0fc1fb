"""What commands say to a person, as a house says it: errors of the tree, and remarks in a list.

The commands of this package complain on standard error and raise click's errors. A face that owns
the whole terminal can use neither.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import click

from bridle.errors import ConfigError

_MARK, _ARROW = "bridle: ", "  → "


@contextmanager
def plainly() -> Iterator[None]:
    """What click would say to a person becomes an error of ours."""
    try:
        yield
    except click.ClickException as error:
        message, _, hint = error.format_message().partition("\n")
        raise ConfigError(message, error, hint=hint) from error


@contextmanager
def overheard(told: list[str] | None) -> Iterator[None]:
    """What is complained about inside goes into the list, a remark each; None leaves it."""
    if told is None:
        yield
        return
    heard = io.StringIO()
    try:
        with redirect_stderr(heard):
            yield
    finally:
        told += remarks(heard.getvalue())


def remarks(said: str) -> list[str]:
    """Complaints as they stand on standard error: each in one line, with its advice."""
    found: list[str] = []
    for line in said.splitlines():
        if line.startswith(_ARROW) and found:
            found[-1] += f". {line.removeprefix(_ARROW)}"
        elif line.strip():
            found.append(line.removeprefix(_MARK).strip())
    return found
