"""Limits in words: what each is called, what was used of it, how much may be. Pure."""

from collections.abc import Mapping

from bridle.usage import ExecutionMetrics, format_cost

NONE = "no limit"
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


def budget_lines(
    limits: Mapping[str, float | None], used: ExecutionMetrics
) -> tuple[tuple[str, str, str], ...]:
    """Name, used, most. What the session has used is always among them; limits that are not set
    are left out otherwise. What was used of a turn's or a day's limit is not known here: empty."""
    spent = {
        "max_session_cost": format_cost(used.cost, unpriced=used.unpriced),
        "max_session_tokens": f"{used.tokens:,}",
    }
    found = []
    for key, name in _NAMES.items():
        most = limits.get(key) or 0
        if key in spent or most:
            said = (format_cost(most) if "cost" in key else f"{most:,g}") if most else NONE
            found.append((name, spent.get(key, ""), said))
    return tuple(found)


def budget_words(used: str, most: str) -> str:
    """What was used and how much may be, as a person would say it."""
    if not used:
        return f"at most {most}"
    if used == format_cost(None):
        return f"{used}, {NONE}" if most == NONE else f"{used}, at most {most}"
    return f"{used} used, {NONE}" if most == NONE else f"{used} used of {most}"
