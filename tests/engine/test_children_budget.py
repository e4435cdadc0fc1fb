"""A budget holds over the whole tree of sessions, whatever runs side by side."""

import asyncio

import pytest
from family import Cast, children_of, family_engine, task, tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.engine.budget import Budget, Limits, estimate
from bridle.engine.subagents import child_limits
from bridle.errors import BudgetReached
from bridle.events import (
    CallIntended,
    ChildStarted,
    ResponseCompleted,
    TraceEvent,
    UsageReported,
)
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.protocols.tool import Task
from bridle.stores.day_budget import DayBudget
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from bridle.usage import Price, Usage
from rig import SOAK, call, endings, events, results, run, until

PRICED = ProviderInfo("scripted", "m", max_output=1000, price=Price(1.0, 5.0))


@tool(read_only=True)
async def look(n: int = 0) -> int:
    """Look at it."""
    await asyncio.sleep(0)
    return n


class Forest:
    """A model that plays a tree of tasks, and counts as a server does: what was read, and wrote.

    A node is a list of steps; a step is a number of looks, or a list of nodes to hand out.
    """

    def __init__(self, root, written):
        self.nodes = {"go": list(root)}
        self.written = written

    def __call__(self, request):
        name = next(one.content for one in request.messages if one.role == "user")
        steps = self.nodes[name]
        reply = self.reply(name, steps.pop(0)) if steps else {"text": "done"}
        read = sum(estimate(one) for one in request.messages) // 2  # our estimates are generous
        wrote = min(self.written, request.config.max_tokens or 1000)
        return {**reply, "usage": {"inputTokens": read, "outputTokens": wrote}}

    def reply(self, name, step):
        if isinstance(step, int):
            looks = [{"name": "look", "arguments": {"n": n}} for n in range(step)]
            return {"text": "look", "calls": looks}
        names = [f"{name}.{len(self.nodes)}.{number}" for number, _ in enumerate(step)]
        self.nodes |= {one: list(node) for one, node in zip(names, step, strict=True)}
        return tasks(*((one, {}) for one in names))


looks = st.integers(1, 2)
leaf = st.lists(looks, min_size=1, max_size=4)
node = st.recursive(
    leaf,
    lambda below: st.lists(looks | st.lists(below, min_size=2, max_size=3), max_size=3),
    max_leaves=6,
)
root = st.lists(st.lists(node, min_size=2, max_size=4), min_size=1, max_size=2)
limits = st.builds(
    Limits,
    max_steps=st.sampled_from((0, 3, 7, 20)),
    max_tool_calls=st.sampled_from((0, 2, 5)),
    max_turn_tokens=st.sampled_from((0, 900, 4000, 9000, 30_000)),
    max_cost=st.sampled_from((0.0, 0.002, 0.02, 0.06)),
    max_session_tokens=st.sampled_from((0, 4000, 12_000)),
    max_session_cost=st.sampled_from((0.0, 0.008, 0.03)),
)


def tree(engine, session_id):
    """A session and all below it."""
    return [
        session_id,
        *(one for child in children_of(engine, session_id) for one in tree(engine, child)),
    ]


def used(engine, session_id):
    """Steps, calls, tokens and money by what each log says of its own session, added up."""
    steps = calls = tokens = 0
    money = 0.0
    for one in tree(engine, session_id):
        own = [use for use in events(engine, one, UsageReported) if use.purpose != "task"]
        steps += len(events(engine, one, ResponseCompleted))
        calls += len(events(engine, one, CallIntended))
        tokens += sum(use.usage.total_tokens for use in own)
        money += sum(use.cost for use in own)
    return steps, calls, tokens, money


@settings(max_examples=600 if SOAK else 60, deadline=None)
@given(root, limits, st.sampled_from((10, 200, 5000)))
def test_no_tree_of_sessions_uses_more_than_the_limits_of_its_root(nodes, found, written):
    async def story():
        async with family_engine(Forest(nodes, written), look, info=PRICED, limits=found) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert set(endings(engine, session.id)) <= {"done", "budget"}
            return result.metrics, used(engine, session.id)

    metrics, (steps, calls, tokens, money) = run(story())
    assert not found.max_steps or steps <= found.max_steps
    assert not found.max_tool_calls or calls <= found.max_tool_calls
    for limit in filter(None, (found.max_turn_tokens, found.max_session_tokens)):
        assert tokens <= limit
    for limit in filter(None, (found.max_cost, found.max_session_cost)):
        assert money <= limit + 1e-12
    assert (metrics.tokens, metrics.invocations, metrics.tool_calls) == (tokens, steps, calls)
    assert abs(metrics.cost - money) < 1e-9


BIG = ProviderInfo("scripted", "m", max_output=128_000, price=Price(4.0, 20.0))


@pytest.mark.parametrize(
    "limits", [Limits(max_cost=2.0), Limits(max_turn_tokens=40_000), Limits(max_turn_tokens=9000)]
)
def test_children_side_by_side_wait_for_what_others_have_only_set_aside(limits):
    """A reservation is not spent, and it is what is sent, not what the model can write."""

    async def story():
        used_up = {"inputTokens": 100, "outputTokens": 20}
        names = ("a", "b", "c", "d")
        step = {**call("look"), "usage": used_up}
        done = {"text": "done", "usage": used_up}
        cast = Cast(
            go=[tasks(*((name, {}) for name in names)), done],
            **{name: [step, done] for name in names},
        )
        async with family_engine(cast, look, info=BIG, limits=limits) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            below = children_of(engine, session.id)
            traces = [one for name in below for one in events(engine, name, TraceEvent)]
            cut = [one for one in traces if one.kind == "reply_limit"]
            ends = [endings(engine, one) for one in below]
            return result, ends, cut, used(engine, session.id)

    result, below, cut, (_, _, tokens, money) = run(story())
    assert (result.reason, below) == ("done", [["done"]] * 4)
    assert tokens == result.metrics.tokens <= (limits.max_turn_tokens or tokens)
    assert money <= 0.1
    # a whole reply has 32,000 tokens: it is made shorter only if the limit itself is too small
    assert bool(cut) == (limits.max_turn_tokens == 9000)


def test_a_child_that_waits_for_others_can_be_interrupted():
    async def story():
        limits = Limits(max_turn_tokens=9000)
        slow = {"text": "slow", "delay": 600.0}
        cast = Cast(go=[tasks(("a", {}), ("b", {}))], a=[slow], b=[slow])
        async with family_engine(cast, info=BIG, limits=limits) as engine:
            session = await engine.session()
            turn = await session.send("go")
            started = []

            def both_began(event):
                started.extend([event] if isinstance(event, ChildStarted) else [])
                return len(started) == 2

            await until(session, both_began)
            for _ in range(100):  # one asks its model, and the other waits
                await asyncio.sleep(0)
            await session.interrupt()
            result = await asyncio.wait_for(session.wait(turn), 40)
            return result.reason, [endings(engine, one) for one in children_of(engine, session.id)]

    reason, below = run(story())
    assert (reason, below) == ("interrupted", [["interrupted"]] * 2)


def test_what_an_ancestor_has_set_aside_for_itself_is_not_waited_for():
    """It is free only when the ancestor has ended, which waits for its child."""
    root = Budget(Limits(max_turn_tokens=10_000), PRICED, who="r")
    agent = Budget(Limits(max_turn_tokens=10_000), PRICED, who="a")
    agent.begin_below(root, shares=True)
    child = Budget(Limits(max_turn_tokens=10_000), PRICED, who="c")
    child.begin_below(agent, shares=False)
    config = run(child.reserve(RequestConfig(), 100))
    assert config == RequestConfig()
    child.spend(Usage(100, 1000), None)
    assert root.reserved == (8900, 0.0)
    agent.end_reservation()
    root.end_below("a")
    agent.end_reservation()
    assert root.reserved == (0, 0.0)


def test_a_child_has_what_was_asked_for_and_never_more_than_is_left():
    budget = Budget(
        Limits(max_steps=10, max_turn_tokens=1000, max_cost=0.5, max_tool_calls=4), PRICED
    )
    run(budget.reserve(RequestConfig(50), 100))
    budget.spend(Usage(100, 50), 0.1)
    mine = child_limits(
        budget, Task("a", max_cost=9.0, max_steps=3, max_seconds=9.0), 5.0, shares=False
    )
    assert (mine.max_steps, mine.max_tool_calls, mine.max_turn_tokens) == (3, 4, 850)
    assert (mine.max_cost, mine.max_seconds) == (0.4, 5.0)
    theirs = child_limits(budget, Task("a"), None, shares=True)  # an agent that spends unasked
    assert (theirs.max_turn_tokens, theirs.max_cost, theirs.max_seconds) == (425, 0.2, 0.0)


def test_arguments_bound_a_child_and_how_it_ended_is_told():
    async def story(**bound):
        cast = Cast(go=[task("a", **bound), "ok"], a=[call("look")] * 9)
        async with family_engine(cast, look, info=PRICED) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert result.reason == "done"
            (child,) = children_of(engine, session.id)
            ((_, text, failed),) = results(engine, session.id)
            return failed, text.partition(".")[0], len(events(engine, child, ResponseCompleted))

    ended = "The task reached a limit before it was done: the limit of 2 steps is reached"
    assert run(story(max_steps=2)) == (True, ended, 2)
    failed, text, steps = run(story(max_cost=0.000001))
    assert (failed, steps) == (True, 0)
    assert text.startswith("The task reached a limit before it was done: the limit of under $0")


def test_a_task_that_nothing_is_left_for_is_refused():
    async def story():
        cast = Cast(go=[task("a"), "never"])
        async with family_engine(cast, look, limits=Limits(max_steps=1)) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.reason, children_of(engine, session.id), results(engine, session.id)

    said = "nothing is left of the limits for a task: no steps"
    assert run(story()) == ("budget", [], [("call_1", said, True)])


def test_what_an_agent_may_spend_unasked_is_set_aside_above_until_it_has_ended():
    above = Budget(Limits(max_cost=1.0), PRICED, who="p")
    child = Budget(Limits(max_cost=0.4), PRICED, who="c")
    child.begin_below(above, shares=True)
    assert above.reserved == (0, 0.4)
    child.spend(Usage(10, 10), 0.1)
    assert above.reserved[1] == 0.4 - 0.1
    assert (above.money, above.tokens) == (0.1, 20)
    above.end_below("c")
    assert above.reserved == (0, 0)


def test_an_unknown_price_below_ends_a_tree_that_has_a_limit_of_money():
    above = Budget(Limits(max_cost=1.0), PRICED, who="p")
    child = Budget(Limits(max_cost=0.5), PRICED, who="c")
    child.begin_below(above, shares=False)
    child.spend(Usage(10, 10), None, "strange")
    with pytest.raises(BudgetReached, match="what strange cost is unknown"):
        run(above.reserve(RequestConfig(), 1))


def test_the_day_counts_what_a_child_used_once(tmp_path):
    """The parent's log repeats it; the account of the day goes by the child's own."""
    used_up = {"inputTokens": 100, "outputTokens": 100}

    async def story():
        cast = Cast(
            go=[{**task("a"), "usage": used_up}, {"text": "ok", "usage": used_up}],
            a=[{"text": "done", "usage": used_up}],
        )
        day = DayBudget(tmp_path)
        async with family_engine(
            cast,
            info=PRICED,
            store=JsonlStore(tmp_path),
            day=day,
            limits=Limits(max_day_tokens=100_000, max_day_cost=1.0),
        ) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.metrics.tokens, day.spent()

    tokens, spent = run(story())
    assert (tokens, spent.tokens, spent.unpriced) == (600, 600, 0)
    assert abs(spent.money - 3 * 0.0006) < 1e-12


def test_a_limit_of_the_day_stops_children_side_by_side(tmp_path):
    used_up = {"inputTokens": 100, "outputTokens": 100}

    async def story():
        day = DayBudget(tmp_path)
        busy = [{**call("look"), "usage": used_up}] * 20
        cast = Cast(
            go=[tasks(("a", {}), ("b", {}), ("c", {})), "ok"], a=busy[:], b=busy[:], c=busy[:]
        )
        async with family_engine(
            cast,
            look,
            info=PRICED,
            store=JsonlStore(tmp_path),
            day=day,
            limits=Limits(max_day_tokens=6_000),
        ) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.reason, day.spent().tokens, used(engine, session.id)[2]

    reason, spent, tokens = run(story())
    assert reason == "budget"
    assert 0 < spent == tokens <= 6_000
