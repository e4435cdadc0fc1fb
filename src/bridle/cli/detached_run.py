"""`bridle run --detach`: send the prompt to a background process, and return at once.

The session gets the flags and the environment of this call. Flags that make sense only if somebody
waits for the answer are refused.
"""

import os
import sys
from pathlib import Path
from typing import Any

import click

from bridle.cli.background_server import background_server_for, remember_session
from bridle.cli.prompt_run import load_image
from bridle.cli.setup import Setup
from bridle.cli.signals import run_async
from bridle.cli.style import paint_for
from bridle.errors import UsageError
from bridle.messages import Part, Text
from bridle.policy import Mode
from bridle.server import check_installed

_HERE = {  # flags that are about this process
    "as_json": "--json",
    "output_schema": "--output-schema",
    "on_ask": "--on-ask",
}
_EACH = ("provider", "model", "agent", "mode", "yes", "workspace", "worktree", "go_on", "resume")
_SHOWN = ("thinking", "quiet", "images", "detach", *_HERE)


def detach(text: str, flags: dict[str, Any]) -> int:
    """Send the prompt to the background, and print the id of its session."""
    for name, flag in _HERE.items():
        if flags.get(name):
            raise UsageError(
                f"{flag} cannot be combined with --detach",
                hint="It needs a run that waits for the answer.",
            )
    if not text:
        raise UsageError(
            "--detach needs a prompt", hint='For example: bridle run --detach "fix the tests"'
        )
    check_installed()
    images = [load_image(Path(image)) for image in flags["images"]]
    setup = Setup(flags)  # errors are reported now, and not in a log
    if setup.agent == "loop":
        setup.provider()
    return run_async(_detach((*images, Text(text)), flags, setup))


async def _detach(parts: tuple[Part, ...], flags: dict[str, Any], setup: Setup) -> int:
    lasting = {name: value for name, value in flags.items() if name not in (*_EACH, *_SHOWN)}
    given = {name: value for name, value in lasting.items() if value not in (None, False, ())}
    server = background_server_for(given, os.environ)
    await server.start()
    earlier = setup.earlier
    async with server.client() as client:
        session = await client.session(
            earlier.id if earlier is not None else None,
            workspace=str(setup.workspace.resolve()),
            provider=flags["provider"] or "",
            model=flags["model"] or "",
            agent=setup.agent if flags["agent"] else "",
            mode=_mode(flags),
        )
        await session.send(parts, when="queue")
        remember_session(session.id, server)
    click.echo(session.id)
    if not flags["quiet"]:
        say = paint_for(sys.stderr).dim
        click.echo(say(f"  → bridle attach {session.id} · bridle ps · bridle stop ID"), err=True)
    return 0


def _mode(flags: dict[str, Any]) -> Mode | None:
    mode: Mode | None = "auto" if flags["yes"] else flags["mode"]
    return mode
