"""`bridle sessions export`, `import`, `fork` and `delete`: whole logs, carried and copied."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from bridle.cli.options import SESSION
from bridle.cli.style import cut
from bridle.cli.told import confirm, tell, tell_json
from bridle.workspace.fs import atomic_write

if TYPE_CHECKING:
    from bridle.protocols.store import SessionSummary
    from bridle.stores.reader import SessionFolder


@click.command("export")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "markdown")),
    default="jsonl",
    show_default=True,
    help="The log's own lines, which can be imported; or a page to read.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write to FILE (- is standard output).",
)
@click.option("--force", is_flag=True, help="Write over a FILE that is there.")
@click.option("--head", is_flag=True, help="Print the head alone, as JSON: keep it elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="With -o: say what was written as JSON.")
def export(
    session_id: str, form: str, output: str | None, force: bool, head: bool, as_json: bool
) -> None:
    """Write a session to standard output, or to a FILE that only you can read.

    A head is the number and the hash of the newest record. `verify --head` finds with it what no
    log can show by itself: that its end was cut off, or that all of it was written anew.
    """
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    found = find_session(folder, session_id)
    if head:
        from bridle.stores.transfer import head_of

        newest = head_of(folder, found.id)
        tell_json({"session": found.id, "seq": newest.seq, "hash": newest.hash})
        return
    output = None if output == "-" else output
    if as_json and output is None:
        raise click.UsageError("--json says what was written to a file: name one with -o")
    pieces = pieces_of(folder, found, form)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    size = write_private(Path(output), pieces, force=force)
    if as_json:
        tell_json({"id": found.id, "format": form, "file": output, "size": size})
    else:
        from bridle.cli.progress import size_of

        tell(f"{size_of(size)} written to {output}")


def pieces_of(folder: "SessionFolder", found: "SessionSummary", form: str) -> Iterator[bytes]:
    """The session in that format, piece by piece."""
    from bridle.cli.progress import progress
    from bridle.stores.transfer import export_lines

    with progress(f"exporting {found.id}") as shown:
        done = 0
        if form == "jsonl":
            for line in export_lines(folder, found.id):
                done += len(line)
                shown(done, found.size)
                yield line
        else:
            from bridle.cli.event_lines import notice_lines
            from bridle.cli.style import Paint
            from bridle.stores.markdown import to_markdown

            told = to_markdown(found, folder.read(found.id), lambda one: notice_lines(one, Paint()))
            for text in told:
                yield text.encode("utf-8", "backslashreplace")


def write_private(path: Path, pieces: Iterable[bytes], *, force: bool = False) -> int:
    """A new file that only its owner can read, there whole or not at all; its size."""
    with _made(path, force=force) as file:
        return sum(file.write(piece) for piece in pieces)


@contextmanager
def _made(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    if not force and os.path.lexists(path):
        raise _there(path)
    if not path.parent.is_dir():
        raise click.UsageError(
            f"the folder {path.parent} is not there, and nothing was written\n"
            "Make it first, or name another file."
        )
    try:
        with (
            atomic_write(path, sync=True, overwrite=force) as handle,
            os.fdopen(handle, "wb", closefd=False) as file,
        ):
            yield file
    except FileExistsError:
        raise _there(path) from None


def _there(path: Path) -> click.UsageError:
    words = f"{path} is there already, and was left as it is"
    return click.UsageError(f"{words}\nName another file, or write over it with --force.")


class _Bounded:
    """A source whose lines end somewhere: one without an end is no log, and may be endless."""

    def __init__(self, source: BinaryIO, longest: int = 1 << 28) -> None:
        self._source = source
        self._longest = longest
        self._since = 0  # bytes since the last end of a line

    def fileno(self) -> int:
        """The source's own."""
        return self._source.fileno()

    def readline(self, size: int = -1) -> bytes:
        """The next line, or so much of it. Raise `click.UsageError` where it has no end."""
        data = self._source.readline(size)
        self._since = 0 if data.endswith(b"\n") else self._since + len(data)
        if self._since > self._longest:
            raise click.UsageError(
                f"{self._longest:,} bytes came without the end of a line, and nothing was imported"
                "\nName a file that `bridle sessions export` wrote."
            )
        return data


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def import_(file: BinaryIO, as_json: bool) -> None:
    """Take in a session from an exported FILE (- is standard input).

    It keeps its id where that is free, and gets a new one otherwise.

    The log is checked on the way; what is damaged in it is said, and the rest is kept.
    """
    from bridle.cli.commands.sessions.verify import report_lines, to_plain
    from bridle.cli.find import session_folder
    from bridle.cli.progress import progress
    from bridle.engine.engine import new_id
    from bridle.stores.transfer import import_log

    with progress("importing") as shown:
        session_id, report = import_log(
            session_folder(), cast(BinaryIO, _Bounded(file)), new_id, shown
        )
    if as_json:
        tell_json(to_plain(session_id, report))
        return
    from bridle.cli.style import paint_for

    for line in report_lines(session_id, report, paint_for(sys.stdout)):
        click.echo(line)
    tell("imported", f"bridle sessions show {session_id}", f'bridle run --resume {session_id} "…"')


@click.command("fork")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--at", type=click.IntRange(min=1), metavar="SEQ", help="The last record to take.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def fork(session_id: str, at: int | None, as_json: bool) -> None:
    """Make a new session that begins as another did: all of it, or up to the record SEQ.

    `show` says the numbers of records. The first session stays as it is; so do the files.
    """
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    found = find_session(folder, session_id)
    name = fork_session(folder, found.id, at)
    if as_json:
        tell_json({"id": name, "from": found.id, "at": at})
    else:
        tell(name, f'bridle run --resume {name} "…"   goes on from there')


def fork_session(folder: "SessionFolder", session_id: str, at: int | None = None) -> str:
    """A copy that goes its own way; its id."""
    from bridle.cli.progress import progress
    from bridle.engine.engine import new_id
    from bridle.stores.transfer import fork as copy

    name = new_id()
    with progress(f"forking {session_id}") as shown:
        copy(folder, session_id, at, name, shown)
    return name


@click.command("delete")
@click.argument("session_ids", metavar="ID...", type=SESSION, nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def delete(session_ids: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Delete sessions, with all that was said in them. This cannot be undone.

    A session that a process holds is not deleted.
    """
    from bridle.cli.find import find_session, session_folder
    from bridle.stores.transfer import delete as remove

    folder = session_folder()
    found = list(
        {one.id: one for one in (find_session(folder, name) for name in session_ids)}.values()
    )
    names = ", ".join(f"{one.id} ({cut(one.title, 40) or 'no prompt'})" for one in found)
    if not confirm(f"Delete {names} for good?", yes=yes):
        tell("nothing was deleted")
        return 1
    for one in found:
        remove(folder, one.id)
        if not as_json:
            tell(f"deleted {one.id}")
    if as_json:
        tell_json({"deleted": [one.id for one in found]})
    return 0
