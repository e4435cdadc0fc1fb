"""What commands print: results, JSON, a question before something drastic, a progress bar."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from bridle.cli.style import paint_for, plain
from bridle.errors import UsageError
from bridle.workspace.text import neutral

_DELAY = 0.3  # seconds; shorter work shows no bar


def print_result(line: str, *hints: str) -> None:
    """Print a line, and below it what can be done next."""
    paint = paint_for(sys.stdout)
    click.echo(neutral(line, keep=""))
    for hint in hints:
        click.echo(paint.dim(f"  → {neutral(hint, keep='')}"))


def print_json(value: Any) -> None:
    """Print one JSON value."""
    click.echo(json.dumps(value, indent=1))


def confirm(question: str, *, yes: bool) -> bool:
    """Return whether the person agrees: with `--yes`, or now. Raise `UsageError` without either."""
    if yes:
        return True
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(
            f"this needs a confirmation: {question}", hint="No one can be asked here: add --yes."
        )
    click.echo(f"{plain(question)} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that is called with (bytes done, bytes in all), and shows a bar.

    It is shown only in a terminal, and only if the work takes longer than a moment.
    """
    is_shown = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    started, bar = time.monotonic(), None

    def advance(done: int, total: int) -> None:
        nonlocal bar
        if not is_shown or time.monotonic() - started < _DELAY:
            return
        if bar is None:
            bar = click.progressbar(length=total or done, label=label, file=sys.stderr)
            bar.update_min_steps = max(1, (total or done) // 500)
        bar.update(done - bar.pos)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.render_finish()
