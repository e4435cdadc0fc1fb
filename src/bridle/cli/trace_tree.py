"""The spans of a session, read out of its log, and printed as a tree.

A log is read one turn at a time, in bounded memory. The session of a subagent is read when its task
is over."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from bridle.cli.event_lines import subject_of
from bridle.cli.style import Paint, cells, cut
from bridle.engine.trace import Span, SpanBuilder
from bridle.errors import AgentError
from bridle.messages import ToolCall
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import flat, quantity

MOST = 2_000  # spans of one turn that are shown; the others are counted
DEEPEST = 8  # sessions below sessions; there are never so many, but a log can say anything
_ABOUT = 200  # characters of what a call is about


class Branch(Struct, eq=False):
    """A span that is over, what it was about, and what is below it. `more` were not kept."""

    span: Span
    about: str = ""
    below: "list[Branch]" = field(default_factory=list)
    more: int = 0


class Totals:
    """What a whole session came to."""

    def __init__(self) -> None:
        self.root = Span("session", "")
        self.turns = 0
        self.newest = 0
        self.worked = 0  # milliseconds in turns, but for waits
        self.waited = 0


class Reading:
    """One session, as branches: its turns, its waits, and what else stands beside them."""

    def __init__(self, folder: SessionFolder, session_id: str, depth: int, turn: int = 0) -> None:
        self.totals = Totals()
        self._records = folder.read(session_id)
        self._log = folder.path(session_id)
        self._depth = depth
        self._wanted = turn
        self._kept: dict[int, Branch] = {}
        self._over: list[Branch] = []

    def branches(self) -> Iterator[Branch]:
        """Each as soon as it is over, then what is still open. Raise `AgentError`."""
        tracing = SpanBuilder(self._tell)
        for record in self._records:
            tracing.apply(record)
            if self._over:
                yield from self._taken()
        tracing.close(now_of(self._log))
        yield from self._taken()

    def _taken(self) -> list[Branch]:
        over, self._over = self._over, []
        return over

    def _tell(self, span: Span) -> None:
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
            self._kept = {id(span): Branch(span, _about(span))}
        elif (found := self._kept.get(id(above))) is not None and _level(span) <= self._depth:
            if len(self._kept) >= MOST:
                found.more += 1
                return
            branch = self._kept[id(span)] = Branch(span, _about(span))
            found.below.append(branch)

    def _end(self, span: Span) -> None:
        span.request = span.response = None  # a file may stand there
        if span.parent is not None and span.parent.kind == "session":
            branch = self._kept.pop(id(span), None)
            if branch is not None:
                self._over.append(branch)

    def _count(self, span: Span) -> None:
        totals, took = self.totals, span.end - span.start
        if span.kind == "turn":
            totals.turns += span.number != totals.newest
            totals.newest = span.number
            totals.worked += took
        elif span.kind == "wait":
            totals.waited += took
            if span.call_id:  # it lies within a turn
                totals.worked -= took


def _level(span: Span) -> int:
    """How deep it lies: a turn is 1."""
    level, above = 0, span.parent
    while above is not None:
        level, above = level + 1, above.parent
    return level


def _about(span: Span) -> str:
    if isinstance(span.request, ToolCall):
        return flat(subject_of(span.request)[:_ABOUT])
    return flat(span.request[:_ABOUT]) if isinstance(span.request, str) else ""


class Flat:
    """All spans of a session and of its tasks, each when it is over: children before parents."""

    def __init__(self, folder: SessionFolder, depth: int, turn: int = 0) -> None:
        self._folder = folder
        self._depth = depth
        self._wanted = turn
        self.turns: set[int] = set()

    def spans(self, session_id: str) -> Iterator[dict[str, object]]:
        """As JSON has them. Raise `AgentError`."""
        return self._spans((session_id,), None, 0)

    def _spans(
        self, path: tuple[str, ...], above: str | None, level: int
    ) -> Iterator[dict[str, object]]:
        over: list[Span] = []
        tracing = SpanBuilder(lambda span: over.append(span) if span.over else None)
        for record in self._folder.read(path[-1]):
            tracing.apply(record)
            if over:
                yield from self._told(over, path, above, level)
        tracing.close(now_of(self._folder.path(path[-1])))
        yield from self._told(over, path, above, level)

    def _told(
        self, over: list[Span], path: tuple[str, ...], above: str | None, level: int
    ) -> Iterator[dict[str, object]]:
        while over:
            span = over.pop(0)
            span.request = span.response = None
            deep = level + _level(span)
            if deep > self._depth or not self._is_wanted(span, len(path) == 1):
                continue
            name = f"{path[-1]}/{span.id}"
            if span.kind == "task" and deep < self._depth and is_new(span.child, path):
                with suppress(AgentError):  # it was deleted since
                    yield from self._spans((*path, span.child), name, deep)
            parent = f"{path[-1]}/{span.parent.id}" if span.parent is not None else above
            yield {"id": name, "parent": parent, "session": path[-1], **to_plain(span)}

    def _is_wanted(self, span: Span, outermost: bool) -> bool:
        if not outermost or not self._wanted:
            return True
        top = span
        while top.parent is not None and top.parent.kind != "session":
            top = top.parent
        self.turns.add(top.number)
        return top.number == self._wanted


def now_of(log: Path) -> int:
    """Up to when what is open has lasted: until now, where a process holds the session."""
    return time.time_ns() // 1_000_000 if describe_owner(log) else 0


def is_new(child: str, path: tuple[str, ...]) -> bool:
    """Is it a session that is not among those above, at a depth that can be?"""
    return child not in path and len(path) < DEEPEST


def to_plain(span: Span) -> dict[str, object]:
    """What a span says, without what was said in it: what is empty is left out."""
    used = span.used
    found: dict[str, object] = {
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
        found |= {
            "inputTokens": used.tokens - used.total_output_tokens,
            "outputTokens": used.total_output_tokens,
            "cacheReadTokens": used.cache_read_tokens,
            "cost": None if used.unpriced == used.invocations else round(used.cost, 9),
            "unpriced": used.unpriced,
        }
    told = ("status", "start", "end", "inputTokens", "outputTokens", "cost")
    return {key: value for key, value in found.items() if value or key in told}


_BAR = 24  # columns
_WIDE = 100  # columns from which on there is room for it
_MEDIUM = 64  # ... for tokens and cost
_TIME, _TOKENS, _COST = 9, 8, 10
_COLOURS = {
    "failed": "red",
    "timeout": "red",
    "stuck": "red",
    "max_tokens": "red",
    "unknown": "red",
}
_SAID = {"not_run": "not run", "stuck": "got stuck", "budget": "a limit was reached"}
_SAID |= {"max_tokens": "cut off at its token limit"}
_QUIET = ("complete", "tool_use", "")


class Scale(Struct, frozen=True):
    """What a bar is measured by: the turn that it is in."""

    start: int
    end: int

    def bar(self, span: Span) -> str:
        """Where in the turn it was, and how much of it."""
        whole = max(1, self.end - self.start)
        first = round((span.start - self.start) * _BAR / whole)
        last = round((span.end - self.start) * _BAR / whole)
        first = min(max(0, first), _BAR - 1)
        length = min(max(1, last - first), _BAR - first)
        mark = "┄" if span.kind == "wait" else "━"
        return (" " * first + mark * length).ljust(_BAR)


class Lines:
    """Writes branches as lines of a width."""

    def __init__(self, paint: Paint, width: int, *, runs: bool = False) -> None:
        self._paint = paint
        self._bars = width >= _WIDE
        self._figures = width >= _MEDIUM
        self._open = "running" if runs else "unfinished"
        right = _TIME + (1 + _BAR if self._bars else 0)
        self._room = max(8, width - 1 - right - (_TOKENS + _COST if self._figures else 0))

    def head(self) -> str:
        """What the columns are."""
        figures = f"{'tokens':>{_TOKENS}}{'cost':>{_COST}}" if self._figures else ""
        bar = " " * (_BAR + 1) if self._bars else ""
        return self._paint.dim(f"{'':{self._room}}{'time':>{_TIME}}{bar}{figures}".rstrip())

    def note(self, words: str, level: int) -> str:
        """A word beside the spans."""
        return self._paint.dim(cut("  " * level + words, self._room))

    def total(self, totals: Totals) -> str:
        """What all of it came to."""
        words = [quantity(totals.turns, "turn")]
        if totals.waited:
            words.append(f"{spoken(totals.waited)} waiting")
        name = cut(", ".join(words), self._room)
        time = spoken(totals.worked)
        return self._columns(self._paint.bold(name), cells(name), time, "", totals.root.used)

    def row(self, branch: Branch, level: int, scale: Scale) -> str:
        """One span alone."""
        span, paint = branch.span, self._paint
        before = "  " * min(level, self._room // 8)
        word, room = self._word(span), self._room - len(before)
        colour = getattr(paint, _COLOURS.get(span.status, "yellow"))
        tight = bool(word) and room < cells(word) + 8  # then the colour has to say it
        room -= 0 if tight or not word else cells(word) + 2
        name = cut(_name(span), room)
        took, left = len(before) + cells(name), room - cells(name) - 2
        shown = before + (colour(name) if tight else self._named(span, name))
        about = cut(branch.about, left) if left > 8 else ""
        if about:
            shown, took = f"{shown}  {paint.dim(about)}", took + 2 + cells(about)
        if word and not tight:
            shown, took = f"{shown}  {colour(word)}", took + 2 + cells(word)
        if span.kind == "mark":
            return shown
        bar = scale.bar(span) if self._bars else ""
        return self._columns(shown, took, spoken(span.end - span.start), bar, span.used)

    def _named(self, span: Span, name: str) -> str:
        return self._paint.bold(name) if span.kind == "turn" else name

    def _columns(self, name: str, took: int, time: str, bar: str, used: ExecutionMetrics) -> str:
        line = name + " " * max(0, self._room - took) + f"{time:>{_TIME}}"
        if self._bars:
            line += " " + (self._paint.cyan(bar) if bar.strip() else " " * _BAR)
        if self._figures and used.invocations:
            line += f"{short(used.tokens):>{_TOKENS}}{_cost(used):>{_COST}}"
        return line.rstrip()

    def _word(self, span: Span) -> str:
        """How it ended, where that is worth a word."""
        words = []
        if span.status == "open":
            words.append(self._open)
        elif span.status != "ok":
            words.append(_SAID.get(span.status, span.status))
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
    """An unknown price is unknown, never zero."""
    if used.unpriced == used.invocations:
        return "?"
    return format_cost(used.cost) + ("+?" if used.unpriced else "")


def short(count: int) -> str:
    """`940`, `2.4k`, `1.2M`."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def spoken(milliseconds: int) -> str:
    """`120ms`, `8.0s`, `2m 14s`, `3h 02m`, `2d 4h`."""
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"
