"""`bridle attach`: a session that lives elsewhere: on a server, in the background, in a terminal.

The options; what talks is imported once there is somebody to talk to.
"""

from typing import Any

import click

from bridle.cli.options import SESSION


@click.command()
@click.argument("target", metavar="URL|ID", type=SESSION)
@click.argument("session", metavar="[ID]", type=SESSION, required=False)
@click.option("--watch", is_flag=True, help="Look, and neither send nor answer anything.")
@click.option("--plain", is_flag=True, help="Line by line, as `bridle repl`; no screen.")
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
    """Talk to a session on a server (URL), or to one that this machine runs (ID).

    URL is what `bridle serve` prints, or its beginning with a token. Without the ID of a session
    there, a new one is begun. In a terminal it is shown on a full screen; --plain shows it line by
    line, where Ctrl-D leaves and Ctrl-C interrupts the turn. Leaving does not stop the session,
    whether you leave with Ctrl-D, close the terminal, send SIGTERM or the input ends. Questions are
    asked in every attached terminal; the first answer wins.

    Exit codes: 0 left, 1 failed, 2 usage, 130 ended by a signal.
    """
    from bridle.cli.attaching import attach, attach_here
    from bridle.cli.signals import run_async

    if session is not None and "://" not in target:
        raise click.UsageError(f"{target!r} is no URL, so that there is no place for {session!r}")
    if _is_for_the_screen(flags):
        from bridle.cli.visiting import on_screen

        return on_screen(target, session or "", flags)
    if "://" in target:
        return run_async(attach(target, session or "", flags))
    return run_async(attach_here(target, flags))


def _is_for_the_screen(flags: dict[str, Any]) -> bool:
    """Is there a screen, and is it wanted?"""
    from bridle.cli.commands.chat import is_installed, is_screen

    asked = flags["plain"] or flags["watch"] or flags["quiet"] or flags["thinking"]
    return not asked and is_screen() and is_installed()
