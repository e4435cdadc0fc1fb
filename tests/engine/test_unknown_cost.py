"""What nobody knows the cost of is unknown, never zero."""

import asyncio

import pytest

from bridle.engine.budget import Budget, Limits
from bridle.errors import BudgetReached, Overloaded
from bridle.events import ResponseCompleted, TextDelta, ToolCallStarted, TraceEvent, UsageReported
from bridle.messages import Message, ToolCall
from bridle.promises.provider import ProviderInfo, RequestConfig
from bridle.providers.fallback import Fallback
from bridle.providers.scripted import Scripted
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
    _, _, result = run(one_turn(Fallback(Away(), second), look, limits=Limits(money=1.0)))
    said = "what unheard-of cost is unknown, so a limit of $1 cannot be kept"
    assert (result.reason, result.detail) == ("budget", said)
    assert (result.metrics.invocations, result.metrics.unpriced) == (1, 1)
    assert len(second.requests) == 1


def test_a_priced_server_that_does_not_count_ends_it_too():
    async def ask():
        yield ResponseCompleted("tool_use", Message("assistant", (ToolCall("c", "look"),)))

    model = Speaking(ask, ask)
    model.info = PRICED
    _, _, result = run(one_turn(model, look, limits=Limits(money=1.0)))
    assert (result.reason, result.metrics.unpriced) == ("budget", 1)
    assert len(model.requests) == 1


def test_what_is_free_needs_no_count():
    info = ProviderInfo("scripted", "m", price=Price(0.0, 0.0))
    model = Scripted([call("look"), "ok"], info=info)
    _, _, result = run(one_turn(model, look, limits=Limits(money=1.0)))
    assert (result.reason, result.metrics.unpriced, result.metrics.cost) == ("done", 0, 0.0)


def speaking(*said):
    async def stream():
        for event in said:
            yield event
        await asyncio.Event().wait()

    model = Speaking(stream)
    model.info = PRICED
    return model


@pytest.mark.parametrize("said", [TextDelta("hello"), ToolCallStarted("c", "look")])
def test_an_interrupted_reply_without_figures_counts_as_one_of_unknown_cost(said):
    async def work():
        async with make_engine(speaking(said)) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: event == said)
            await session.interrupt()
            found = events(engine, session.id, UsageReported)
            return found, (await session.wait(turn)).metrics, endings(engine, session.id)

    found, metrics, ended = run(work())
    assert found == [UsageReported(Usage(), "m", priced=True)]
    assert (metrics.invocations, metrics.unpriced, metrics.cost) == (1, 1, 0.0)
    assert ended == ["interrupted"]


def broken(*said):
    async def stream():
        for event in said:
            yield event

    model = Speaking(stream)
    model.info = PRICED
    return model


def test_a_cut_reply_without_figures_counts_as_one_of_unknown_cost():
    _, _, result = run(one_turn(broken(TextDelta("hello"))))
    assert (result.reason, result.error.kind) == ("failed", "network")
    assert (result.metrics.invocations, result.metrics.unpriced) == (1, 1)


def test_a_request_that_nothing_came_of_is_not_counted():
    _, _, result = run(one_turn(broken(TraceEvent("retry"))))
    assert (result.metrics.invocations, result.metrics.unpriced) == (0, 0)


def test_the_budget_is_charged_with_an_estimate_of_what_was_cut():
    budget = Budget(Limits(money=1.0, tokens=10_000), PRICED)
    budget.reserve(RequestConfig(), 1000)
    budget.spend(Usage(), None, "m", 200)
    assert (budget.tokens, budget.money) == (1200, (1000 * 1.0 + 200 * 5.0) / 1_000_000)
    with pytest.raises(BudgetReached, match="what m cost is unknown"):
        budget.reserve(RequestConfig(), 1)
