"""A reply that breaks off in its middle is discarded, and the model is asked again (M5, M6)."""

import asyncio

import pytest

from bridle.engine.budget import Limits
from bridle.errors import KeyRefused, Overloaded, StreamCutShort
from bridle.events import (
    CallIntended,
    ReplyDiscarded,
    ResponseCompleted,
    TextDelta,
    TraceEvent,
    UsageReported,
)
from bridle.protocols.provider import ProviderInfo
from bridle.providers.retry import Fallback, Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.usage import Price
from rig import call, events, is_valid, make_engine, run, until

HALF = {"text": "Half a sen", "cut": True}
INFO = ProviderInfo("scripted", "m", max_output=1000, price=Price(1.0, 5.0))


async def at_once(seconds):
    """Nobody waits in a test."""


def trying(script, **options):
    return Retrying(Scripted(script, info=INFO), RetryPolicy(pause=at_once, **options))


async def told(provider, **rest):
    ran = []

    async def save(text: str) -> str:
        """Save it."""
        ran.append(text)
        return "saved"

    async with make_engine(provider, save, mode="auto", **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        assert is_valid(session.history.transcript)
        return engine, session, result, ran


def of_the_reply(engine, session):
    kinds = (TextDelta, ReplyDiscarded, TraceEvent, ResponseCompleted)
    return events(engine, session.id, kinds)


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: Fallback(one, Scripted(["no"]))])
def test_it_is_asked_for_again_and_the_half_is_in_the_log_alone(wrap):
    engine, session, result, _ = run(told(wrap(trying([HALF, "A whole one."]))))
    assert (result.reason, result.text) == ("done", "A whole one.")
    said = of_the_reply(engine, session)
    kinds = [type(one) for one in said]
    assert kinds == [TextDelta, ReplyDiscarded, TraceEvent, TextDelta, ResponseCompleted]
    assert (said[0].text, said[1].reason) == ("Half a sen", "the scripted stream was cut short")
    assert (said[2].kind, said[2].detail["attempt"]) == ("retry", 2)
    assert [one.content for one in session.history.transcript] == ["go", "A whole one."]


def test_no_call_of_the_half_runs_and_every_call_of_the_whole_does_once():
    half = {**call("save", text="half"), "cut": True}
    script = [half, half, call("save", text="whole"), "done"]
    engine, session, result, ran = run(told(trying(script)))
    assert (result.reason, ran) == ("done", ["whole"])
    assert len(events(engine, session.id, CallIntended)) == 1


def test_what_the_half_used_is_counted():
    _, session, result, _ = run(told(trying([HALF, {"text": "ok"}])))
    assert result.metrics.cost > 0
    assert session.metrics.unpriced == 0


def test_a_budget_holds_over_the_tries():
    limits = Limits(max_turn_tokens=4000)
    engine, session, result, _ = run(
        told(trying([{"text": "x " * 3000, "cut": True}] * 9), limits=limits)
    )
    assert result.reason == "budget"
    assert len(events(engine, session.id, ReplyDiscarded)) < 4
    assert events(engine, session.id, UsageReported)


def test_after_the_last_try_the_turn_fails_as_before():
    engine, session, result, _ = run(told(trying([HALF] * 3, retries=2)))
    assert (result.reason, type(result.error)) == ("failed", StreamCutShort)
    assert "It was tried 3 times" in result.error.hint
    assert len(events(engine, session.id, ReplyDiscarded)) == 2


@pytest.mark.parametrize(
    "provider", [Scripted([HALF, "never"]), trying([HALF, "never"], retries=0)]
)
def test_a_provider_without_retries_is_not_asked_again(provider):
    *_, result, _ = run(told(provider))
    assert (result.reason, result.text) == ("failed", "")


def test_what_cannot_get_better_is_not_asked_for_again():
    half = {"text": "Half", "error": {"status": 401, "kind": "invalid"}}
    *_, result, _ = run(told(trying([half, "never"])))
    assert isinstance(result.error, KeyRefused)


def test_an_interrupt_ends_the_wait():
    async def story():
        policy = RetryPolicy(base=200.0, longest=200.0)
        provider = Retrying(Scripted([HALF, "never"]), policy)
        async with make_engine(provider) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda one: isinstance(one, TraceEvent) and one.kind == "retry")
            await session.interrupt()
            return await asyncio.wait_for(session.wait(turn), 30)

    assert run(story()).reason == "interrupted"


@pytest.mark.parametrize("first", [HALF, {"error": {"status": 529}}])
def test_the_time_limit_of_the_turn_ends_the_wait(first):
    """(M6) Before anything of the reply has come, and in the middle of it."""
    policy = RetryPolicy(base=200.0, longest=200.0)
    provider = Retrying(Scripted([first, "never"]), policy)
    _, _, result, _ = run(told(provider, limits=Limits(max_seconds=0.2)))
    assert (result.reason, result.text) == ("timeout", "")


def test_an_overloaded_vendor_is_asked_again_before_anything_came():
    script = [{"error": {"status": 529}}] * 6
    engine, session, result, _ = run(told(trying([*script, "ok"])))
    assert result.text == "ok"
    assert not events(engine, session.id, ReplyDiscarded)
    *_, result, _ = run(told(trying(script, retries=1)))
    assert isinstance(result.error, Overloaded)
