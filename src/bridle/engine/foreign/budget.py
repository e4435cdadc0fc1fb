"""The limits of an agent that spends on its own: what is left of them, and which one is reached.

Our own loop reserves money and tokens before each request. Another agent makes its requests itself,
so it is told beforehand what is left, and what it reports is added up.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

from msgspec.structs import astuple, replace

from bridle.engine.budget import Budget, raise_limit_hint
from bridle.events import UsageReported
from bridle.protocols.agent import RemainingBudget
from bridle.usage import ExecutionMetrics, Usage, format_cost
from bridle.workspace.text import quantity

_CANNOT = "cannot be kept"
_UNPRICED = "Use an agent that says what it costs, or a limit of tokens instead of money."
_LEAST_MONEY = 1e-6  # dollars: enough to find a limit that is reached


def remaining_budget(
    budget: Budget, before: ExecutionMetrics, deadline: float | None
) -> RemainingBudget:
    """Return what the turn may still use. `before`: what the session had used when it began."""
    limits = budget.limits
    tokens = _least_left(
        (limits.max_turn_tokens, budget.tokens),
        (limits.max_session_tokens, before.tokens + budget.tokens),
    )
    money = _least_left(
        (limits.max_cost, budget.money), (limits.max_session_cost, before.cost + budget.money)
    )
    return RemainingBudget(
        steps=_left(limits.max_steps, budget.steps),
        tool_calls=_left(limits.max_tool_calls, budget.tool_calls),
        tokens=None if tokens is None else int(tokens),
        money=money,
        deadline=deadline,
    )


def limit_reached(budget: Budget, before: ExecutionMetrics, ahead: int = 0) -> tuple[str, str]:
    """Return the limit that is reached and what to do about it; two empty strings if none is.

    `ahead` counts steps that are about to be taken.
    """
    limits, tokens, money = budget.limits, budget.tokens, budget.money
    if limits.max_steps and budget.steps + ahead > limits.max_steps:
        return f"the limit of {quantity(limits.max_steps, 'step')} is reached", ""
    if limits.max_turn_tokens and tokens >= limits.max_turn_tokens:
        limit = f"the limit of {quantity(limits.max_turn_tokens, 'token')} is reached"
        return f"{limit}: {tokens:,} are used", ""
    if limits.max_cost and money >= limits.max_cost:
        limit = f"the limit of {format_cost(limits.max_cost)} is reached"
        return f"{limit}: {format_cost(money)} is spent", ""
    session_tokens, session_cost = before.tokens + tokens, before.cost + money
    if limits.max_session_tokens and session_tokens >= limits.max_session_tokens:
        limit = f"the limit of {quantity(limits.max_session_tokens, 'token')} a session is reached"
        return f"{limit}: {session_tokens:,} are used", raise_limit_hint("tokens")
    if limits.max_session_cost and session_cost >= limits.max_session_cost:
        limit = f"the limit of {format_cost(limits.max_session_cost)} a session is reached"
        return f"{limit}: {format_cost(session_cost)} is spent", raise_limit_hint("cost")
    if trouble := _unknown_cost(budget, before):
        return trouble, _UNPRICED
    if budget.above is not None:  # what others below the same parent have used counts as well
        return limit_reached(budget.above, budget.above.before, ahead)
    return "", ""


def _unknown_cost(budget: Budget, before: ExecutionMetrics) -> str:
    """Return which limit of money cannot be kept because nobody knows what was spent."""
    limits = budget.limits
    if limits.max_cost and budget.unpriced_model:
        limit = f"a limit of {format_cost(limits.max_cost)}"
        return f"what {budget.unpriced_model} cost is unknown, so {limit} {_CANNOT}"
    if limits.max_session_cost and (budget.unpriced_model or before.unpriced):
        what = budget.unpriced_model or "an earlier reply of this session"
        limit = f"a limit of {format_cost(limits.max_session_cost)} a session"
        return f"what {what} cost is unknown, so {limit} {_CANNOT}"
    return ""


class DayBudget:
    """The limits of the day, for one turn: checked when it begins and whenever it spends."""

    def __init__(
        self, budget: Budget, session_id: str, settled: Callable[[], Awaitable[None]]
    ) -> None:
        self._limits = budget.limits
        self._day = budget.day
        self._session_id = session_id
        self._settled = settled

    async def check(self) -> None:
        """Raise `BudgetReached` if nothing is left of the day."""
        if self._day is not None:
            await self._settled()  # the account is read from the logs
            await asyncio.to_thread(
                self._day.reserve,
                self._session_id,
                1,
                _LEAST_MONEY,
                limit_tokens=self._limits.max_day_tokens,
                limit_money=self._limits.max_day_cost,
            )

    async def release(self) -> None:
        """Give the reservation back at the end of the turn: what was used is in the log."""
        if self._day is not None:
            await self._settled()
            await asyncio.to_thread(self._day.release, self._session_id)


def sanitize_usage(report: UsageReported) -> UsageReported:
    """Return what an agent reports with impossible figures taken out.

    Negative tokens count as zero, an impossible cost as unknown.
    """
    if any(figure < 0 for figure in astuple(report.usage)):
        report = replace(report, usage=Usage())
    if report.cost is not None and not 0 <= report.cost < inf:
        report = replace(report, cost=None)
    return report


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the sum of both."""
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        thinking_tokens=one.thinking_tokens + other.thinking_tokens,
        input_has_cache=one.input_has_cache or other.input_has_cache,
    )


def _left(limit: int, used: int) -> int | None:
    return max(0, limit - used) if limit else None


def _least_left(*scopes: tuple[float, float]) -> float | None:
    left = [max(0.0, limit - used) for limit, used in scopes if limit]
    return min(left) if left else None
