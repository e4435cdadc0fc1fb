"""`bridle chat`, and `bridle` alone in a terminal: the options, and the way in and out.

The curtain stands before anything heavy is imported. At every end the terminal is as it was, and a
line says how to go on. If the packages for the full screen are not installed, it starts the REPL.
"""

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import CHOOSE, THEMES, to_settings, turn_options
from bridle.errors import UsageError

if TYPE_CHECKING:
    from bridle.tui.splash import Splash


@click.command()
@turn_options
@click.option("--theme", type=click.Choice(THEMES), help="The colours, this time.")
def command(**flags: Any) -> int:
    """Talk on a full screen. Esc stops a turn, Ctrl-C twice leaves, F1 shows the keys.

    Exit codes: 0 left, 1 failed, 2 usage, 5 no model, 130 ended by a signal or a closed
    terminal.
    """
    if not is_screen():
        if flags["resume"] == CHOOSE:
            to_settings(flags)  # says how to find out the id
        raise UsageError(
            "there is no screen here: this is no terminal, or a very plain one",
            hint="Use `bridle repl`, or `bridle run` for one prompt.",
        )
    if not is_installed():
        from bridle.cli.repl.loop import open_repl
        from bridle.cli.signals import run_async

        return run_async(open_repl({**flags, "quiet": False}).run())
    with splash_for(flags.get("theme")) as splash:
        gc.disable()  # as long as it opens; see `run_screen`
        from bridle.cli.full_screen import talk

        outcome = talk(flags)
        splash.close()
        return outcome.told()


def splash_for(theme: str | None) -> "Splash":
    """The first picture, in the colours that the screen will have."""
    from bridle.tui.splash import Splash
    from bridle.tui.theme import initial_theme

    chosen = initial_theme(theme, os.environ)
    return Splash(chosen, colored=not os.environ.get("NO_COLOR"))


def is_installed() -> bool:
    """Return whether the packages for the full screen are there; if not, say how to get them."""
    from importlib.util import find_spec

    if find_spec("textual") is not None:
        return True
    from bridle.cli.style import paint_for
    from bridle.distribution import install_hint

    said = f"The full screen is not installed. {install_hint('tui')}"
    click.echo(paint_for(sys.stderr).dim(said), err=True)
    return False


def is_screen() -> bool:
    """Can a full screen be shown here?"""
    both = sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()
    return bool(both) and os.environ.get("TERM", "") not in ("", "dumb")
