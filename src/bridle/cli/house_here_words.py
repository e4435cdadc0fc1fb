"""What commands say to a person, as a house says it: errors of the tree, and remarks in a list.

The commands of this package complain on standard error and raise click's errors. A face that owns
the whole terminal can use neither.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from bridle.cli.exit_codes import HEARD
from bridle.errors import ConfigError


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
    before = HEARD.set(told)
    try:
        yield
    finally:
        HEARD.reset(before)
