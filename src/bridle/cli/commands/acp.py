"""`bridle acp`: bridle as an editor's agent, over standard input and output."""

import sys
from typing import Any

import click

from bridle.cli.exit_codes import complain
from bridle.cli.options import turn_options

_CHOSEN_BY_EDITOR = ("go_on", "resume", "thinking", "workspace", "worktree")


@click.command("acp")
@turn_options
@click.option(
    "--allow-auto",
    is_flag=True,
    help="Let the editor choose the mode auto, in which nothing needs approval.",
)
def command(**flags: Any) -> int:
    """Serve an editor as its agent: the Agent Client Protocol over standard input and output.

    The editor starts this command, and names the folders to work in. Sessions are stored as usual:
    `bridle sessions` lists them, and approvals can be given in another terminal.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        complain("this command is started by editors; it waits for one", "Press Ctrl-D to quit.")
    from bridle.cli.acp_host import serve_editor

    return serve_editor(flags)


command.params = [param for param in command.params if param.name not in _CHOSEN_BY_EDITOR]
