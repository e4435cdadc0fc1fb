"""Fallback: a second provider when the first cannot be had, and only then."""

import asyncio
from typing import Any

import pytest
from test_retry import GOOD, Rehearsed, kinds, run

import bridle
from bridle.errors import (
    AgentError,
    KeyRefused,
    Overloaded,
    RateLimited,
    RequestRefused,
    StreamCutShort,
    Unreachable,
)
from bridle.events import ResponseCompleted, TextDelta, TraceEvent, UsageReported
from bridle.messages import Message, Text
from bridle.protocols.provider import ProviderInfo
from bridle.providers.retry import Fallback, Retrying, RetryPolicy
from bridle.stores.memory_store import MemoryStore
from bridle.usage import Price, Usage


class Second(Rehearsed):
    info = ProviderInfo("second", "spare")


def fallen(error: AgentError, *, second: Any = None) -> tuple[Any, AgentError | None]:
    return run(Fallback(Rehearsed([error]), Second(second or [*GOOD])))


@pytest.mark.parametrize("kind", [Overloaded, RateLimited, Unreachable])
def test_the_second_answers_when_the_first_cannot_be_had(kind: type[AgentError]) -> None:
    """(M5) (M8): and it is told."""
    seen, error = fallen(kind("why"))
    assert (kinds(seen), error) == (["fallback", *GOOD], None)
    assert seen[0].detail == {
        "from": "rehearsed/m",
        "to": "second/spare",
        "error": "why",
        "kind": kind("why").kind,
        "status": None,
    }


@pytest.mark.parametrize("error", [KeyRefused("no"), RequestRefused("no"), StreamCutShort("cut")])
def test_other_failures_are_raised(error: AgentError) -> None:
    assert fallen(error) == ([], error)


def test_nobody_takes_over_in_the_middle_of_a_reply() -> None:
    error = Overloaded("busy")
    seen = run(Fallback(Rehearsed([TextDelta("h"), error]), Second([*GOOD])))
    assert seen == ([TextDelta("h")], error)


def test_when_the_second_fails_too_its_error_is_raised() -> None:
    second = Overloaded("busy too")
    seen, error = fallen(Overloaded("busy"), second=[second])
    assert (kinds(seen), error) == (["fallback"], second)


def test_the_first_is_tried_again_before_the_second_is_asked() -> None:
    first = Retrying(Rehearsed([Overloaded("1")], [Overloaded("2")]), RetryPolicy(1, base=0.001))
    seen, error = run(Fallback(first, Second([*GOOD])))
    assert (kinds(seen), error) == (["retry", "fallback", *GOOD], None)


def test_who_answered_is_said_and_both_are_closed() -> None:
    done = ResponseCompleted("complete", model="spare-2026")
    first, second = Rehearsed([TraceEvent("odd"), Unreachable("gone")]), Second([done])
    both = Fallback(first, second)
    seen, _ = run(both)
    asyncio.run(both.close())
    assert seen[-1] == done
    assert (both.info, first.closed, second.closed) == (first.info, True, True)


@pytest.mark.parametrize(
    ("price", "cost"), [(Price(2.0, 10.0), 0.002 + 0.001), (None, None)], ids=["known", "unknown"]
)
def test_the_seconds_use_has_the_seconds_price(price: Price | None, cost: float | None) -> None:
    """(M7): never the first's, and never zero where it is unknown."""
    usage = Usage(1000, 100)
    reply = ResponseCompleted("complete", Message("assistant", (Text("hi"),)), usage)
    first = Rehearsed([Overloaded("busy")])
    first.info = ProviderInfo("first", "dear", price=Price(1000.0, 1000.0))
    second = Second([TextDelta("hi"), UsageReported(usage, "spare"), reply])
    second.info = ProviderInfo("second", "spare", price=price)

    async def turn() -> tuple[UsageReported, ...]:
        async with bridle.build_engine(
            Fallback(first, second), tools=[], store=MemoryStore()
        ) as engine:
            result = await engine.run("hello")
            records = engine.store.read(result.session_id)
            return tuple(r.event for r in records if isinstance(r.event, UsageReported))

    [reported] = asyncio.run(turn())
    assert reported.cost == pytest.approx(cost) if cost is not None else reported.cost is None
