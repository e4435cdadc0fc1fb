"""`bridle sessions`: a list that is there at once, and one session told as a story.

Reads files and nothing else: no event loop, no provider, no lock.
"""

import os
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config import state_folder
from bridle.stores.glance import Glance, glance


@click.group(name="sessions")
def command() -> None:
    """List the sessions, or show one."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
def list_sessions(as_json: bool, limit: int) -> None:
    """The newest sessions."""
    every = glance(state_folder(os.environ))
    found = every[:limit]
    if as_json:
        import json

        click.echo(json.dumps([_named(one) for one in found], indent=1))
        return
    if not found:
        click.echo('There are no sessions yet. Start one: bridle run "…"')
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in listed(found, paint, width):
        click.echo(line)
    if len(every) > limit:
        click.echo(paint.dim(f"{len(every) - limit:,} older ones: --limit {len(every)}"))


def listed(found: list[Glance], paint: Paint, width: int) -> Iterator[str]:
    """A session a line: id, when, model, title."""
    widest = min(24, max(len(one.model) for one in found))
    for one in found:
        model = cut(plain(one.model), widest).ljust(widest)
        title = cut(plain(one.title) or "(no prompt)", max(10, width - 48 - widest))
        yield f"{paint.cyan(plain(one.id))}  {when(one.updated_at)}  {paint.dim(model)}  {title}"


def _named(one: Glance) -> dict[str, object]:
    """With the keys of the log."""
    camel = {"created_at": "createdAt", "updated_at": "updatedAt"}
    return {camel.get(name, name): value for name, value in one._asdict().items()}


def when(stamp: str) -> str:
    """A time of the log, in the local zone, to the minute."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return "                "


@command.command("show")
@click.argument("session_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="The log's records, one a line.")
@click.option("--thinking", is_flag=True, help="Show what the model thought.")
def show_session(session_id: str, as_json: bool, thinking: bool) -> None:
    """What happened in a session. The beginning of its ID is enough."""
    from bridle.cli.find import find_session
    from bridle.cli.story import Story, heading
    from bridle.stores.reading import SessionFolder

    folder = SessionFolder(state_folder(os.environ))
    found = find_session(folder, session_id)
    if as_json:
        from bridle.cli.render import json_line

        for record in folder.read(found.id):
            sys.stdout.buffer.write(json_line(record))
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in heading(found, str(folder.path(found.id)), paint):
        click.echo(line)
    story = Story(paint, width, thinking=thinking)
    for record in folder.read(found.id):
        for line in story.lines(record):
            click.echo(line)
    click.echo(story.total())
