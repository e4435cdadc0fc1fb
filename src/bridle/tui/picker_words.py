"""A session as a line of the picker: what it is called, what it does, whose it is. Pure."""

from datetime import UTC, datetime
from typing import NamedTuple

from bridle.tui.house import Listed
from bridle.usage import format_cost
from bridle.workspace.text import one_line, quantity

_SIGNS = {"running": "●", "asks": "?", "parked": "?", "done": "✓", "failed": "✗"}
_TONES = {"running": "$accent", "asks": "$warning", "parked": "$warning", "failed": "$error"}
_WORDS = {
    "running": "running",
    "asks": "needs an answer",
    "parked": "parked: needs an answer",
    "done": "done",
    "stopped": "stopped",
    "failed": "failed",
    "idle": "",
}


class Line(NamedTuple):
    """The pieces of a line: a sign, its colour, the title, the rest."""

    sign: str
    tone: str
    title: str
    rest: str


def line_of(one: Listed, now: datetime, here: str = "") -> Line:
    """The session in a line; `here` is the folder that is worked in, which need not be said."""
    state = one.state if one.state in _WORDS else "idle"
    pieces = [_state(one, state), age(one.updated_at, now)]
    if one.workspace and one.workspace != here:
        pieces.append(one_line(one.workspace.rstrip("/").rpartition("/")[2], 24))
    if one.holder and one.holder != "here":
        pieces.append(f"in {one_line(one.holder, 30)}")
    title = one_line(one.title, 120) or "(no title)"
    rest = " · ".join(piece for piece in pieces if piece)
    return Line(_SIGNS.get(state, "·"), _TONES.get(state, "$foreground 60%"), title, rest)


def _state(one: Listed, state: str) -> str:
    if state == "asks" and one.waiting > 1:
        return f"needs {one.waiting} answers"
    return _WORDS[state]


def about(one: Listed, now: datetime) -> list[tuple[str, str]]:
    """The head of the preview: everything that the line has no room for."""
    rows = [
        ("id", one.id),
        ("folder", one.workspace),
        ("model", one.model),
        ("agent", one.agent if one.agent != "loop" else ""),
        ("cost", format_cost(one.cost, unpriced=one.unpriced).removeprefix("cost ")),
        ("changed", age(one.updated_at, now)),
        ("open in", one.holder if one.holder != "here" else "this window"),
        ("part of", one.parent),
    ]
    return [(f"{name:8} {one_line(said, 200)}", "muted") for name, said in rows if said]


def age(moment: str, now: datetime) -> str:
    """How long ago, as people say it."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return ""
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = max(0, int((now - then).total_seconds()))
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if (count := seconds // size) > 0:
            return f"{quantity(count, word)} ago" if count < 10_000 else ""
    return "just now"
