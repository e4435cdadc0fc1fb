"""Reading the spans of a session out of its log, a turn at a time and in bounded memory.

A task's session is read where its task is over. How it looks is not known here.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from bridle.cli.event_lines import subject_of
from bridle.engine.trace import Span, SpanBuilder
from bridle.errors import AgentError
from bridle.messages import ToolCall
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import flat

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
