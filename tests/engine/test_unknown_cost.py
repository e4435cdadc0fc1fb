"""What nobody knows the cost of is unknown, never zero; what nobody counted is estimated."""

import asyncio

import pytest

from bridle.engine.budget import Budget, Limits
from bridle.errors import BudgetReached, Overloaded
from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.providers.retry import Fallback
from bridle.providers.scripted import Scripted
from bridle.stores.day_budget import DayBudget
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from bridle.usage import Price, Usage
from rig import Speaking, call, endings, events, make_engine, one_turn, run, until

PRICED = ProviderInfo("speaking", "m", max_output=1000, price=Price(1.0, 5.0))


@tool(read_only=True)
async def look() -> str:
    """Look at it."""
    return "seen"


class Away:
    """A provider with a price that is never there."""

    info = PRICED

    async def stream(self, request):
        raise Overloaded("busy")
        yield

    async def close(self):
        pass


def test_an_unpriced_fallback_ends_a_turn_that_has_a_money_limit():
    asked = {**call("look"), "usage": {"inputTokens": 9_000_000, "outputTokens": 5}}
    second = Scripted([asked], info=ProviderInfo("scripted", "unheard-of"), loop=True)
    _, _, result = run(one_turn(Fallback(Away(), second), look, limits=Limits(max_cost=1.0)))
    said = "what unheard-of cost is unknown, so a limit of $1.00 cannot be kept"
    assert (result.reason, result.detail) == ("budget", said)
    assert (result.metrics.invocations, result.metrics.unpriced) == (1, 1)
    assert len(second.requests) == 1


@pytest.mark.parametrize("limits", [Limits(max_cost=1.0), Limits(max_session_tokens=9000)])
def test_what_a_server_does_not_count_is_estimated_where_a_limit_needs_it(limits):
    async def ask():
        yield ResponseCompleted("tool_use", Message("assistant", (ToolCall("c", "look"),)))

    async def end():
        yield ResponseCompleted("complete", Message("assistant", (Text("x" * 300),)))

    model = Speaking(ask, end)
    model.info = PRICED
    engine, found, result = run(one_turn(model, look, limits=limits))
    said = events(engine, found, UsageReported)
    assert [one.estimated for one in said] == [True, True]
    assert said[1].usage == Usage(said[1].usage.input_tokens, 108)
    assert said[1].usage.input_tokens > said[0].usage.input_tokens > 0
    assert [one.cost for one in said] == [PRICED.price.cost(one.usage) for one in said]
    assert (result.reason, result.metrics.unpriced) == ("done", 0)
    assert result.metrics.tokens == sum(one.usage.total_tokens for one in said)
    assert result.metrics.context_tokens == 0


def test_without_a_limit_what_a_server_does_not_count_is_unknown():
    async def end():
        yield ResponseCompleted("complete", Message("assistant", (Text("ok"),)))

    model = Speaking(end)
    model.info = PRICED
    engine, found, _ = run(one_turn(model))
    assert events(engine, found, UsageReported) == [UsageReported(Usage(), "m")]


def test_what_is_free_needs_no_count():
    info = ProviderInfo("scripted", "m", price=Price(0.0, 0.0))
    model = Scripted([call("look"), "ok"], info=info)
    _, _, result = run(one_turn(model, look, limits=Limits(max_cost=1.0)))
    assert (result.reason, result.metrics.unpriced, result.metrics.cost) == ("done", 0, 0.0)


async def whole():
    yield ResponseCompleted("complete", Message("assistant", (Text("ok"),)), Usage(9, 9), "m")


def speaking(*said):
    async def stream():
        for event in said:
            yield event
        await asyncio.Event().wait()

    model = Speaking(stream)
    model.info = PRICED
    return model


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(max_session_cost=1.0), Limits(max_day_cost=1.0)]
)
@pytest.mark.parametrize(
    "said", [TextDelta("hello"), ThinkingDelta("hello"), ToolCallStarted("c", "look")]
)
def test_an_interrupted_reply_without_figures_does_not_end_a_session(said, limits, tmp_path):
    async def work(folder):
        model = speaking(said)
        model.streams.append(whole)
        rest = {"store": JsonlStore(folder), "day": DayBudget(folder), "limits": limits}
        async with make_engine(model, **rest) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: event == said)
            await session.interrupt()
            metrics = (await session.wait(turn)).metrics
            await session.wait(await session.send("again"))
            found = events(engine, session.id, UsageReported)
            return found[0], metrics, endings(engine, session.id)

    found, metrics, ended = run(work(tmp_path))
    usage = Usage(found.usage.input_tokens, len(getattr(said, "text", "")) // 3)
    assert found == UsageReported(usage, "m", PRICED.price.cost(usage), estimated=True)
    assert found.usage.input_tokens > 0
    assert (metrics.invocations, metrics.unpriced, metrics.cost) == (1, 0, found.cost)
    assert ended == ["interrupted", "done"]


def test_a_reply_of_another_model_that_was_cut_is_of_unknown_cost():
    """A fallback's price is its own, and nobody has said it yet."""
    second = broken(TextDelta("hello"))
    engine, found, result = run(one_turn(Fallback(Away(), second)))
    (said,) = events(engine, found, UsageReported)
    assert (said.cost, said.estimated, result.metrics.unpriced) == (None, True, 1)


def broken(*said):
    async def stream():
        for event in said:
            yield event

    model = Speaking(stream)
    model.info = PRICED
    return model


def test_a_cut_reply_without_figures_is_estimated():
    _, _, result = run(one_turn(broken(TextDelta("hello"))))
    assert (result.reason, result.error.kind) == ("failed", "network")
    assert (result.metrics.invocations, result.metrics.unpriced) == (1, 0)
    assert result.metrics.cost > 0


def test_a_request_that_nothing_came_of_is_not_counted():
    _, _, result = run(one_turn(broken(TraceEvent("retry"))))
    assert (result.metrics.invocations, result.metrics.unpriced) == (0, 0)


def test_what_a_model_without_a_price_cost_is_unknown_to_the_budget():
    budget = Budget(Limits(max_cost=1.0, max_turn_tokens=10_000), PRICED)
    run(budget.reserve(RequestConfig(), 1000))
    budget.spend(Usage(), None, "m")
    assert (budget.tokens, budget.money) == (1000, 1000 * 1.0 / 1_000_000)
    with pytest.raises(BudgetReached, match="what m cost is unknown"):
        run(budget.reserve(RequestConfig(), 1))
