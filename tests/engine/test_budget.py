"""Budgets: each limit ends the turn with a reason and a valid history, and none is exceeded."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.budget import Budget, Limits, estimate
from bridle.errors import BudgetReached
from bridle.events import TraceEvent
from bridle.messages import File, Image, Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.providers.scripted import Scripted
from bridle.tools.function import tool
from bridle.usage import Price, Usage
from rig import call, calls, events, is_valid, make_engine, results, run

PLAIN = RequestConfig()
PRICED = ProviderInfo("scripted", "m", max_output=1000, price=Price(1.0, 5.0, cache_write=1.25))


@tool(read_only=True)
async def look(n: int = 0) -> int:
    """Look at it."""
    return n


def with_use(reply, tokens_in, tokens_out):
    return {**reply, "usage": {"inputTokens": tokens_in, "outputTokens": tokens_out}}


def reserved(budget, news, config=PLAIN):
    """The settings of one call, reserved; nobody else holds anything."""
    return asyncio.run(budget.reserve(config, news))


async def limited(script, limits, info=None):
    model = Scripted(script, info=info, loop=True)
    async with make_engine(model, look, limits=limits) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        assert is_valid(session.history.transcript)
        return model, result, results(engine, session.id)


def test_steps():
    model, result, _ = run(limited([call("look")], Limits(max_steps=3)))
    assert (result.reason, result.detail) == ("budget", "the limit of 3 steps is reached")
    assert len(model.requests) == 3


def test_tool_calls_beyond_the_limit_are_answered_and_not_run():
    asked = calls(*(("look", {"n": n}) for n in range(3)))
    _, result, said = run(limited([asked], Limits(max_tool_calls=2)))
    assert (result.reason, result.detail) == ("budget", "the limit of 2 tool calls is reached")
    refused = "not run: the limit of tool calls is reached"
    assert sorted(said) == [
        ("call_1", "0", False),
        ("call_2", "1", False),
        ("call_3", refused, True),
    ]


def test_exactly_as_many_tool_calls_as_allowed_may_still_be_answered():
    model, result, _ = run(limited([call("look"), call("look"), "ok"], Limits(max_tool_calls=2)))
    assert (result.reason, result.text, len(model.requests)) == ("done", "ok", 3)


def test_tokens():
    script = [with_use(call("look"), 400, 100)]
    model, result, _ = run(limited(script, Limits(max_turn_tokens=3000)))
    assert result.reason == "budget"
    said = "the limit of 3,000 tokens leaves no room for another step: 2,000 are used, and it would"
    assert result.detail.startswith(f"{said} read about ")
    assert result.metrics.total_tokens <= 3000
    assert len(model.requests) == 4


def test_tokens_of_a_server_that_does_not_count_are_estimated():
    """No figures are not zero tokens: the turn ends all the same."""
    model, result, _ = run(limited([call("look")], Limits(max_turn_tokens=2000)))
    assert result.reason == "budget"
    assert len(model.requests) < 20


def test_money():
    script = [with_use(call("look"), 1000, 1000)]
    limits = Limits(max_cost=0.0155)
    model, result, _ = run(limited(script, limits, PRICED))
    assert result.reason == "budget"
    said = "the limit of $0.015 leaves no room for another step: $0.012 is spent"
    assert result.detail == said
    assert result.metrics.cost <= 0.0155
    assert len(model.requests) == 2


def test_money_without_a_price_is_refused_with_what_to_do():
    info = ProviderInfo("scripted", "unheard-of")
    model, result, _ = run(limited(["ok"], Limits(max_cost=1.0), info))
    assert result.reason == "budget"
    said = "the price of unheard-of is unknown, so a limit of $1.00 cannot be kept"
    assert result.detail == said
    assert model.requests == []


def test_seconds_is_a_timeout():
    async def story():
        async with make_engine([{"delay": 30.0}], limits=Limits(max_seconds=0.05)) as engine:
            return await engine.run("go")

    assert run(story()).reason == "timeout"


def test_what_the_model_may_write_is_cut_to_what_is_left():
    config = RequestConfig(max_tokens=3000)
    budget = Budget(Limits(max_turn_tokens=10_000), PRICED)
    assert reserved(budget, 1000, config) is config
    budget.spend(Usage(1000, 3000), None)
    assert reserved(budget, 500, config).max_tokens == 1500
    budget.spend(Usage(4500, 500), None)
    with pytest.raises(BudgetReached, match="9,000 are used"):
        reserved(budget, 0, config)
    budget = Budget(Limits(max_cost=0.01), PRICED)
    assert reserved(budget, 2000, config).max_tokens == 1500
    with pytest.raises(BudgetReached, match=r"\$0.00 is spent"):
        reserved(Budget(Limits(max_cost=0.01), PRICED), 4000, config)


def test_a_limit_that_can_pay_for_a_whole_reply_changes_nothing():
    """Neither up nor down: what is sent is what is reserved, and not the model's maximum."""
    info = ProviderInfo("scripted", "m", max_output=128_000, price=Price(1.0, 5.0))
    budget, config = Budget(Limits(max_cost=2.0), info, who="s"), RequestConfig()
    assert reserved(budget, 1000, config) is config
    assert budget.reserved == (33_000, (1000 * 1.0 + 32_000 * 5.0) / 1_000_000)


def test_a_shorter_reply_is_said_once_a_turn():
    script = [with_use(call("look"), 1, 1), with_use(call("look"), 1, 1), "ok"]

    async def story():
        model = Scripted(script, info=ProviderInfo("scripted", "m", max_output=9000))
        async with make_engine(model, look, limits=Limits(max_turn_tokens=5000)) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result, events(engine, session.id, TraceEvent), model.requests

    result, traces, requests = run(story())
    assert result.reason == "done"
    (said,) = [one.detail for one in traces if one.kind == "reply_limit"]
    assert said["max_tokens"] == requests[0].config.max_tokens < 5000
    assert said["message"].endswith("instead of 9,000, so that this turn stays within its limits")


def test_without_limits_the_settings_are_left_alone():
    config = RequestConfig(max_tokens=7)
    assert reserved(Budget(Limits(max_steps=0), PRICED), 10**9, config) is config


class Spending:
    """A model that spends at random, within what it was allowed."""

    def __init__(self, data, budget):
        self.data, self.budget, self.known = data, budget, 0

    def step(self, news):
        config = reserved(self.budget, news)
        read = self.data.draw(st.integers(0, self.known + news))
        cached = self.data.draw(st.integers(0, read))
        most = config.max_tokens or PRICED.max_output
        written = self.data.draw(st.integers(0, most))
        usage = Usage(read - cached, written, cache_write_tokens=cached)
        self.known = usage.total_tokens or self.known + news
        return usage, PRICED.price.cost(usage)


@given(st.data(), st.integers(1, 20_000), st.floats(0.0001, 0.1), st.booleans())
def test_no_limit_is_ever_exceeded(data, tokens, money, both):
    """For every way to spend that keeps to max_tokens."""
    limits = Limits(max_turn_tokens=tokens, max_cost=money if both else 0.0, max_steps=50)
    budget = Budget(limits, PRICED)
    model = Spending(data, budget)
    used, cost = 0, 0.0
    for _ in range(60):
        try:
            usage, price = model.step(data.draw(st.integers(0, 3000)))
        except BudgetReached:
            break
        budget.spend(usage, price)
        used, cost = used + usage.total_tokens, cost + price
    else:
        raise AssertionError("fifty steps were allowed and sixty taken")
    assert used <= tokens
    assert not both or cost <= money * (1 + 1e-9)


@pytest.mark.parametrize(
    ("message", "least"),
    [
        (user("x" * 300), 100),
        (user("語" * 100), 100),
        (Message("assistant", (Thinking("x" * 300), ToolCall("c", "n", {"a": "x" * 300}))), 200),
        (Message("tool", (ToolOutput("c", "x" * 300, media=(Image("image/png", "aa"),)),)), 1700),
        (user(Image(url="http://127.0.0.1/x.png")), 1600),
        (user(File("text/plain", "a" * 400)), 100),
        (Message("user", (Text(""),)), 1),
    ],
)
def test_estimates_are_rather_too_high(message, least):
    assert estimate(message) >= least
