"""What a command says at its end: a line for a person, or a JSON object for a program."""

import sys
from typing import Any

import click

from bridle.cli.style import paint_for, plain


def tell(line: str, *hints: str) -> None:
    """A line, and what can be done next."""
    paint = paint_for(sys.stdout)
    click.echo(_harmless(line))
    for hint in hints:
        click.echo(paint.dim(f"  → {_harmless(hint)}"))


def _harmless(line: str) -> str:
    """A title, a tag or a path may hold anything."""
    if line.isascii() and line.isprintable():
        return line
    from bridle.workspace.text import neutral

    return neutral(line, keep="")


def tell_json(value: Any) -> None:
    """One JSON value."""
    import json

    click.echo(json.dumps(value, indent=1))


def confirm(question: str, *, yes: bool) -> bool:
    """Did the person say yes, beforehand or now? Without a person it has to be beforehand."""
    if yes:
        return True
    if not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError(f"{question}\nNobody is here to be asked: say it with --yes.")
    click.echo(f"{plain(question)} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
