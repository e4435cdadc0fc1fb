"""`bridle repl`: a conversation line by line, for terminals without a full screen."""

from typing import Any

import click

from bridle.cli.options import turn_options


@click.command()
@turn_options
@click.option("--quiet", "-q", is_flag=True, help="Print only answers and errors.")
def command(**flags: Any) -> int:
    """Chat line by line. Ctrl-C interrupts a turn, Ctrl-D quits, /help lists the commands.

    Exit codes: 0 quit, 1 failed, 2 usage, 5 no model, 130 ended by SIGTERM or a closed terminal.
    """
    from bridle.cli.repl.loop import run_repl

    return run_repl(flags)
