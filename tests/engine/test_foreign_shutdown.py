"""An engine is closed whatever its agent does about it."""

import asyncio

from acting import Acting, acting_engine

from bridle.agents.base import AgentResponse
from bridle.engine.foreign import agent as foreign_agent
from rig import run


async def act(prompt, session, can_use_tool):
    return AgentResponse("ok")


async def closed(agent):
    async with acting_engine(agent) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
    return session.is_closed


def test_an_agent_that_breaks_when_it_is_shut_down_is_a_warning(caplog):
    async def shutdown():
        raise RuntimeError("no")

    agent = Acting(act)
    agent.shutdown = shutdown
    assert run(closed(agent))
    assert "the agent could not be shut down" in caplog.text


def test_an_agent_that_does_not_shut_down_is_not_waited_for(caplog, monkeypatch):
    monkeypatch.setattr(foreign_agent, "SHUTDOWN_SECONDS", 0.01)

    async def shutdown():
        await asyncio.Event().wait()

    agent = Acting(act)
    agent.shutdown = shutdown
    assert run(closed(agent))
    assert "did not shut down" in caplog.text


def test_an_agent_of_one_method_will_do_for_a_turn():
    class Bare:
        async def execute(self, prompt, session, **callbacks):
            return AgentResponse(f"you said {prompt}")

    async def story():
        async with acting_engine(Bare()) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("hi"))
            return result.text, list(session.history.attached)

    assert run(story()) == ("you said hi", ["Bare"])
