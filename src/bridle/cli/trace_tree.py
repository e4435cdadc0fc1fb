"""Spans as lines for a person: name, time, a bar where there is room, tokens, cost. Pure."""

from msgspec import Struct

from bridle.cli.style import Paint, cells, cut
from bridle.cli.trace_reading import Branch, Totals
from bridle.engine.trace import Span
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import flat, quantity

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
