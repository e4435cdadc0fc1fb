"""`bridle attach`: the REPL on a session that lives elsewhere, on a server or in the background.

The options; what talks is imported once there is somebody to talk to.
"""

from typing import Any

import click


@click.command()
@click.argument("target", metavar="URL|ID")
@click.argument("session", metavar="[ID]", required=False)
@click.option("--watch", is_flag=True, help="Look, and neither send nor answer anything.")
@click.option("--token", metavar="TOKEN", help="The token for a URL. Better: BRIDLE_TOKEN.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Read the token from FILE.",
)
@click.option("--thinking", is_flag=True, help="Show what the model thinks.")
@click.option("--quiet", "-q", is_flag=True, help="Print answers and errors, nothing else.")
def command(target: str, session: str | None, **flags: Any) -> int:
    """Talk to a session on a server (URL), or to one in the background (ID).

    URL is what `bridle serve` prints, or its beginning with a token. Without the ID of a session
    there, a new one is begun. Leaving (Ctrl-D) leaves the session as it is; Ctrl-C interrupts its
    turn. Questions are asked here as everywhere; the first answer wins.

    Exit codes: 0 left, 1 failed, 2 usage, 130 ended by a signal.
    """
    from bridle.cli.attaching import attach, attach_here
    from bridle.cli.turn import run

    if "://" in target:
        return run(attach(target, session or "", flags))
    if session is not None:
        raise click.UsageError(f"{target!r} is no URL, so that there is no place for {session!r}")
    return run(attach_here(target, flags))
