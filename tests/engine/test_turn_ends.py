"""How turns end: done, cut, refused, late or interrupted; and what they have used (M4, M6, M7)."""

import asyncio

import pytest

from bridle.engine.budget import Limits
from bridle.errors import AgentError, ModelRefused, StreamCutShort
from bridle.events import (
    TextDelta,
    TurnEnded,
    UsageReported,
)
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Scripted
from bridle.usage import ExecutionMetrics, Price, Usage
from rig import (
    Speaking,
    call,
    events,
    is_valid,
    make_engine,
    run,
    until,
)


async def echo(text: str) -> str:
    """Say it again."""
    return text


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ({"text": "yes"}, ""),
    ],
)
def test_endings_that_are_no_errors_say_what_they_are(reply, detail):
    """A turn that came to its end is done (M3)."""

    async def story():
        async with make_engine([reply]) as engine:
            return await engine.run("go")

    result = run(story())
    assert (result.reason, result.detail) == ("done", detail)


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ({"text": "no", "stop_reason": "refusal"}, "the model declined to answer"),
        (
            {"stop_reason": "refusal", "stop_detail": "cyber"},
            "the model declined to answer: cyber",
        ),
    ],
)
def test_a_refusal_is_a_failure_with_a_typed_error(reply, detail):
    """M3: and what the model said of it is the text."""

    async def story():
        async with make_engine([reply, "Hello."]) as engine:
            session = await engine.session()
            refused = await engine.run("go", session=session)
            return refused, await engine.run("and now?", session=session)

    result, after = run(story())
    assert (result.ok, result.reason, result.detail) == (False, "failed", detail)
    assert isinstance(result.error, ModelRefused)
    assert result.text == reply.get("text", "")
    assert (after.ok, after.text) == (True, "Hello.")


def test_the_calls_of_a_refused_reply_are_answered_and_not_run():
    async def story():
        ran = []

        async def touch() -> str:
            ran.append(1)
            return "ok"

        reply = {**call("touch"), "stop_reason": "refusal"}
        async with make_engine([reply, "ok"], touch, mode="auto") as engine:
            session = await engine.session()
            first = await session.wait(await session.send("go"))
            return ran, first, session.history.transcript

    ran, first, transcript = run(story())
    assert (ran, first.reason) == ([], "failed")
    assert is_valid(transcript)
    assert "broke off" in transcript[2].tool_results[0].text


def test_use_is_counted_per_call_and_in_all():
    """M7: the provider's figures, with cache tokens and cost."""
    usage = Usage(100, 10, cache_read_tokens=50)
    info = ProviderInfo("scripted", "m", price=Price(1.0, 2.0, cache_read=0.1))
    cost = (100 * 1.0 + 10 * 2.0 + 50 * 0.1) / 1_000_000

    async def story():
        figures = {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 50}
        replies = [{**call("echo", text="x"), "usage": figures}, {"text": "ok", "usage": figures}]
        model = Scripted(replies, info=info)
        async with make_engine(model, echo, mode="auto") as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return events(engine, session.id, UsageReported), result, session.metrics

    said, result, metrics = run(story())
    assert said == [UsageReported(usage, "m", cost)] * 2
    assert result.metrics == metrics
    assert metrics == ExecutionMetrics(200, 20, 2, 100, 0, 150, 1, 2 * cost, 0, 320)


def test_an_unknown_price_is_unknown_and_not_zero():
    async def story():
        async with make_engine([{"text": "ok", "usage": {"inputTokens": 5}}]) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return events(engine, session.id, UsageReported)[0], result.metrics

    said, metrics = run(story())
    assert said.cost is None
    assert (metrics.unpriced, metrics.cost) == (1, 0.0)


def test_figures_heard_before_the_reply_broke_off_count():
    """M7: what was used is used, also when the stream fails after it."""

    async def cut():
        yield UsageReported(Usage(7, 3), "m")
        raise StreamCutShort("cut")

    async def story():
        async with make_engine(Speaking(cut)) as engine:
            return (await engine.run("go")).metrics

    metrics = run(story())
    assert (metrics.total_input_tokens, metrics.total_output_tokens) == (7, 3)


def test_the_deadline_is_a_timeout_with_a_valid_history():
    """M4's timeout, M6: in the middle of the text; what had come is kept."""

    async def story():
        slow = {"text": "one two three", "pause": 30.0}
        async with make_engine([slow, "ok"], limits=Limits(max_seconds=0.2)) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("go"))
            second = await session.wait(await session.send("again"))
            return first, second, session.history.transcript

    first, second, transcript = run(story())
    assert (first.reason, first.detail) == ("timeout", "the limit of 0.2 seconds is reached")
    assert first.error.kind == "timeout"
    assert first.text == "one"
    assert second.text == "ok"
    assert [(one.role, one.content) for one in transcript] == [
        ("user", "go"),
        ("assistant", "one"),
        ("user", "again"),
        ("assistant", "ok"),
    ]


def test_an_interrupt_in_the_middle_of_text_keeps_what_had_come():
    """M6, S9: partial text stays, the history is valid, the session is usable right after."""

    async def story():
        slow = {"text": "one two three", "pause": 30.0}
        async with make_engine([slow, "ok"]) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: event == TextDelta("one"))
            await session.interrupt()
            first = await session.wait(turn)
            second = await session.wait(await session.send("again"))
            return first, second, session.history.transcript, events(engine, session.id, TurnEnded)

    first, second, transcript, ended = run(story())
    assert (first.reason, first.text, second.text) == ("interrupted", "one", "ok")
    assert is_valid(transcript)
    assert [one.reason for one in ended] == ["interrupted", "done"]


def test_an_interrupt_closes_the_providers_stream_at_once():
    """M6: the stream is closed before the turn has ended."""
    closed = []

    async def endless():
        try:
            yield TextDelta("one. ")
            await asyncio.sleep(3600)
        finally:
            closed.append(True)

    async def story():
        async with make_engine(Speaking(endless)) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda event: isinstance(event, TextDelta))
            await session.interrupt()
            return list(closed)

    assert run(story()) == [True]


def test_text_that_is_only_space_is_not_kept_as_a_message():
    async def blank():
        yield TextDelta("  \n")
        await asyncio.sleep(3600)

    async def story():
        async with make_engine(Speaking(blank)) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda event: isinstance(event, TextDelta))
            await session.interrupt()
            return [message.role for message in session.history.transcript]

    assert run(story()) == ["user"]


def test_an_agent_error_keeps_its_kind_in_the_turns_end():
    """M8: kinds are told apart by whoever reads the log."""

    async def limited():
        raise AgentError("rate_limit", "slow down", hint="wait")
        yield

    async def story():
        async with make_engine(Speaking(limited)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return events(engine, session.id, TurnEnded)

    assert run(story()) == [TurnEnded(1, "failed", "slow down", "rate_limit", "wait")]
