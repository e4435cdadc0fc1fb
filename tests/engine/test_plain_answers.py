"""What a session takes at its word no longer than it is true: a yes, a grant, a count."""

import pytest

from bridle.engine.approvals import answered_decision
from bridle.engine.budget import Limits
from bridle.engine.engine_config import EngineConfig
from bridle.engine.gate import Gate
from bridle.events import ApprovalAsked, ResponseCompleted
from bridle.messages import Message, Text, ToolCall
from bridle.policy import Decision, Rule
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.session import NO, Answer
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.usage import Usage
from bridle.workspace.workspace import Workspace
from rig import Thing, call, events, make_engine, run


@pytest.mark.parametrize("allowed", ["no", "yes", 1, None])
def test_the_gate_takes_nothing_for_a_yes_that_is_none(allowed):
    found = answered_decision(Decision("ask", "", "r"), Answer(allowed))
    assert found == Decision("deny", "approval was denied", "r")


def test_the_gate_alone_comes_back_with_the_reason():
    parts = EngineConfig(
        Scripted([]), {}, MemoryStore(), Workspace("/"), rules=(Rule("ask", "thing"),)
    )
    gate = Gate.of_session(parts, lambda: "ask", {})
    judged = gate.judge(ToolCall("c", "thing", {}), Thing(None, read_only=False))
    assert judged.decision == Decision("ask", "a rule says so", "ask: thing")
    found = answered_decision(judged.decision, NO)
    assert found == Decision("deny", "approval was denied", "ask: thing")


async def _asked(store, folder, session_id=None):
    """How often a person is asked who allows everything for the session."""

    async def change(arguments, context):
        return "ok"

    async def approver(asked):
        return Answer(True, "session")

    tool = Thing(change, read_only=False)
    replies = [call("thing"), call("thing"), "ok"]
    rest = {"store": store, "root": folder, "approver": approver}
    async with make_engine(replies, tool, **rest) as engine:
        session = await engine.session(session_id)
        await session.wait(await session.send("go"))
        return session.id, len(events(engine, session.id, ApprovalAsked))


def test_a_yes_for_the_session_holds_in_the_folder_that_it_was_given_for(tmp_path):
    async def story():
        store = MemoryStore()
        here, there = tmp_path / "a", tmp_path / "b"
        here.mkdir()
        there.mkdir()
        found, first = await _asked(store, here)
        _, same = await _asked(store, here, found)
        _, other = await _asked(store, there, found)
        return first, same, other

    assert run(story()) == (1, 1, 2)


class Counting:
    """A model that counts what it reads, a token for four characters."""

    info = ProviderInfo("counting", "m")

    async def stream(self, request):
        read = sum(len(one.content) for one in request.messages) // 4 + 50
        yield ResponseCompleted("complete", Message("assistant", (Text("ok"),)), Usage(read, 5))

    async def close(self):
        pass


def test_a_session_that_was_rewound_and_taken_up_again_is_measured_anew():
    async def story():
        store, limits = MemoryStore(), Limits(max_turn_tokens=15_000)
        async with make_engine(Counting(), store=store) as engine:
            session = await engine.session()
            await session.wait(await session.send("hello"))
            mark = session.seq
            await session.wait(await session.send("word " * 16_000))
            assert session.metrics.context_tokens > 20_000
            await session.rewind(mark)
        async with make_engine(Counting(), store=store, limits=limits) as engine:
            session = await engine.session(session.id)
            return (await session.wait(await session.send("and now?"))).reason

    assert run(story()) == "done"
