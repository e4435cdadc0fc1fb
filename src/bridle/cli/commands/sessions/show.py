"""`bridle sessions show`: a session as text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, cut, paint_for, plain, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridle.cli.story import Story
    from bridle.protocols.store import Record
    from bridle.stores.reader import LogReader, SessionFolder


_EVERY = 0.1  # seconds between two looks at a log that is followed


@click.command("show")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--json", "as_json", is_flag=True, help="The log's own lines, untouched.")
@click.option("--thinking", is_flag=True, help="Show what the model thought.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
def show(session_id: str, as_json: bool, thinking: bool, follow: bool) -> None:
    """What happened in a session. The beginning of its ID is enough.

    #24 is the number of a record: `fork --at 24` and `rewind --to 24` go there.
    """
    from bridle.cli.find import find_session, session_folder
    from bridle.cli.story import Story, heading
    from bridle.cli.user_input import user_name
    from bridle.stores.locks import describe_owner

    folder = session_folder()
    found = find_session(folder, session_id)
    if as_json and follow:
        raise click.UsageError("--follow tells a story: leave --json out")
    if as_json:
        from bridle.cli.event_lines import write_json_line
        from bridle.stores.transfer import export_lines

        for raw in export_lines(folder, found.id):
            write_json_line(raw)
        return
    records = _some_records(folder, found.id, found.size)
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    _echo(heading(found, str(folder.path(found.id)), paint))
    story = Story(paint, width, thinking=thinking, me=user_name())
    last = 0
    for record in records:
        last = record.seq
        _echo(story.lines(record))
    if follow:
        with folder.reader(found.id, last) as log:
            _go_on(log, story)
    _echo(story.total(describe_owner(folder.path(found.id))))
    _echo(_letters(folder.path(found.id).parent, paint, width))


def _some_records(folder: "SessionFolder", session_id: str, size: int) -> "Iterator[Record]":
    """The records of a log. Raise `StoreFailed` where none of it can be read."""
    from itertools import chain

    from bridle.errors import StoreFailed

    records = folder.read(session_id)
    first = next(records, None)
    if first is None and size:
        raise StoreFailed(
            f"the log of session {session_id} is damaged: no record in it can be read",
            hint=f"Nothing was changed. `bridle sessions verify {session_id}` says what is wrong.",
        )
    return chain([] if first is None else [first], records)


def _echo(lines: "Iterator[str]") -> None:
    for line in lines:
        click.echo(line)


def _go_on(log: "LogReader", story: "Story") -> None:
    """What comes, for as long as somebody looks."""
    import time

    sys.stdout.flush()
    while True:
        for record in log.read_new():
            _echo(story.lines(record))
        sys.stdout.flush()
        time.sleep(_EVERY)


def _letters(session: Path, paint: Paint, width: int) -> "Iterator[str]":
    """What others have sent and nobody has taken yet."""
    from bridle.stores.inbox_files import read_messages

    for one in read_messages(session):
        said = plain(" ".join(one.content.split())) if one.verb == "send" else one.verb
        yield cut(f"  {paint.yellow('…')} in the inbox ({plain(one.by)}): {said}", width)
