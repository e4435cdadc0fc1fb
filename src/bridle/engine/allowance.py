"""What is left of the limits for an agent that spends on its own, and which one is reached.

Our own loop reserves before each request; another agent makes its requests itself, so what it
reports is added up, and it is told beforehand what there is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

from msgspec.structs import astuple, replace

from bridle.engine.budget import Budget
from bridle.events import UsageReported
from bridle.promises.agent import Room
from bridle.usage import ExecutionMetrics, Usage, format_cost

_CANNOT = "cannot be kept"
_UNPRICED = "Use an agent that says what it costs, or a limit of tokens instead of money."
_LEAST_MONEY = 1e-6  # dollars: enough to find a limit that is reached


def room_of(budget: Budget, before: ExecutionMetrics, deadline: float | None) -> Room:
    """What the turn may still use. `before` is what the session had used when it began."""
    limits = budget.limits
    tokens = _least(
        (limits.tokens, budget.tokens), (limits.session_tokens, before.tokens + budget.tokens)
    )
    return Room(
        _left(limits.steps, budget.steps),
        _left(limits.tool_calls, budget.tool_calls),
        None if tokens is None else int(tokens),
        _least((limits.money, budget.money), (limits.session_money, before.cost + budget.money)),
        deadline,
    )


def reached(budget: Budget, before: ExecutionMetrics, ahead: int = 0) -> tuple[str, str]:
    """The limit that is reached, in words, and what to do about it; empty where none is.

    `ahead` are steps that are about to be taken.
    """
    limits, tokens, money = budget.limits, budget.tokens, budget.money
    if limits.steps and budget.steps + ahead > limits.steps:
        return f"the limit of {limits.steps} steps is reached", ""
    if limits.tokens and tokens >= limits.tokens:
        return f"the limit of {limits.tokens} tokens is reached: {tokens} are used", ""
    if limits.money and money >= limits.money:
        return (
            f"the limit of {format_cost(limits.money)} is reached: {format_cost(money)} is spent",
            "",
        )
    whole, spent = before.tokens + tokens, before.cost + money
    if limits.session_tokens and whole >= limits.session_tokens:
        said = f"the limit of {limits.session_tokens} tokens a session is reached"
        return f"{said}: {whole} are used", _later("tokens")
    if limits.session_money and spent >= limits.session_money:
        said = f"the limit of {format_cost(limits.session_money)} a session is reached"
        return f"{said}: {format_cost(spent)} is spent", _later("money")
    if said := _unkept(budget, before):
        return said, _UNPRICED
    if budget.above is not None:  # what others below the same parent have used counts as well
        return reached(budget.above, budget.above.before, ahead)
    return "", ""


def _unkept(budget: Budget, before: ExecutionMetrics) -> str:
    """The limit of money that cannot be kept, because nobody knows what was spent."""
    limits = budget.limits
    if limits.money and budget.unknown:
        limit = f"a limit of {format_cost(limits.money)}"
        return f"what {budget.unknown} cost is unknown, so {limit} {_CANNOT}"
    if limits.session_money and (budget.unknown or before.unpriced):
        what = budget.unknown or "an earlier reply of this session"
        limit = f"a limit of {format_cost(limits.session_money)} a session"
        return f"what {what} cost is unknown, so {limit} {_CANNOT}"
    return ""


class DayRoom:
    """The day's account, for one turn of an agent: looked at when it begins, and as it spends."""

    def __init__(self, budget: Budget, who: str, settled: Callable[[], Awaitable[None]]) -> None:
        self._limits = budget.limits
        self._day = budget.day
        self._who = who
        self._settled = settled

    async def check(self) -> None:
        """Raise `BudgetReached` where nothing is left of the day."""
        if self._day is not None:
            await self._settled()  # the account goes by the logs
            await asyncio.to_thread(
                self._day.reserve,
                self._who,
                1,
                _LEAST_MONEY,
                limit_tokens=self._limits.day_tokens,
                limit_money=self._limits.day_money,
            )

    async def release(self) -> None:
        """The turn is over: what it has used is in the log."""
        if self._day is not None:
            await self._settled()
            await asyncio.to_thread(self._day.release, self._who)


def believable(report: UsageReported) -> UsageReported:
    """What an agent says it used; nobody gets anything back, and what is no figure is unknown."""
    if any(figure < 0 for figure in astuple(report.usage)):
        report = replace(report, usage=Usage())
    if report.cost is not None and not 0 <= report.cost < inf:
        report = replace(report, cost=None)
    return report


def added_up(one: Usage, other: Usage) -> Usage:
    """Both together."""
    whole = other.input_has_cache or one.input_has_cache
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.thinking_tokens + other.thinking_tokens,
        whole,
    )


def _left(limit: int, used: int) -> int | None:
    return max(0, limit - used) if limit else None


def _least(*scopes: tuple[float, float]) -> float | None:
    found = [max(0.0, limit - used) for limit, used in scopes if limit]
    return min(found) if found else None


def _later(kind: str) -> str:
    key, flag = f"session_{kind}", f"--max-session-{kind}"
    return f"What was done is kept: raise limits.{key} ({flag}), or start a new session."
