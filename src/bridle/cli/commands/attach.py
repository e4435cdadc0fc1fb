"""`bridle attach`: a session on a server, in the background, or open in another process."""

from typing import Any

import click

from bridle.cli.commands.chat import is_installed, is_screen
from bridle.cli.options import SESSION
from bridle.errors import UsageError


@click.command()
@click.argument("target", metavar="URL|ID", type=SESSION)
@click.argument("session", metavar="[ID]", type=SESSION, required=False)
@click.option("--watch", is_flag=True, help="Only watch: send and answer nothing.")
@click.option("--plain", is_flag=True, help="Line by line, like `bridle repl`; no full screen.")
@click.option("--token", metavar="TOKEN", help="Token for a URL. Safer: set BRIDLE_TOKEN.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Read the token from FILE.",
)
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--quiet", "-q", is_flag=True, help="Print only answers and errors.")
def command(target: str, session: str | None, **flags: Any) -> int:
    """Connect to a session on a server (URL), or to a session of this machine (ID).

    URL is the address that `bridle serve` prints; its beginning is enough if you give a token. If
    you omit the ID of a session on the server, a new session is started. In a terminal, the session
    is shown on the full screen. With --plain it is shown line by line: Ctrl-C interrupts the turn,
    and Ctrl-D quits.

    The session keeps running when you quit, close the terminal, or the input ends. Approvals are
    requested in every attached terminal; the first answer counts.

    Exit codes: 0 quit, 1 failed, 2 usage, 130 ended by a signal.
    """
    if session is not None and "://" not in target:
        raise UsageError(
            "a session ID is only allowed after a server URL",
            hint=f"To attach to a session of this machine: bridle attach {session}",
        )
    from bridle.cli.session_attach import attach_to

    is_plain = flags["plain"] or flags["watch"] or flags["quiet"] or flags["thinking"]
    full_screen = not is_plain and is_screen() and is_installed()
    return attach_to(target, session or "", flags, full_screen=full_screen)
