"""Retrying: asked again before the first delta, never after, and never longer than wanted."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from loopback import ASK, Exchange, collected, recording, saying, served

from bridle.errors import (
    AgentError,
    BadStream,
    KeyRefused,
    Overloaded,
    RateLimited,
    StreamCutShort,
    StreamStalled,
    Unreachable,
)
from bridle.events import ModelEvent, ResponseCompleted, TextDelta, TraceEvent, UsageReported
from bridle.messages import Message, Text
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.anthropic import Anthropic
from bridle.providers.retry import Retrying, RetryPolicy
from bridle.usage import Usage

DONE = ResponseCompleted("complete", Message("assistant", (Text("hi"),)))
GOOD = [TextDelta("hi"), DONE]
Script = list[ModelEvent | AgentError]


class Rehearsed:
    """A provider with one script for each attempt."""

    info = ProviderInfo("rehearsed", "m")

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.open = 0
        self.closed = False

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        self.open += 1
        try:
            for item in self.scripts.pop(0):
                if isinstance(item, AgentError):
                    raise item
                yield item
        finally:
            self.open -= 1

    async def close(self) -> None:
        self.closed = True


def run(provider: Any) -> tuple[list[ModelEvent], AgentError | None]:
    """What was yielded, and what was raised."""

    async def main() -> tuple[list[ModelEvent], AgentError | None]:
        seen: list[ModelEvent] = []
        try:
            async for event in provider.stream(ASK):
                seen.append(event)
        except AgentError as error:
            return seen, error
        return seen, None

    return asyncio.run(main())


class Time:
    """A clock that a wait moves on, and nothing else."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def patient(*scripts: Script, **options: Any) -> tuple[Retrying, Time]:
    """A provider that tries again, and the time that it waits in."""
    time = Time()
    policy = RetryPolicy(**options, pause=time.pause, clock=lambda: time.now)
    return Retrying(Rehearsed(*scripts), policy), time


def quick(*scripts: Script, **options: Any) -> Retrying:
    return patient(*scripts, **options)[0]


def kinds(events: list[ModelEvent]) -> list[Any]:
    return [event.kind if isinstance(event, TraceEvent) else event for event in events]


def test_a_failure_before_the_first_delta_is_tried_again() -> None:
    """(M5): and each wait is told before it begins."""
    seen, error = run(quick([Overloaded("busy")], [RateLimited("slow")], [*GOOD]))
    assert (kinds(seen), error) == (["retry", "retry", *GOOD], None)
    seconds = seen[0].detail.pop("seconds")
    assert 0.25 <= seconds <= 0.5
    assert seen[0].detail == {
        "attempt": 2,
        "error": "busy",
        "kind": "agent",
        "status": None,
    }


def test_the_last_failure_is_raised() -> None:
    """(M5)"""
    scripts: list[Script] = [[Overloaded("1")], [Overloaded("2")], [Overloaded("3")], [*GOOD]]
    seen, error = run(quick(*scripts, retries=2))
    assert (kinds(seen), str(error)) == (["retry", "retry"], "3")
    assert error is not None and error.hint.startswith("It was tried 3 times in 1 second. ")


@pytest.mark.parametrize("error", [Overloaded("busy"), RateLimited("slow"), StreamStalled("still")])
def test_a_server_in_trouble_is_asked_for_five_minutes(error: AgentError) -> None:
    """(M5): with waits that grow, of which none is longer than half a minute."""
    provider, time = patient(*([error] for _ in range(99)))
    seen, raised = run(provider)
    assert raised is error
    assert sum(time.waits) == pytest.approx(300)
    assert all(wait <= 30 for wait in time.waits)
    assert [event.detail["attempt"] for event in seen] == list(range(2, len(seen) + 2))
    assert 10 < len(seen) < 40
    assert error.hint.startswith(f"It was tried {len(seen) + 1} times in 5 minutes.")


def test_a_server_that_was_never_reached_is_given_up_after_ten_seconds() -> None:
    """(M5): its address may be wrong. One that has answered before is asked for longer."""
    provider, time = patient(*([Unreachable("no")] for _ in range(99)))
    _, raised = run(provider)
    assert (type(raised), sum(time.waits)) == (Unreachable, pytest.approx(10))
    for answer in (GOOD, [KeyRefused("no")]):
        provider, time = patient([*answer], *([Unreachable("no")] for _ in range(99)))
        run(provider)
        run(provider)
        assert sum(time.waits) == pytest.approx(300)


def test_nothing_is_tried_again_after_the_first_delta() -> None:
    """(M5): nobody sees a sentence twice."""
    seen, error = run(quick([TextDelta("h"), StreamCutShort("cut")], [*GOOD]))
    assert (seen, type(error)) == ([TextDelta("h")], StreamCutShort)


def test_traces_and_usage_are_no_part_of_the_reply() -> None:
    """(M5)"""
    early: Script = [TraceEvent("odd"), UsageReported(Usage(5)), Overloaded("busy")]
    seen, error = run(quick(early, [*GOOD]))
    assert (kinds(seen), error) == (["odd", UsageReported(Usage(5)), "retry", *GOOD], None)


@pytest.mark.parametrize("error", [KeyRefused("no"), BadStream("what")])
def test_what_cannot_get_better_is_raised_at_once(error: AgentError) -> None:
    """(M8)"""
    assert run(quick([error], [*GOOD])) == ([], error)


def test_the_vendors_wish_to_wait_is_honoured() -> None:
    """(M5)"""
    provider, time = patient([RateLimited("slow", retry_after=20)], [*GOOD])
    seen, _ = run(provider)
    assert kinds(seen) == ["retry", *GOOD]
    assert 20 <= time.waits[0] <= 22


def test_a_wish_to_wait_too_long_is_raised_at_once() -> None:
    """(M5): so that a person can decide."""
    for seconds, said in ((301, "5 minutes"), (9000, "2 hours and 30 minutes")):
        error = RateLimited("slow", retry_after=seconds)
        assert run(quick([error], [*GOOD])) == ([], error)
        assert error.hint == f"The server asks to wait {said}. {RateLimited.hint}"


def test_waits_grow_with_jitter_up_to_the_longest() -> None:
    """(M5)"""
    policy = RetryPolicy(base=1.0, longest=8.0)
    for failures, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (9, 8.0), (9999, 8.0)):
        waits = [policy.wait(failures, 0.0, Overloaded("busy")) for _ in range(50)]
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 1


def test_cancelling_stops_the_wait_at_once() -> None:
    """(M6): an hour of waiting ends with the task."""

    async def main() -> list[ModelEvent]:
        policy = RetryPolicy(base=100.0, longest=100.0)
        provider = Retrying(Rehearsed([Overloaded("busy")], [*GOOD]), policy)
        seen: list[ModelEvent] = []
        waiting = asyncio.Event()

        async def consume() -> None:
            async for event in provider.stream(ASK):
                seen.append(event)
                waiting.set()

        task = asyncio.create_task(consume())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    assert kinds(asyncio.run(main())) == ["retry"]


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_closing_the_stream_closes_the_attempt_under_way(taken: int) -> None:
    """(M6): before the first delta and after it."""

    async def main() -> int:
        inner = Rehearsed([TraceEvent("odd"), *GOOD])
        events = Retrying(inner).stream(ASK)
        for _ in range(taken):
            await anext(events)
        await events.aclose()
        assert [event async for event in events] == []
        return inner.open

    assert asyncio.run(main()) == 0


def test_it_has_the_shape_of_what_it_wraps() -> None:
    inner = Rehearsed()
    retrying = Retrying(inner)
    asyncio.run(retrying.close())
    assert (retrying.info, inner.closed) == (inner.info, True)


def test_a_real_server_that_recovers_is_asked_again() -> None:
    """(M5): over sockets: 529 with a wish to wait, a cut connection, and then the reply."""

    async def main() -> tuple[list[ModelEvent], int]:
        answers = iter(["busy", "cut", "well"])

        async def answer(exchange: Exchange) -> None:
            turn = next(answers)
            if turn == "busy":
                await exchange.begin(529, retry_after_ms="1")
                await exchange.end()
            elif turn == "cut":
                await exchange.hang_up()
            else:
                await saying(recording("anthropic-refusal.sse"))(exchange)

        async with served(answer) as place:
            provider = Retrying(Anthropic("m", base_url=place.url), RetryPolicy(base=0.001))
            return await collected(provider), len(place.asked)

    events, asked = asyncio.run(main())
    assert kinds(events)[:2] == ["retry", "retry"]
    assert (events[-1].stop_reason, asked) == ("refusal", 3)
