"""A step is what the model was asked: calls of one reply are one, however they came to the gate."""

import pytest
from acting import Acting, one_turn

from bridle.agents.base import AgentResponse
from bridle.engine.budget import Limits
from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    UsageReported,
)
from bridle.policy import parse_rule
from bridle.usage import Usage
from rig import events, run

RULES = (parse_rule("deny: bad"), parse_rule("allow: good"))


def asking(*script):
    """An agent that asks for calls by name, and says or reports whatever else is in the script."""

    async def act(prompt, session, can_use_tool):
        for number, one in enumerate(script):
            if not isinstance(one, str):
                session.emit(one)
                continue
            permission = await can_use_tool(one, {"n": number}, f"c{number}")
            if permission.stops:
                break
            if permission:
                await session.finish(permission.call_id, "made")
        return AgentResponse("")

    return Acting(act)


async def steps_of(*script, **rest):
    engine, sid, result = await one_turn(asking(*script), rules=RULES, **rest)
    replies = events(engine, sid, ResponseCompleted)
    return [one.grows for one in replies].count(False), result


USED = UsageReported(Usage(1, 1))


@pytest.mark.parametrize(
    ("script", "steps"),
    [
        (("bad",), 1),
        (("bad", "bad", "bad"), 1),
        (("bad", "good"), 1),
        (("good", "bad"), 2),  # what came of the first is there: it may have been read
        (("bad", TextDelta("again"), "bad"), 2),
        (("bad", ThinkingDelta("again"), "bad"), 2),
        (("bad", USED, "bad"), 2),
        ((ToolCallStarted("c2", "good"), ToolCallStarted("c3", "good"), "good", "good"), 1),
        ((ToolCallStarted("c1", "good"), "good", ToolCallStarted("c3", "good"), "good"), 2),
    ],
)
def test_calls_that_the_model_wrote_at_once_are_one_step(script, steps):
    found, result = run(steps_of(*script))
    assert (found, result.reason) == (steps, "done")


def test_calls_that_are_refused_at_once_do_not_use_up_the_steps():
    found, result = run(steps_of("bad", "bad", "bad", "bad", limits=Limits(max_steps=2, repeats=0)))
    assert (found, result.reason) == (1, "done")
    said = [part for word in "abc" for part in (TextDelta(word), "bad")]
    found, result = run(steps_of(*said, limits=Limits(max_steps=2, repeats=0)))
    assert (found, result.reason, result.detail) == (3, "budget", "the limit of 2 steps is reached")
