"""`bridle sessions list`: the newest sessions. Reads the beginnings of files and nothing else."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from bridle.cli.options import TAG
from bridle.cli.session_state import SessionState, session_states
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config.paths import state_folder_str
from bridle.stores.session_index import SessionEntry, count_sessions, list_sessions

_WIDE = 100  # columns from which on there is room for the model


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="List at most N sessions.",
)
@click.option("--tag", metavar="TAG", type=TAG, help="List only sessions with this tag.")
def command(as_json: bool, limit: int, tag: str | None) -> None:
    """List the newest sessions."""
    state = state_folder_str(os.environ)
    matching = list_sessions(state, limit if tag is None else None)
    if tag is not None:
        matching = [entry for entry in matching if tag.removeprefix("#") in entry.tags]
    entries = matching[:limit]
    states = session_states(entries)
    if as_json:
        lines = (json.dumps(_to_json(entry, states[entry.id])) for entry in entries)
        click.echo("[" + ",\n ".join(lines) + "]")
        return
    if not entries:
        click.echo(
            'There are no sessions yet. Start one: bridle run "…"'
            if tag is None
            else f"No session has the tag {plain(tag)}."
        )
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in session_lines(entries, paint, width, states):
        click.echo(line)
    total = count_sessions(state) if tag is None else len(matching)
    if total > limit:
        click.echo(paint.dim(f"{total - limit:,} older sessions: --limit {total} lists them all"))


def session_lines(
    entries: list[SessionEntry], paint: Paint, width: int, states: dict[str, SessionState]
) -> Iterator[str]:
    """Yield one line per session: id, time, model (if there is room), state, title and tags."""
    model_width = min(24, max(len(entry.model) for entry in entries)) if width >= _WIDE else 0
    for entry in entries:
        model = ""
        if model_width:
            model = f"{cut(plain(entry.model), model_width).ljust(model_width)}  "
        label = states[entry.id].label
        state = f"{label}  " if label else ""
        room = max(10, width - 46 - len(model) - len(state))
        tags = cut("".join(f" #{plain(tag)}" for tag in entry.tags), room // 2)
        arrow = "↳ " if entry.parent else ""  # a subagent
        title = cut(plain(entry.title) or "(no prompt)", room - len(tags) - len(arrow))
        line = f"{paint.cyan(plain(entry.id))}  {local_time(entry.updated_at)}  {paint.dim(model)}"
        yield line + paint.yellow(state) + arrow + title + paint.cyan(tags)


def _to_json(entry: SessionEntry, state: SessionState) -> dict[str, object]:
    return {
        "id": entry.id,
        "createdAt": entry.created_at,
        "updatedAt": entry.updated_at,
        "title": entry.title,
        "workspace": entry.workspace,
        "model": entry.model,
        "size": entry.size,
        "tags": entry.tags,
        "busy": state.is_running,
        "holder": state.owner,
        "parked": state.is_parked,
        "waiting": state.pending,
        "parent": entry.parent,
    }


def local_time(stamp: str) -> str:
    """Return a time of the log in the local time zone, to the minute."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return " " * 16
