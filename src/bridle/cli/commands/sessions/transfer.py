"""`bridle sessions export`, `import`, `fork` and `delete`: whole sessions."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click

from bridle.cli.commands.sessions.verify import report_lines, report_to_json
from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import confirm, print_json, print_result, progress
from bridle.cli.render import notice_lines
from bridle.cli.style import Paint, cut, paint_for
from bridle.errors import UsageError
from bridle.protocols.store import SessionSummary
from bridle.stores import transfer
from bridle.stores.markdown import to_markdown
from bridle.stores.reader import SessionFolder
from bridle.workspace.fs import atomic_write
from bridle.workspace.text import size_of

_MAX_LINE = 1 << 28  # bytes; an imported log has no longer lines


@click.command("export")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(("jsonl", "markdown")),
    default="jsonl",
    show_default=True,
    help="jsonl: the lines of the log, which can be imported. markdown: a page to read.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write to FILE; - is standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--head", is_flag=True, help="Print only the head, as JSON, to be kept elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="With -o: report what was written as JSON.")
def export(
    session_id: str, format_name: str, output: str | None, force: bool, head: bool, as_json: bool
) -> None:
    """Write a session to standard output, or to a FILE that only you can read.

    A head is the number and the hash of the newest record. With it, `verify --head` finds what a
    log cannot show by itself: that its end is missing, or that it was rewritten as a whole.
    """
    folder = session_folder()
    session = find_session(folder, session_id)
    if head:
        newest = transfer.head_of(folder, session.id)
        print_json({"session": session.id, "seq": newest.seq, "hash": newest.hash})
        return
    output = None if output == "-" else output
    if as_json and output is None:
        raise UsageError("--json needs a file that is written", hint="Name one with -o FILE.")
    chunks = export_chunks(folder, session, format_name)
    if output is None:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        return
    size = write_new_file(Path(output), chunks, force=force)
    if as_json:
        print_json({"id": session.id, "format": format_name, "file": output, "size": size})
    else:
        print_result(f"wrote {size_of(size)} to {output}")


def export_chunks(
    folder: SessionFolder, session: SessionSummary, format_name: str
) -> Iterator[bytes]:
    """Yield the session in that format, piece by piece."""
    with progress(f"exporting {session.id}") as advance:
        if format_name == "jsonl":
            done = 0
            for line in transfer.export_lines(folder, session.id):
                done += len(line)
                advance(done, session.size)
                yield line
        else:
            records = folder.read(session.id)
            for text in to_markdown(session, records, lambda event: notice_lines(event, Paint())):
                yield text.encode("utf-8", "backslashreplace")


def write_new_file(path: Path, chunks: Iterable[bytes], *, force: bool = False) -> int:
    """Write a file that only its owner can read, as a whole or not at all; return its size."""
    with _open_new(path, force=force) as file:
        return sum(file.write(chunk) for chunk in chunks)


@contextmanager
def _open_new(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    exists = UsageError(
        f"{path} exists already, and was not changed",
        hint="Name another file, or overwrite it with --force.",
    )
    if not force and os.path.lexists(path):
        raise exists
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent}, so nothing was written",
            hint="Create it first, or name another file.",
        )
    try:
        with (
            atomic_write(path, sync=True, overwrite=force) as handle,
            os.fdopen(handle, "wb", closefd=False) as file,
        ):
            yield file
    except FileExistsError:
        raise exists from None


class _LineLimit:
    """A file whose lines may not be endless, as those of a device could be."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._length = 0  # of the current line

    def fileno(self) -> int:
        return self._source.fileno()

    def readline(self, size: int = -1) -> bytes:
        """Read the next line, or so much of it. Raise `UsageError` if it is too long."""
        data = self._source.readline(size)
        self._length = 0 if data.endswith(b"\n") else self._length + len(data)
        if self._length > _MAX_LINE:
            raise UsageError(
                f"a line is longer than {_MAX_LINE:,} bytes, so nothing was imported",
                hint="Name a file that `bridle sessions export` wrote.",
            )
        return data


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def import_(file: BinaryIO, as_json: bool) -> None:
    """Add a session from an exported FILE (- is standard input).

    It keeps its id, or gets a new one if the id is taken. The log is verified: damage is reported,
    and the intact records are kept.
    """
    from bridle.engine.engine import new_id

    source = cast(BinaryIO, _LineLimit(file))
    with progress("importing") as advance:
        session_id, report = transfer.import_log(session_folder(), source, new_id, advance)
    if as_json:
        print_json(report_to_json(session_id, report))
        return
    for line in report_lines(session_id, report, paint_for(sys.stdout)):
        click.echo(line)
    print_result(
        "imported",
        f"bridle sessions show {session_id}",
        f'bridle run --resume {session_id} "…"',
    )


@click.command("fork")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--at", type=click.IntRange(min=1), metavar="SEQ", help="The last record to copy.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def fork(session_id: str, at: int | None, as_json: bool) -> None:
    """Copy a session, as a whole or up to the record SEQ, into a new session.

    `bridle sessions show` prints the numbers of records. The original session and the files of the
    workspace are not changed.
    """
    folder = session_folder()
    source = find_session(folder, session_id)
    name = fork_session(folder, source.id, at)
    if as_json:
        print_json({"id": name, "from": source.id, "at": at})
    else:
        print_result(name, f'bridle run --resume {name} "…"   continues there')


def fork_session(folder: SessionFolder, session_id: str, at: int | None = None) -> str:
    """Copy a session up to that record; return the id of the copy."""
    from bridle.engine.engine import new_id

    name = new_id()
    with progress(f"forking {session_id}") as advance:
        transfer.fork(folder, session_id, at, name, advance)
    return name


@click.command("delete")
@click.argument("session_ids", metavar="ID...", type=SESSION, nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def delete(session_ids: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Delete sessions with all that they contain. This cannot be undone.

    A session that a process has open is not deleted.
    """
    folder = session_folder()
    named = (find_session(folder, name) for name in session_ids)
    sessions = list({session.id: session for session in named}.values())
    titles = ", ".join(f"{one.id} ({cut(one.title, 40) or 'no prompt'})" for one in sessions)
    if not confirm(f"Permanently delete {titles}?", yes=yes):
        print_result("nothing was deleted")
        return 1
    for session in sessions:
        transfer.delete(folder, session.id)
        if not as_json:
            print_result(f"deleted {session.id}")
    if as_json:
        print_json({"deleted": [session.id for session in sessions]})
    return 0
