"""`bridle sessions verify`: check that a log is what was written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, paint_for, plain
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.stores.verify import Head, Report

_HEAD = 1 << 16  # bytes of a head that comes on standard input
_MOST = 20  # findings that are listed one by one


@click.command("verify")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="All sessions.")
@click.option(
    "--head",
    "head_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="A head from `export --head`: then a cut of the end is found, too.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON array of reports.")
def verify(session_id: str | None, every: bool, head_file: str | None, as_json: bool) -> int:
    """Check that a log is what was written: each line's hash, their chain and their numbers.

    Exit codes: 0 nothing wrong, 1 something is, 2 usage. What a repair record in the log tells of
    is shown, and counts as known.
    """
    if bool(session_id) == every:
        raise click.UsageError("name one session, or say --all")
    if head_file and every:
        raise click.UsageError("a head belongs to one session: name it")
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    ids = [find_session(folder, session_id).id] if session_id else _all_ids(folder)
    head = _read_head(Path(head_file), ids[0]) if head_file else None
    reports = {one: _check(folder.path(one), head) for one in ids}
    if as_json:
        from bridle.cli.told import tell_json

        tell_json([to_plain(one, report) for one, report in reports.items()])
    else:
        for one, report in reports.items():
            for line in report_lines(one, report, paint_for(sys.stdout)):
                click.echo(line)
        if not reports:
            click.echo("There are no sessions yet.")
    return int(any(is_wrong(report) for report in reports.values()))


def _all_ids(folder: Any) -> list[str]:
    return [one.id for one in folder.sessions()]


def _check(path: Path, head: "Head | None") -> "Report":
    from bridle.cli.progress import progress
    from bridle.errors import StoreFailed
    from bridle.stores.verify import Finding, Report
    from bridle.stores.verify import verify as check

    try:
        if path.parent.is_symlink():
            raise StoreFailed("the log cannot be read: its folder is a symlink")
        with progress(f"checking {path.parent.name}") as shown:
            return check(path, head, shown)
    except StoreFailed as error:  # one that cannot be read is wrong, and the others are looked at
        return Report(0, 0, None, (Finding(0, 0, "unreadable", error.message),))


def is_wrong(report: "Report") -> bool:
    """Is there anything that nobody was told of?"""
    return any(not finding.known for finding in report.findings)


def report_lines(session_id: str, report: "Report", paint: Paint) -> list[str]:
    """What was found, for a person."""

    name = paint.cyan(plain(session_id))
    if not report.findings:
        records = quantity(report.records, "record")
        return [f"{paint.green('✓')} {name}  nothing wrong, {records}", *_notes(report, paint)]
    fresh = sum(not finding.known for finding in report.findings) + report.more
    known = len(report.findings) + report.more - fresh
    said = [f"{fresh:,} wrong"] if fresh else []
    said += [f"{known:,} known from a repair"] if known else []
    mark = paint.red("✗") if fresh else paint.yellow("!")
    lines = [f"{mark} {name}  {', '.join(said)}, {quantity(report.records, 'record')} sound"]
    for one in report.findings[:_MOST]:
        detail = f": {one.detail}" if one.detail else ""
        line = f"    after #{one.after}, byte {one.offset:,}: {one.what}{plain(detail)}"
        lines.append(paint.dim(f"{line} (known)") if one.known else line)
    if (rest := len(report.findings[_MOST:]) + report.more) > 0:
        lines.append(paint.dim(f"    and {rest:,} more; --json tells of up to a thousand"))
    return [*lines, *_notes(report, paint)]


def _notes(report: "Report", paint: Paint) -> list[str]:
    return [paint.dim(f"    {plain(note)}") for note in report.notes]


def to_plain(session_id: str, report: "Report") -> dict[str, Any]:
    """A report as JSON has it."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(report)
    return {"id": session_id, "ok": not is_wrong(report), "findings": [], **found}


def _read_head(path: Path, session_id: str) -> "Head":
    import json

    from bridle.stores.verify import Head

    try:
        raw = sys.stdin.buffer.read(_HEAD) if str(path) == "-" else path.read_bytes()
        found = json.loads(raw)
        head = Head(found["seq"], found["hash"])
        if not isinstance(head.seq, int) or not isinstance(head.hash, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise click.UsageError(
            f"{path}: this is no head\n`bridle sessions export ID --head` prints one."
        ) from None
    if found.get("session") not in (None, session_id):
        raise click.UsageError(f"{path}: this is the head of session {found['session']}")
    return head
