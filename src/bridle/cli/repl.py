"""`bridle repl`: the options. What talks is imported once there is somebody to talk to."""

from typing import Any

import click

from bridle.cli.options import turn_options


@click.command()
@turn_options
@click.option("--quiet", "-q", is_flag=True, help="Print answers and errors, nothing else.")
def command(**flags: Any) -> int:
    """Talk line by line. Ctrl-C interrupts a turn, Ctrl-D leaves; /help lists the commands.

    Exit codes: 0 left, 1 failed, 2 usage, 5 no model, 130 ended by SIGTERM or a closed terminal.
    """
    from bridle.cli.repl_loop import open_repl
    from bridle.cli.signals import run_async

    return run_async(open_repl(flags).run())
