"""Money, tokens, durations and limits as a person reads them. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime

from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import quantity

NO_LIMIT = "no limit"
_NAMES = {
    "max_session_cost": "money, this session",
    "max_session_tokens": "tokens, this session",
    "max_cost": "money, a turn",
    "max_turn_tokens": "tokens, a turn",
    "max_steps": "steps, a turn",
    "max_tool_calls": "tool calls, a turn",
    "max_seconds": "seconds, a turn",
    "max_day_cost": "money, a day",
    "max_day_tokens": "tokens, a day",
}


def cost_text(metrics: ExecutionMetrics) -> str:
    """Return the cost in dollars. What has no known price is shown as unknown, never left out."""
    return format_cost(metrics.cost, unpriced=metrics.unpriced)


def short_number(count: int) -> str:
    """Return a number in short: `812`, `12.4k`, `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k".replace(".0k", "k")
    return f"{count / 1_000_000:.1f}M".replace(".0M", "M")


def token_count(count: int) -> str:
    """Return a number of tokens: `1 token`, `12.4k tokens`."""
    return quantity(count, "token", shown=short_number(count))


def duration(seconds: float) -> str:
    """Return a duration: `0.4 s`, `12 s`, `3 min 20 s`, `1 h 5 min`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def age(moment: str, now: datetime) -> str:
    """Return how long ago a moment was: `3 hours ago`, `just now`."""
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


def budget_lines(
    limits: Mapping[str, float | None], used: ExecutionMetrics
) -> tuple[tuple[str, str, str], ...]:
    """Return limits as name, used, most. What the session has used is always among them.

    Other limits that are not set are left out. What was used of a turn's or a day's limit is not
    known here: it is empty.
    """
    spent = {
        "max_session_cost": format_cost(used.cost, unpriced=used.unpriced),
        "max_session_tokens": f"{used.tokens:,}",
    }
    found = []
    for key, name in _NAMES.items():
        most = limits.get(key) or 0
        if key in spent or most:
            said = (format_cost(most) if "cost" in key else f"{most:,g}") if most else NO_LIMIT
            found.append((name, spent.get(key, ""), said))
    return tuple(found)


def budget_text(used: str, most: str) -> str:
    """Return what was used and the limit: `$0.12 used of $5.00`."""
    if not used:
        return f"at most {most}"
    if used == format_cost(None):
        return f"{used}, {NO_LIMIT}" if most == NO_LIMIT else f"{used}, at most {most}"
    return f"{used} used, {NO_LIMIT}" if most == NO_LIMIT else f"{used} used of {most}"
