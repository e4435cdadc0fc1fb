"""`bridle trace`: where a session's time and money went, from its log alone. It only reads."""

import sys
from typing import TYPE_CHECKING

import click

from bridle.cli.options import SESSION
from bridle.cli.style import paint_for, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridle.cli.trace_tree import Branch, Lines, Scale
    from bridle.protocols.store import SessionSummary
    from bridle.stores.reader import SessionFolder

_DEEP = 99
_WIDEST = 132  # columns; a wider line is hard to follow with the eye


@click.command("trace")
@click.argument("session_id", metavar="SESSION", type=SESSION)
@click.option("--json", "as_json", is_flag=True, help="A JSON array of spans, children first.")
@click.option("--turn", type=click.IntRange(min=1), default=None, metavar="N", help="One turn.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=_DEEP,
    metavar="N",
    help="1 turns, 2 steps, 3 calls, more: what tasks did in sessions of their own.",
)
def command(session_id: str, as_json: bool, turn: int | None, depth: int) -> None:
    """Where the time and the money of a session went: turns, steps, model and tool calls.

    The beginning of its ID is enough. It is read from the log, also while the session runs; no
    collector is needed. Times are those of the records: a model call begins where it could have
    been asked for.
    """
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    found = find_session(folder, session_id)
    if as_json:
        _tell_json(folder, found.id, depth, turn or 0)
    else:
        _tell(folder, found, depth, turn or 0)


def _tell_json(folder: "SessionFolder", session_id: str, depth: int, turn: int) -> None:
    """One span a line, written as it is found."""
    import json

    from bridle.cli.trace_tree import Flat

    flat, before, write = Flat(folder, depth, turn), "[", sys.stdout.write
    for span in flat.spans(session_id):
        write(f"{before}{json.dumps(span)}")
        before = ",\n "
    if turn and turn not in flat.turns:
        raise _no_turn(turn, max(flat.turns, default=0))
    click.echo("[]" if before == "[" else "]")


def _tell(folder: "SessionFolder", found: "SessionSummary", depth: int, turn: int) -> None:
    from bridle.cli.trace_tree import Lines, Reading
    from bridle.stores.locks import describe_owner
    from bridle.workspace.text import flat

    paint, width = paint_for(sys.stdout), min(_WIDEST, width_of(sys.stdout))
    lines = Lines(paint, width, runs=bool(describe_owner(folder.path(found.id))))
    reading = Reading(folder, found.id, depth, turn)
    below = _Below(folder, lines, depth)
    told = False
    for branch in reading.branches():
        if not told:
            title = flat(found.title)
            click.echo(f"{paint.cyan(flat(found.id))}  {title}"[: width * 2].rstrip())
            click.echo(lines.head())
            told = True
        for line in below.lines(branch, 0, None, (found.id,)):
            click.echo(line)
    if not told and turn:
        raise _no_turn(turn, reading.totals.newest)
    if not told:
        click.echo("Nothing has happened in this session yet.")
    elif not turn:
        click.echo(lines.total(reading.totals))


class _Below:
    """Branches with what their tasks did, which stands in other logs."""

    def __init__(self, folder: "SessionFolder", lines: "Lines", depth: int) -> None:
        self._folder = folder
        self._lines = lines
        self._depth = depth

    def lines(
        self, branch: "Branch", level: int, scale: "Scale | None", path: tuple[str, ...]
    ) -> "Iterator[str]":
        """A branch, line by line."""
        from bridle.cli.trace_tree import Scale

        scale = scale or Scale(branch.span.start, branch.span.end)
        yield self._lines.row(branch, level, scale)
        for one in branch.below:
            yield from self.lines(one, level + 1, scale, path)
        if branch.more:
            yield self._lines.note(f"and {branch.more:,} more", level + 1)
        if branch.span.child and level + 1 < self._depth:
            yield from self._task(branch.span.child, level + 1, scale, path)

    def _task(
        self, child: str, level: int, scale: "Scale", path: tuple[str, ...]
    ) -> "Iterator[str]":
        from bridle.cli.trace_tree import Reading, is_new
        from bridle.errors import AgentError

        if not is_new(child, path):
            return
        try:
            for branch in Reading(self._folder, child, self._depth - level).branches():
                yield from self.lines(branch, level, scale, (*path, child))
        except AgentError:  # it was deleted since, or cannot be read
            yield self._lines.note("its log is gone", level)


def _no_turn(turn: int, newest: int) -> click.UsageError:
    has = f"It has turns up to {newest}." if newest else "It has no turns yet."
    return click.UsageError(f"the session has no turn {turn}\n{has}")
