"""`bridle sessions list`: the newest sessions. Reads the beginnings of files and nothing else."""

import os
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from bridle.cli.options import TAG
from bridle.cli.session_state import Doing, doing
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config.paths import state_folder_str
from bridle.stores.session_index import SessionEntry, count_sessions
from bridle.stores.session_index import list_sessions as glance

_WIDE = 100  # columns from which on a list has room for the model


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
@click.option("--tag", metavar="TAG", type=TAG, help="Only those with this tag.")
def list_sessions(as_json: bool, limit: int, tag: str | None) -> None:
    """The newest sessions."""
    state = state_folder_str(os.environ)
    every = glance(state, limit if tag is None else None)
    if tag is not None:
        every = [one for one in every if tag.removeprefix("#") in one.tags]
    found = every[:limit]
    does = doing(found)
    if as_json:
        import json

        lines = (json.dumps(_named(one, does[one.id])) for one in found)
        click.echo("[" + ",\n ".join(lines) + "]")
        return
    if not found:
        click.echo(_none(tag))
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in listed(found, paint, width, does):
        click.echo(line)
    total = count_sessions(state) if tag is None else len(every)
    if total > limit:
        click.echo(paint.dim(f"{total - limit:,} older ones: --limit {total}"))


def _none(tag: str | None) -> str:
    if tag is not None:
        return f"No session has the tag {plain(tag)}."
    return 'There are no sessions yet. Start one: bridle run "…"'


def listed(
    found: list[SessionEntry], paint: Paint, width: int, does: dict[str, Doing]
) -> Iterator[str]:
    """A session a line: id, when, model (where there is room), what it does, title, tags."""
    widest = min(24, max(len(one.model) for one in found)) if width >= _WIDE else 0
    for one in found:
        model = f"{cut(plain(one.model), widest).ljust(widest)}  " if widest else ""
        tags = "".join(f" #{plain(tag)}" for tag in one.tags)
        state = f"{words}  " if (words := does[one.id].words) else ""
        room = max(10, width - 46 - len(model) - len(state))
        tags = cut(tags, room // 2)
        below = "↳ " if one.parent else ""  # a task of another session
        title = below + cut(plain(one.title) or "(no prompt)", room - len(tags) - len(below))
        line = f"{paint.cyan(plain(one.id))}  {when(one.updated_at)}  {paint.dim(model)}"
        yield line + paint.yellow(state) + title + paint.cyan(tags)


def _named(one: SessionEntry, does: Doing) -> dict[str, object]:
    """With the keys of the log."""
    return {
        "id": one.id,
        "createdAt": one.created_at,
        "updatedAt": one.updated_at,
        "title": one.title,
        "workspace": one.workspace,
        "model": one.model,
        "size": one.size,
        "tags": one.tags,
        "busy": does.running,
        "holder": does.holder,
        "parked": does.parked,
        "waiting": does.waiting,
        "parent": one.parent,
    }


def when(stamp: str) -> str:
    """A time of the log, in the local zone, to the minute."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return "                "
