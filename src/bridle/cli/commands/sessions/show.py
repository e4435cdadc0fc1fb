"""`bridle sessions show`: a session as text."""

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.render import write_json_line
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.transcript import SessionLines, transcript_heading
from bridle.cli.user_input import user_name
from bridle.errors import StoreFailed
from bridle.protocols.codec import to_record
from bridle.protocols.store import Record
from bridle.stores.inbox_files import read_messages
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.stores.transfer import export_lines


@click.command("show")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--json", "as_json", is_flag=True, help="Print the lines of the log unchanged.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--follow", "-f", is_flag=True, help="Keep showing what happens, until Ctrl-C.")
def command(session_id: str, as_json: bool, thinking: bool, follow: bool) -> None:
    """Show what happened in a session.

    #24 is the number of a record, as `fork --at 24` and `rewind --to 24` take it.
    """
    if as_json and follow:
        raise click.UsageError("--follow and --json cannot be combined")
    folder = session_folder()
    session = find_session(folder, session_id)
    if as_json:
        for raw in export_lines(folder, session.id):
            write_json_line(raw)
        return
    records = _readable_records(folder, session.id, session.size)
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    log = folder.path(session.id)
    _print(transcript_heading(session, str(log), paint))
    transcript = SessionLines(paint, width, thinking=thinking, me=user_name())
    last = 0
    for record in records:
        last = record.seq
        _print(transcript.lines(record))
    if follow:
        from bridle.cli.signals import run_async  # asyncio, which takes longer than most logs

        run_async(_follow(folder, session.id, last, transcript))
    _print(transcript.totals(describe_owner(log)))
    _print(_inbox_lines(log.parent, paint, width))


def _readable_records(folder: SessionFolder, session_id: str, size: int) -> Iterator[Record]:
    """Return the records of a log. Raise `StoreFailed` if none of them can be read."""
    records = folder.read(session_id)
    first = next(records, None)
    if first is None and size:
        raise StoreFailed(
            f"the log of session {session_id} is damaged: no record in it can be read",
            hint=f"Nothing was changed. `bridle sessions verify {session_id}` says what is wrong.",
        )
    return chain([] if first is None else [first], records)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


async def _follow(
    folder: SessionFolder, session_id: str, after: int, transcript: SessionLines
) -> int:
    from bridle.service.log_follower import LogFollower
    from bridle.stores.file_catalog import FileCatalog

    follower = await LogFollower.open(FileCatalog(folder.folder), session_id, after)
    with closing(follower):
        while True:
            sys.stdout.flush()
            while lines := await follower.read():
                for line in lines:
                    _print(transcript.lines(to_record(line) if isinstance(line, bytes) else line))
            sys.stdout.flush()
            await follower.wait()


def _inbox_lines(session: Path, paint: Paint, width: int) -> Iterator[str]:
    """Yield what others have sent and no process has read yet."""
    for message in read_messages(session):
        is_prompt = message.verb == "send"
        text = plain(" ".join(message.content.split())) if is_prompt else message.verb
        yield cut(f"  {paint.yellow('…')} in the inbox ({plain(message.by)}): {text}", width)
