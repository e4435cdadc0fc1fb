"""What a child session may use: what was asked for, never more than what is left above. Pure.

Our loop reserves each request in the budgets above it, so that several children together keep to
them. Another agent spends without asking: its part is cut off beforehand, half of what is left
where nobody said how much.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from bridle.engine.budget import Budget, Limits
from bridle.errors import BudgetReached
from bridle.promises.child import Task

_TINY = 1e-6  # dollars, or seconds: less is nothing


def carved(budget: Budget, task: Task, seconds: float | None, *, shares: bool) -> Limits:
    """The limits of a child. `seconds` are those that the turn has left; None: no limit.

    `shares`: it spends without asking, so it can have nothing that others have set aside. Raise
    `BudgetReached` where nothing is left of one of them.
    """
    part = 2 if shares else 1
    tokens, money = _tokens(budget, shares=shares), _money(budget, shares=shares)
    return replace(
        budget.limits,
        steps=int(_least("steps", task.steps, _steps(budget))),
        tool_calls=int(_least("tool calls", 0, _calls(budget))),
        tokens=int(_least("tokens", 0, None if tokens is None else tokens / part)),
        money=_least("money", task.money, _part(money, task.money, part)),
        seconds=_least("time", task.seconds, seconds),
        session_tokens=0,
        session_money=0.0,
    )


def _part(left: float | None, wanted: float, part: int) -> float | None:
    """What is left; of that, a part where nobody has said how much."""
    return left if left is None or wanted else left / part


def _least(what: str, wanted: float, left: float | None) -> float:
    """What is wanted, or what is left where that is less; zero is no limit."""
    if left is None:
        return wanted
    if left < (_TINY if what in ("money", "time") else 1):
        raise BudgetReached(f"nothing is left of the limits for a task: no {what}")
    return min(wanted, left) if wanted else left


def _steps(budget: Budget) -> float | None:
    found = [one.limits.steps - one.steps for one in budget.levels() if one.limits.steps]
    return min(found, default=None)


def _calls(budget: Budget) -> float | None:
    levels = [one for one in budget.levels() if one.limits.tool_calls]
    return min((one.limits.tool_calls - one.tool_calls for one in levels), default=None)


def _tokens(budget: Budget, *, shares: bool) -> float | None:
    return _left(
        (
            limits.tokens,
            limits.session_tokens,
            one.before.tokens,
            one.tokens + (one.set_aside[0] if shares else 0),
        )
        for one in budget.levels()
        for limits in (one.limits,)
    )


def _money(budget: Budget, *, shares: bool) -> float | None:
    return _left(
        (
            limits.money,
            limits.session_money,
            one.before.cost,
            one.money + (one.set_aside[1] if shares else 0.0),
        )
        for one in budget.levels()
        for limits in (one.limits,)
    )


def _left(levels: Iterable[tuple[float, float, float, float]]) -> float | None:
    """The least that any level leaves: of its turn's limit, and of its session's; 0 is none."""
    found: list[float] = []
    for of_turn, of_session, before, used in levels:
        found += [of_turn - used] if of_turn else []
        found += [of_session - before - used] if of_session else []
    return min(found, default=None)
