"""The spans of a session, read from its log and printed as a tree or as JSON.

A log is read one turn at a time, in bounded memory. The session of a subagent is read when its task
has ended.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from msgspec import Struct, field

from bridle.cli.style import Paint, cells, cut, paint_for, width_of
from bridle.engine.trace import Span, SpanBuilder
from bridle.errors import AgentError, UsageError
from bridle.messages import ToolCall
from bridle.presentation.calls import call_subject
from bridle.protocols.store import SessionSummary
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import flat, quantity

MAX_SPANS = 2_000  # of one turn that are shown; the others are counted
MAX_SESSIONS = 8  # nested subagents; there are never so many, but a log can say anything
_MAX_SUBJECT = 200  # characters
_MAX_WIDTH = 132  # columns; a longer line is hard to follow with the eye


class Branch(Struct, eq=False):
    """A span that has ended, its subject, and its children, of which `more` were not kept."""

    span: Span
    subject: str = ""
    children: "list[Branch]" = field(default_factory=list)
    more: int = 0


class Totals:
    """The sums of a whole session."""

    def __init__(self) -> None:
        self.root = Span("session", "")
        self.turns = 0
        self.newest = 0
        self.worked = 0  # milliseconds in turns, without waits
        self.waited = 0


class TraceReader:
    """Reads one session as branches: its turns, its waits, and what else is beside them."""

    def __init__(self, folder: SessionFolder, session_id: str, depth: int, turn: int = 0) -> None:
        self.totals = Totals()
        self._records = folder.read(session_id)
        self._log = folder.path(session_id)
        self._depth = depth
        self._wanted = turn
        self._kept: dict[int, Branch] = {}
        self._ended: list[Branch] = []

    def branches(self) -> Iterator[Branch]:
        """Yield each as soon as it has ended, then those still open. Raise `AgentError`."""
        tracing = SpanBuilder(self._handle)
        for record in self._records:
            tracing.apply(record)
            if self._ended:
                yield from self._take_ended()
        tracing.close(end_of_open_spans(self._log))
        yield from self._take_ended()

    def _take_ended(self) -> list[Branch]:
        ended, self._ended = self._ended, []
        return ended

    def _handle(self, span: Span) -> None:
        if span.kind == "session":
            self.totals.root = span
        elif span.over:
            self._count(span)
            self._end(span)
        else:
            self._begin(span)

    def _begin(self, span: Span) -> None:
        above = span.parent
        if above is None or above.kind == "session":
            if self._wanted not in (0, span.number):
                return
            self._kept = {id(span): Branch(span, _subject(span))}
        elif (parent := self._kept.get(id(above))) is not None and _level(span) <= self._depth:
            if len(self._kept) >= MAX_SPANS:
                parent.more += 1
                return
            branch = self._kept[id(span)] = Branch(span, _subject(span))
            parent.children.append(branch)

    def _end(self, span: Span) -> None:
        span.request = span.response = None  # they may be as large as a file
        if span.parent is not None and span.parent.kind == "session":
            branch = self._kept.pop(id(span), None)
            if branch is not None:
                self._ended.append(branch)

    def _count(self, span: Span) -> None:
        totals, took = self.totals, span.end - span.start
        if span.kind == "turn":
            totals.turns += span.number != totals.newest
            totals.newest = span.number
            totals.worked += took
        elif span.kind == "wait":
            totals.waited += took
            if span.call_id:  # it is within a turn
                totals.worked -= took


def _level(span: Span) -> int:
    """Return how deep it is: a turn is 1."""
    level, above = 0, span.parent
    while above is not None:
        level, above = level + 1, above.parent
    return level


def _subject(span: Span) -> str:
    if isinstance(span.request, ToolCall):
        return flat(flat(call_subject(span.request))[:_MAX_SUBJECT])
    return flat(span.request[:_MAX_SUBJECT]) if isinstance(span.request, str) else ""


class SpanList:
    """All spans of a session and of its subagents, children before parents."""

    def __init__(self, folder: SessionFolder, depth: int, turn: int = 0) -> None:
        self._folder = folder
        self._depth = depth
        self._wanted = turn
        self.turns: set[int] = set()

    def spans(self, session_id: str) -> Iterator[dict[str, object]]:
        """Yield them as JSON has them. Raise `AgentError`."""
        return self._spans((session_id,), None, 0)

    def _spans(
        self, path: tuple[str, ...], above: str | None, level: int
    ) -> Iterator[dict[str, object]]:
        over: list[Span] = []
        tracing = SpanBuilder(lambda span: over.append(span) if span.over else None)
        for record in self._folder.read(path[-1]):
            tracing.apply(record)
            if over:
                yield from self._to_json(over, path, above, level)
        tracing.close(end_of_open_spans(self._folder.path(path[-1])))
        yield from self._to_json(over, path, above, level)

    def _to_json(
        self, over: list[Span], path: tuple[str, ...], above: str | None, level: int
    ) -> Iterator[dict[str, object]]:
        while over:
            span = over.pop(0)
            span.request = span.response = None
            deep = level + _level(span)
            if deep > self._depth or not self._is_wanted(span, len(path) == 1):
                continue
            name = f"{path[-1]}/{span.id}"
            if span.kind == "task" and deep < self._depth and may_descend(span.child, path):
                with suppress(AgentError):  # it was deleted since
                    yield from self._spans((*path, span.child), name, deep)
            parent = f"{path[-1]}/{span.parent.id}" if span.parent is not None else above
            yield {"id": name, "parent": parent, "session": path[-1], **span_to_json(span)}

    def _is_wanted(self, span: Span, outermost: bool) -> bool:
        if not outermost or not self._wanted:
            return True
        top = span
        while top.parent is not None and top.parent.kind != "session":
            top = top.parent
        self.turns.add(top.number)
        return top.number == self._wanted


def end_of_open_spans(log: Path) -> int:
    """Return the time until which open spans last: now, if a process has the session open."""
    return time.time_ns() // 1_000_000 if describe_owner(log) else 0


def may_descend(child: str, path: tuple[str, ...]) -> bool:
    """Return whether it is a session that is not among those above, at a plausible depth."""
    return child not in path and len(path) < MAX_SESSIONS


def span_to_json(span: Span) -> dict[str, object]:
    """Return a span as JSON has it, without contents and empty fields."""
    used = span.used
    fields: dict[str, object] = {
        "kind": span.kind,
        "name": span.name,
        "status": span.status,
        "start": span.start,
        "end": span.end,
        "number": span.number,
        "model": span.model,
        "stopReason": span.stop_reason,
        "requestId": span.request_id,
        "error": span.error,
        "callId": span.call_id,
        "child": span.child,
        "detail": span.detail,
        "firstAfter": max(0, span.first - span.start) if span.first else 0,
        "retries": span.retries,
    }
    if used.invocations:
        fields |= {
            "inputTokens": used.tokens - used.total_output_tokens,
            "outputTokens": used.total_output_tokens,
            "cacheReadTokens": used.cache_read_tokens,
            "cost": None if used.unpriced == used.invocations else round(used.cost, 9),
            "unpriced": used.unpriced,
        }
    always = ("status", "start", "end", "inputTokens", "outputTokens", "cost")
    return {key: value for key, value in fields.items() if value or key in always}


_BAR_WIDTH = 24  # columns
_WIDTH_FOR_BAR = 100  # columns from which on there is room for it
_WIDTH_FOR_FIGURES = 64  # ... for tokens and cost
_TIME_WIDTH, _TOKENS_WIDTH, _COST_WIDTH = 9, 8, 10
_COLOURS = {
    "failed": "red",
    "timeout": "red",
    "stuck": "red",
    "max_tokens": "red",
    "unknown": "red",
}
_STATUS_TEXT = {"not_run": "not run", "stuck": "got stuck", "budget": "a limit was reached"}
_STATUS_TEXT |= {"max_tokens": "cut off at its token limit"}
_QUIET = ("complete", "tool_use", "")


class Scale(Struct, frozen=True):
    """The time of a turn, on which the bars of its spans are drawn."""

    start: int
    end: int

    def bar(self, span: Span) -> str:
        """Return the bar of a span."""
        whole = max(1, self.end - self.start)
        first = round((span.start - self.start) * _BAR_WIDTH / whole)
        last = round((span.end - self.start) * _BAR_WIDTH / whole)
        first = min(max(0, first), _BAR_WIDTH - 1)
        length = min(max(1, last - first), _BAR_WIDTH - first)
        mark = "┄" if span.kind == "wait" else "━"
        return (" " * first + mark * length).ljust(_BAR_WIDTH)


class TreeLines:
    """Formats branches as lines of a width."""

    def __init__(self, paint: Paint, width: int, *, is_running: bool = False) -> None:
        self._paint = paint
        self._bars = width >= _WIDTH_FOR_BAR
        self._figures = width >= _WIDTH_FOR_FIGURES
        self._open = "running" if is_running else "unfinished"
        right = _TIME_WIDTH + (1 + _BAR_WIDTH if self._bars else 0)
        self._room = max(
            8, width - 1 - right - (_TOKENS_WIDTH + _COST_WIDTH if self._figures else 0)
        )

    def head(self) -> str:
        """Return the heading of the columns."""
        figures = f"{'tokens':>{_TOKENS_WIDTH}}{'cost':>{_COST_WIDTH}}" if self._figures else ""
        bar = " " * (_BAR_WIDTH + 1) if self._bars else ""
        return self._paint.dim(f"{'':{self._room}}{'time':>{_TIME_WIDTH}}{bar}{figures}".rstrip())

    def note(self, text: str, level: int) -> str:
        """Return a line that is not a span."""
        return self._paint.dim(cut("  " * level + text, self._room))

    def total(self, totals: Totals) -> str:
        """Return the line of the sums."""
        words = [quantity(totals.turns, "turn")]
        if totals.waited:
            words.append(f"{compact_duration(totals.waited)} waiting")
        name = cut(", ".join(words), self._room)
        time = compact_duration(totals.worked)
        return self._columns(self._paint.bold(name), cells(name), time, "", totals.root.used)

    def row(self, branch: Branch, level: int, scale: Scale) -> str:
        """Return the line of a span."""
        span, paint = branch.span, self._paint
        before = "  " * min(level, self._room // 8)
        status, room = self._status(span), self._room - len(before)
        colour = getattr(paint, _COLOURS.get(span.status, "yellow"))
        is_tight = bool(status) and room < cells(status) + 8  # then only the colour shows it
        room -= 0 if is_tight or not status else cells(status) + 2
        name = cut(_name(span), room)
        took, left = len(before) + cells(name), room - cells(name) - 2
        shown = before + (colour(name) if is_tight else self._named(span, name))
        subject = cut(branch.subject, left) if left > 8 else ""
        if subject:
            shown, took = f"{shown}  {paint.dim(subject)}", took + 2 + cells(subject)
        if status and not is_tight:
            shown, took = f"{shown}  {colour(status)}", took + 2 + cells(status)
        if span.kind == "mark":
            return shown
        bar = scale.bar(span) if self._bars else ""
        return self._columns(shown, took, compact_duration(span.end - span.start), bar, span.used)

    def _named(self, span: Span, name: str) -> str:
        return self._paint.bold(name) if span.kind == "turn" else name

    def _columns(self, name: str, took: int, time: str, bar: str, used: ExecutionMetrics) -> str:
        line = name + " " * max(0, self._room - took) + f"{time:>{_TIME_WIDTH}}"
        if self._bars:
            line += " " + (self._paint.cyan(bar) if bar.strip() else " " * _BAR_WIDTH)
        if self._figures and used.invocations:
            line += f"{compact_count(used.tokens):>{_TOKENS_WIDTH}}{_cost(used):>{_COST_WIDTH}}"
        return line.rstrip()

    def _status(self, span: Span) -> str:
        """Return how it ended; empty if all went well."""
        words = []
        if span.status == "open":
            words.append(self._open)
        elif span.status != "ok":
            words.append(_STATUS_TEXT.get(span.status, span.status))
        if span.stop_reason not in (*_QUIET, *words, "error"):
            words.append(span.stop_reason)
        if span.error:
            words.append(flat(span.error))
        if span.retries:
            words.append(quantity(span.retries, "retry", "retries"))
        return ", ".join(words)


def _name(span: Span) -> str:
    if span.kind == "model":
        what = {"title": "a title: ", "summary": "a summary: "}.get(span.detail, "")
        return flat(f"{what}{span.model or 'the model'}")
    if span.kind == "mark":
        return flat(f"· {span.name} {span.detail}".rstrip())
    if span.kind in ("turn", "task") and span.detail not in ("", "loop"):
        return flat(f"{span.name} by {span.detail}")
    return flat(span.name)


def _cost(used: ExecutionMetrics) -> str:
    """Return the cost; an unknown price is `?`, never zero."""
    if used.unpriced == used.invocations:
        return "?"
    return format_cost(used.cost) + ("+?" if used.unpriced else "")


def compact_count(count: int) -> str:
    """Return a number such as `940`, `2.4k` or `1.2M`."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def compact_duration(milliseconds: int) -> str:
    """Return a duration such as `120ms`, `8.0s`, `2m 14s`, `3h 02m` or `2d 4h`."""
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def print_tree(folder: SessionFolder, session: SessionSummary, depth: int, turn: int) -> None:
    """Print the branches of a session, and what its subagents did. Raise `UsageError`."""
    paint, width = paint_for(sys.stdout), min(_MAX_WIDTH, width_of(sys.stdout))
    is_running = bool(describe_owner(folder.path(session.id)))
    lines = TreeLines(paint, width, is_running=is_running)
    reader = TraceReader(folder, session.id, depth, turn)
    printer = _TreePrinter(folder, lines, depth)
    is_empty = True
    for branch in reader.branches():
        if is_empty:
            title = f"{paint.cyan(flat(session.id))}  {flat(session.title)}"
            click.echo(title[: width * 2].rstrip())
            click.echo(lines.head())
            is_empty = False
        for line in printer.lines(branch, 0, None, (session.id,)):
            click.echo(line)
    if is_empty and turn:
        raise _unknown_turn(turn, reader.totals.newest)
    if is_empty:
        click.echo("Nothing has happened in this session yet.")
    elif not turn:
        click.echo(lines.total(reader.totals))


def print_spans(folder: SessionFolder, session_id: str, depth: int, turn: int) -> None:
    """Print the spans as a JSON array, one a line, as they are found. Raise `UsageError`."""
    spans, before = SpanList(folder, depth, turn), "["
    for span in spans.spans(session_id):
        sys.stdout.write(f"{before}{json.dumps(span)}")
        before = ",\n "
    if turn and turn not in spans.turns:
        raise _unknown_turn(turn, max(spans.turns, default=0))
    click.echo("[]" if before == "[" else "]")


class _TreePrinter:
    """Formats branches with those of their subagents, which are in other logs."""

    def __init__(self, folder: SessionFolder, lines: TreeLines, depth: int) -> None:
        self._folder = folder
        self._lines = lines
        self._depth = depth

    def lines(
        self, branch: Branch, level: int, scale: Scale | None, path: tuple[str, ...]
    ) -> Iterator[str]:
        """Yield a branch, line by line."""
        scale = scale or Scale(branch.span.start, branch.span.end)
        yield self._lines.row(branch, level, scale)
        for child in branch.children:
            yield from self.lines(child, level + 1, scale, path)
        if branch.more:
            yield self._lines.note(f"and {branch.more:,} more", level + 1)
        if branch.span.child and level + 1 < self._depth:
            yield from self._subagent(branch.span.child, level + 1, scale, path)

    def _subagent(
        self, child: str, level: int, scale: Scale, path: tuple[str, ...]
    ) -> Iterator[str]:
        if not may_descend(child, path):
            return
        try:
            for branch in TraceReader(self._folder, child, self._depth - level).branches():
                yield from self.lines(branch, level, scale, (*path, child))
        except AgentError:  # it was deleted since, or cannot be read
            yield self._lines.note("its log cannot be read", level)


def _unknown_turn(turn: int, newest: int) -> UsageError:
    turns = f"Its newest turn is {newest}." if newest else "It has no turns yet."
    return UsageError(f"the session has no turn {turn}", hint=turns)
