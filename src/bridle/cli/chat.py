"""`bridle chat`, and `bridle` alone in a terminal: the options, and the way in and out.

The curtain stands before anything heavy is imported. At every end the terminal is as it was, and a
line says how to go on.
"""

import os
import sys
from typing import Any

import click

from bridle.cli.options import turn_options


@click.command()
@turn_options
@click.option("--theme", metavar="NAME", help="bridle-dark or bridle-light.")
def command(**flags: Any) -> int:
    """Talk on a full screen. Esc stops a turn, Ctrl-C twice leaves, F1 shows the keys.

    Exit codes: 0 left, 1 failed, 2 usage, 130 ended by a signal or a closed terminal.
    """
    if not is_screen():
        raise click.UsageError(
            "there is no screen here: this is no terminal, or a very plain one\n"
            "Use `bridle repl`, or `bridle run` for one prompt."
        )
    from bridle.tui.curtain import Curtain, prefers_light

    chosen = flags.get("theme")
    light = chosen == "bridle-light" if chosen else prefers_light()
    with Curtain(light=light, coloured="NO_COLOR" not in os.environ) as curtain:
        from bridle.cli.chat_screen import talk

        outcome = talk(flags)
        curtain.lift()
        return outcome.told()


def is_screen() -> bool:
    """Can a full screen be shown here?"""
    both = sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()
    return bool(both) and os.environ.get("TERM", "") not in ("", "dumb")
