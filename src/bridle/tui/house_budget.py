"""Limits in words: what each is called, what was used of it, how much may be. Pure."""

from collections.abc import Mapping

from bridle.usage import ExecutionMetrics

NONE = "no limit"
_NAMES = {
    "session_money": "money, this session",
    "session_tokens": "tokens, this session",
    "money": "money, a turn",
    "tokens": "tokens, a turn",
    "steps": "steps, a turn",
    "tool_calls": "tool calls, a turn",
    "seconds": "seconds, a turn",
    "day_money": "money, a day",
    "day_tokens": "tokens, a day",
}


def budget_lines(
    limits: Mapping[str, float | None], used: ExecutionMetrics
) -> tuple[tuple[str, str, str], ...]:
    """Name, used, most. What the session has used is always among them; limits that are not set
    are left out otherwise. What was used of a turn's or a day's limit is not known here: empty."""
    spent = {"session_money": money(used.cost, used.unpriced), "session_tokens": f"{used.tokens:,}"}
    found = []
    for key, name in _NAMES.items():
        most = limits.get(key) or 0
        if key in spent or most:
            said = (money(most) if "money" in key else f"{most:,g}") if most else NONE
            found.append((name, spent.get(key, ""), said))
    return tuple(found)


def budget_words(used: str, most: str) -> str:
    """What was used and how much may be, as a person would say it."""
    if not used:
        return f"at most {most}"
    return f"{used} used, {NONE}" if most == NONE else f"{used} used of {most}"


def money(amount: float, unpriced: int = 0) -> str:
    """A sum that people can read; what could not be priced is said."""
    if unpriced and not amount:
        return "an unknown sum"
    told = f"${amount:.2f}" if amount >= 0.01 or not amount else "under $0.01"
    return f"{told} and some that has no price" if unpriced else told
