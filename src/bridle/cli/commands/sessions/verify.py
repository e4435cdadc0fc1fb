"""`bridle sessions verify`: check that a log is what was written."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, progress
from bridle.cli.style import Paint, paint_for, plain
from bridle.errors import StoreFailed, UsageError
from bridle.stores.verify import Finding, Head, Report, verify
from bridle.workspace.text import quantity

_MAX_HEAD = 1 << 16  # bytes of a head on standard input
_MAX_LINES = 20  # findings that are listed one by one


@click.command("verify")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="Check all sessions.")
@click.option(
    "--head",
    "head_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="A head from `export --head`: with it, a missing end of the log is found, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of reports.")
def command(session_id: str | None, every: bool, head_file: str | None, as_json: bool) -> int:
    """Check that a log is complete and unchanged: hashes, their chain, and the record numbers.

    Damage that a repair record in the log already describes is listed as known.

    Exit codes: 0 no damage, or only known damage; 1 damaged; 2 usage.
    """
    if bool(session_id) == every:
        raise click.UsageError("name a session, or use --all")
    if head_file and every:
        raise click.UsageError("--head belongs to one session: name it instead of --all")
    folder = session_folder()
    if session_id:
        ids = [find_session(folder, session_id).id]
    else:
        ids = [session.id for session in folder.sessions()]
    head = _read_head(Path(head_file), ids[0]) if head_file else None
    reports = {name: _check(folder.path(name), head) for name in ids}
    if as_json:
        print_json([report_to_json(name, report) for name, report in reports.items()])
    else:
        for name, report in reports.items():
            for line in report_lines(name, report, paint_for(sys.stdout)):
                click.echo(line)
        if not reports:
            click.echo("There are no sessions yet.")
    return int(any(is_damaged(report) for report in reports.values()))


def _check(path: Path, head: Head | None) -> Report:
    try:
        if path.parent.is_symlink():
            raise StoreFailed("the log cannot be read: its folder is a symlink")
        with progress(f"checking {path.parent.name}") as advance:
            return verify(path, head, advance)
    except StoreFailed as error:  # with --all, the other sessions are still checked
        return Report(0, 0, None, (Finding(0, 0, "unreadable", error.message),))


def is_damaged(report: Report) -> bool:
    """Return whether there is damage that no repair record describes."""
    return any(not finding.known for finding in report.findings)


def report_lines(session_id: str, report: Report, paint: Paint) -> list[str]:
    """Return what was found, as lines for a person."""
    name = paint.cyan(plain(session_id))
    notes = [paint.dim(f"    {plain(note)}") for note in report.notes]
    if not report.findings:
        records = quantity(report.records, "record")
        return [f"{paint.green('✓')} {name}  no damage, {records}", *notes]
    new = sum(not finding.known for finding in report.findings) + report.more
    known = len(report.findings) + report.more - new
    counts = [f"{new:,} damaged"] if new else []
    counts += [f"{known:,} known from a repair"] if known else []
    counts.append(f"{quantity(report.records, 'record')} intact")
    mark = paint.red("✗") if new else paint.yellow("!")
    lines = [f"{mark} {name}  {', '.join(counts)}"]
    for finding in report.findings[:_MAX_LINES]:
        detail = f": {finding.detail}" if finding.detail else ""
        place = f"    after #{finding.after}, byte {finding.offset:,}"
        line = f"{place}: {finding.what}{plain(detail)}"
        lines.append(paint.dim(f"{line} (known)") if finding.known else line)
    if (rest := len(report.findings[_MAX_LINES:]) + report.more) > 0:
        lines.append(paint.dim(f"    and {rest:,} more; --json lists up to a thousand"))
    return [*lines, *notes]


def report_to_json(session_id: str, report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    fields: dict[str, Any] = msgspec.to_builtins(report)
    return {"id": session_id, "ok": not is_damaged(report), "findings": [], **fields}


def _read_head(path: Path, session_id: str) -> Head:
    try:
        raw = sys.stdin.buffer.read(_MAX_HEAD) if str(path) == "-" else path.read_bytes()
        fields = json.loads(raw)
        head = Head(fields["seq"], fields["hash"])
        if not isinstance(head.seq, int) or not isinstance(head.hash, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(
            f"{path}: this is not a head", hint="`bridle sessions export ID --head` prints one."
        ) from None
    if fields.get("session") not in (None, session_id):
        raise UsageError(
            f"{path}: this is the head of another session, {fields['session']}",
            hint="Name that session, or use its own head.",
        )
    return head
