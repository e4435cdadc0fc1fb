"""What is spent is spent: an agent is not started on nothing, and its last cost counts as well."""

import pytest
from acting import Acting, acting_engine, one_turn

from bridle.agents.base import AgentResponse
from bridle.engine.budget import Limits
from bridle.events import TextDelta, UsageReported
from bridle.usage import Usage
from rig import conversation, run


async def turns(count, limits, cost=0.6, tokens=0):
    """How so many turns of a session end, and how often the agent was started."""
    started = []

    async def act(prompt, session, can_use_tool):
        started.append(prompt)
        if tokens:
            session.emit(UsageReported(Usage(tokens, 0)))
        return AgentResponse("said", cost=cost)

    async with acting_engine(Acting(act), limits=limits) as engine:
        session = await engine.session()
        ends = [await session.wait(await session.send("go")) for _ in range(count)]
        return [(one.reason, one.text, one.detail) for one in ends], len(started)


SAID = "the limit of $1.00 a session is reached: $1.20 is spent"


def test_a_spent_session_starts_no_agent_and_the_turn_that_spends_the_last_ends_as_budget():
    ends, started = run(turns(4, Limits(max_session_cost=1.0)))
    none = ("budget", "", SAID)
    assert ends == [("done", "said", ""), ("budget", "said", SAID), none, none]
    assert started == 2


def test_tokens_of_a_session_that_are_used_start_no_agent():
    ends, started = run(turns(3, Limits(max_session_tokens=100), cost=0, tokens=60))
    assert ([one[0] for one in ends], started) == (["done", "budget", "budget"], 2)


def test_what_a_turn_cost_in_the_end_reaches_its_limit_and_its_answer_is_kept():
    ends, started = run(turns(2, Limits(max_cost=0.5)))
    end = ("budget", "said", "the limit of $0.50 is reached: $0.60 is spent")
    assert (ends, started) == ([end, end], 2)  # each turn has a limit of its own


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_within_the_limit_of_steps_is_done(streamed):
    async def act(prompt, session, can_use_tool):
        if streamed:
            session.emit(TextDelta("said"))
        return AgentResponse("said", cost=0.1)

    engine, sid, result = run(one_turn(Acting(act), limits=Limits(max_steps=1, max_cost=1.0)))
    assert (result.reason, result.text) == ("done", "said")
    assert conversation(engine, sid) == [("user", "go"), ("assistant", "said")]
