"""`bridle run --detach`: the prompt goes to a process in the background, and we come back at once.

The session has what the flags and the environment of this very call say. What only makes sense
where somebody waits for the answer is refused.
"""

import os
import sys
from pathlib import Path
from typing import Any

import click

from bridle.cli.images import load_image
from bridle.cli.setup import Setup
from bridle.cli.signals import run_async
from bridle.cli.style import paint_for
from bridle.cli.supervising import ensure, note_session, supervisor_for
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
    """Send the prompt to the background; its session's id on standard output."""
    for name, flag in _HERE.items():
        if flags.get(name):
            raise click.UsageError(f"{flag} is for a run that is waited for, and not for --detach")
    if not text:
        raise click.UsageError("there is no prompt to send to the background")
    check_installed()
    images = [load_image(Path(image)) for image in flags["images"]]
    setup = Setup(flags)  # what cannot work is said now, and not into a log
    if setup.agent == "loop":
        setup.provider()
    return run_async(_detach((*images, Text(text)), flags, setup))


async def _detach(parts: tuple[Part, ...], flags: dict[str, Any], setup: Setup) -> int:
    lasting = {name: value for name, value in flags.items() if name not in (*_EACH, *_SHOWN)}
    given = {name: value for name, value in lasting.items() if value not in (None, False, ())}
    supervisor = supervisor_for(given, os.environ)
    await ensure(supervisor)
    earlier = setup.earlier
    async with supervisor.client() as client:
        session = await client.session(
            earlier.id if earlier is not None else None,
            workspace=str(setup.workspace.resolve()),
            provider=flags["provider"] or "",
            model=flags["model"] or "",
            agent=setup.agent if flags["agent"] else "",
            mode=_mode(flags),
        )
        await session.send(parts, when="queue")
        note_session(session.id, supervisor)
    click.echo(session.id)
    if not flags["quiet"]:
        say = paint_for(sys.stderr).dim
        click.echo(say(f"  → bridle attach {session.id} · bridle ps · bridle stop ID"), err=True)
    return 0


def _mode(flags: dict[str, Any]) -> Mode | None:
    mode: Mode | None = "auto" if flags["yes"] else flags["mode"]
    return mode
