"""The public names of the agent protocol, as somebody else's code uses them."""

import msgspec
import pytest

import bridle
from bridle.agents.base import AgentResponse, BaseAgent, Permission, ToolActivity
from bridle.engine.hub import HubEvent
from bridle.errors import ConfigError
from bridle.events import AgentAttached, AgentResponded, TextDelta
from rig import events, run


class Greeter:
    """Any object of this shape is an agent."""

    async def execute(self, prompt, session, *, can_use_tool, on_text_chunk, on_tool_activity):
        await on_tool_activity(ToolActivity("think", "about it"))
        await on_text_chunk(f"{session.mode} in {session.working_directory}")
        await on_tool_activity(None)
        known = session.claude_session_id or "nobody"
        return AgentResponse(f"{session.id} was {known}", "conversation-1", cost=0.5, num_turns=1)

    async def cancel(self, session_id): ...
    async def shutdown(self): ...


def test_whatever_has_the_shape_is_an_agent_without_registration(tmp_path):
    """(P1) It is handed to build_engine; the session has id, folder, mode and conversation."""
    assert isinstance(Greeter(), BaseAgent)

    async def story():
        options = {"workspace": tmp_path, "state": tmp_path / "state", "mode": "edits"}
        async with bridle.build_engine(agent=Greeter(), **options) as engine:
            session = await engine.session()
            await session.wait(await session.send("hello"))
            result = await session.wait(await session.send("again"))
            return engine, session.id, result, session.metrics.cost

    engine, name, result, cost = run(story())
    assert result.text.endswith(f"{name} was conversation-1")
    said = "".join(one.text for one in events(engine, name, TextDelta))
    assert said.count(f"edits in {tmp_path}") == 2
    assert events(engine, name, AgentAttached)[-1] == AgentAttached("Greeter", "conversation-1")
    first, second = events(engine, name, AgentResponded)
    assert (first.agent, first.turn, second.turn, second.num_turns) == ("Greeter", 1, 2, 1)
    assert cost == 1.0


@pytest.mark.parametrize("lacking", ["execute", "cancel", "shutdown"])
def test_what_lacks_a_verb_is_said_at_once(lacking):
    """(P1)"""
    verbs = {name: None for name in ("execute", "cancel", "shutdown") if name != lacking}
    with pytest.raises(ConfigError, match=f"it has no {lacking}"):
        bridle.build_engine(agent=type("Half", (), verbs)())


def test_a_response_and_an_activity_are_frozen_values_with_their_defaults():
    """(P2) `AgentResponse(content=…)` alone constructs."""
    assert msgspec.structs.asdict(AgentResponse(content="done")) == {
        "content": "done",
        "session_id": None,
        "cost": 0.0,
        "duration_ms": 0,
        "num_turns": 0,
        "tools_used": [],
        "is_error": False,
    }
    assert AgentResponse("a").tools_used is not AgentResponse("a").tools_used
    activity = ToolActivity(tool_name="Bash", description="ls")
    for value, field in ((AgentResponse("a"), "content"), (activity, "description")):
        with pytest.raises(AttributeError):
            setattr(value, field, "other")
    assert Permission(True) and not Permission(False)
    assert (Permission(True).behavior, Permission(False).behavior) == ("allow", "deny")


def test_what_an_agent_says_of_itself_is_told_by_topic(tmp_path):
    """(P7, S6) Activity while it runs, and `None` where no tool runs any more."""

    async def story():
        options = {"workspace": tmp_path, "state": tmp_path / "state"}
        async with bridle.build_engine(agent=Greeter(), **options) as engine:
            told: list[HubEvent] = []
            listening = engine.subscribe("agent")
            await engine.run("hello")
            async for one in listening:
                told.append(one)
                if one.name == "complete":
                    break
            await listening.aclose()
            return [one for one in told if one.name in ("activity", "attached", "responded")]

    told = run(story())
    names = [one.name for one in told]
    assert names == ["attached", "activity", "activity", "attached", "responded"]
    tools = [one.record.event.tool_name for one in told if one.name == "activity"]
    assert tools == ["think", ""]
    assert told[-1].message_id.startswith("m")
