"""`bridle chat`, and `bridle` alone in a terminal: the full screen.

A first frame is drawn before anything large is imported. When the screen is closed, the terminal is
as it was before, and a line says how to continue. If the packages for the full screen are not
installed, the REPL starts instead.
"""

import gc
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import CHOOSE, THEMES, to_settings, turn_options
from bridle.cli.style import paint_for
from bridle.distribution import install_hint
from bridle.errors import UsageError

if TYPE_CHECKING:
    from bridle.tui.splash import Splash


@click.command()
@turn_options
@click.option("--theme", type=click.Choice(THEMES), help="Colours of the screen, this time.")
def command(**flags: Any) -> int:
    """Chat on a full screen. Esc stops a turn, Ctrl-C twice quits, F1 shows the keys.

    Exit codes: 0 quit, 1 failed, 2 usage, 5 no model, 130 ended by a signal or a closed
    terminal.
    """
    if not is_screen():
        if flags["resume"] == CHOOSE:
            to_settings(flags)  # its error says how to find the id
        raise UsageError(
            "the full screen needs a terminal that can show it",
            hint="Use `bridle repl`, or `bridle run` for one prompt.",
        )
    if not is_installed():
        from bridle.cli.repl.loop import run_repl

        return run_repl({**flags, "quiet": False})
    with splash_for(flags.get("theme")) as splash:
        gc.disable()  # until the screen is drawn; see `run_screen`
        from bridle.cli.full_screen import chat

        outcome = chat(flags)
        splash.close()
        return outcome.report()


def splash_for(theme: str | None) -> "Splash":
    """Return the first frame, in the colours that the screen will have."""
    from bridle.tui.splash import Splash
    from bridle.tui.theme import initial_theme

    chosen = initial_theme(theme, os.environ)
    return Splash(chosen, colored=not os.environ.get("NO_COLOR"))


def is_installed() -> bool:
    """Return whether the full screen is installed; if not, say how to install it."""
    if find_spec("textual") is not None:
        return True
    message = f"The full screen is not installed. {install_hint('tui')}"
    click.echo(paint_for(sys.stderr).dim(message), err=True)
    return False


def is_screen() -> bool:
    """Return whether this terminal can show a full screen."""
    both = sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()
    return bool(both) and os.environ.get("TERM", "") not in ("", "dumb")
