"""Tasks of sessions that another agent carries: through the same gate, below the same budget."""

from acting import Acting, acting_engine
from family import children_of, ends_of

from bridle.engine.budget import Budget, Limits
from bridle.engine.foreign.budget import limit_reached
from bridle.events import ChildStarted, UsageReported
from bridle.protocols.agent import AgentResponse
from bridle.protocols.provider import ProviderInfo
from bridle.tools.function import tool
from bridle.tools.session_tools import TaskTool
from bridle.usage import Usage
from rig import events, results, run


async def play(act, *tools, **rest):
    agent = Acting(act)
    async with acting_engine(agent, TaskTool(), *tools, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        return engine, session.id, result, agent


def test_an_agent_hands_a_task_to_itself_where_there_is_no_model_beside_it():
    rooms = []

    async def act(prompt, session, can_use_tool):
        rooms.append(session.remaining.money)
        if prompt == "go":
            done = await session.call("task", {"prompt": "below"})
            rooms.append(session.remaining.money)
            return AgentResponse(done.text.rpartition("\n")[2])
        session.emit(UsageReported(Usage(10, 10), "m", 0.25))
        return AgentResponse(f"did {prompt}")

    engine, parent, result, agent = run(play(act, limits=Limits(max_cost=1.0)))
    (child,) = children_of(engine, parent)
    assert (result.reason, result.text, result.metrics.cost) == ("done", "did below", 0.25)
    assert rooms == [1.0, 0.5, 0.75]  # the child may spend half of what was left
    started = [(one.session_id, one.agent) for one in events(engine, parent, ChildStarted)]
    assert started == [(child, "acting")]
    assert agent.is_down  # with the engine, and not with the child


def test_a_child_that_spends_more_than_its_part_is_ended():
    async def act(prompt, session, can_use_tool):
        if prompt == "go":
            done = await session.call("task", {"prompt": "below", "max_cost": 0.1})
            return AgentResponse(done.text.partition(":")[0])
        session.emit(UsageReported(Usage(10, 10), "m", 0.25))
        return AgentResponse("never heard")

    engine, parent, result, _ = run(play(act, limits=Limits(max_cost=1.0)))
    assert list(ends_of(engine, parent).values()) == ["budget"]
    assert result.text == "The task reached a limit before it was done"


def test_agents_side_by_side_are_ended_by_what_they_use_together():
    above = Budget(Limits(max_steps=3), ProviderInfo("m"), who="p")
    one, two = (Budget(Limits(max_steps=3), ProviderInfo("m"), who=who) for who in ("a", "b"))
    for child in (one, two):
        child.begin_below(above, shares=True)
    one.add_steps(2)
    assert limit_reached(two, two.before) == ("", "")
    two.add_steps(2)
    assert (above.steps, two.steps) == (4, 2)
    assert limit_reached(two, two.before) == ("the limit of 3 steps is reached", "")


def test_our_loop_cannot_do_it_without_a_model_and_says_what_to_do():
    async def act(prompt, session, can_use_tool):
        done = await session.call("task", {"prompt": "below", "agent": "loop"})
        return AgentResponse(done.text)

    engine, parent, result, _ = run(play(act))
    assert result.text == "there is no model beside acting: name 'same' as the agent"
    assert children_of(engine, parent) == []


def test_what_an_agent_does_in_a_task_is_judged_in_the_parents_mode():
    @tool
    async def mark(word: str) -> str:
        """Change something."""
        return word

    async def act(prompt, session, can_use_tool):
        if prompt == "go":
            done = await session.call("task", {"prompt": "below"})
            return AgentResponse(done.text.rpartition("\n")[2])
        allowed = await can_use_tool("mark", {"word": "x"})
        return AgentResponse(f"{session.mode}: {allowed.message}")

    engine, parent, result, _ = run(play(act, mark, mode="plan"))
    assert result.text.startswith("plan: not run: plan mode only reads")
    assert [failed for _, _, failed in results(engine, parent)] == [False]
