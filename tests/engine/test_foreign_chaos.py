"""An agent that does anything, in any order: one result a call, one end a turn, a valid fold."""

import asyncio
import random

import pytest
from acting import Acting, acting_engine
from standing import Ledger

from bridle.agents.base import AgentResponse, ToolActivity
from bridle.engine.budget import Limits
from bridle.engine.foreign import turn as foreign_turn
from bridle.engine.history import fold
from bridle.events import (
    CallIntended,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.policy import parse_rule
from bridle.protocols.store import Record
from bridle.stores.memory_store import MemoryStore
from bridle.usage import Usage
from rig import is_valid, run, seeds

IDS = ("", "a", "b", "c")
NAMES = ("echo", "free", "asked", "denied")
RULES = tuple(map(parse_rule, ("allow: echo", "allow: free", "deny: denied")))


async def echo(word: str = "") -> str:
    """A tool of ours."""
    await asyncio.sleep(0)
    return f"echo {word}"


class Chaos:
    """What an agent does, by chance."""

    def __init__(self, chance):
        self.chance = chance

    async def act(self, prompt, session, can_use_tool):
        self.session, self.ask = session, can_use_tool
        beside = []
        for _ in range(self.chance.randrange(12)):
            work = self.chance.choice((self.say, self.permit, self.use, self.reply, self.finish))()
            if self.chance.random() < 0.4:
                beside.append(asyncio.ensure_future(work))
            else:
                await work
        if self.chance.random() < 0.8:
            await asyncio.gather(*beside)
        else:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        return self.ended()

    def ended(self):
        match self.chance.randrange(8):
            case 0:
                raise ValueError("broke")
            case 1:
                return None
            case 2:
                return AgentResponse("it did not work", is_error=True)
        return AgentResponse("the end", "conv", 0.01)

    async def say(self):
        one = self.chance.randrange(6)
        if one == 0:
            self.session.emit(ThinkingDelta("hm "))
        elif one == 1:
            self.session.emit(TextDelta("word "))
        elif one == 2:
            await self.agent.chunk("chunk ")
        elif one == 3:
            self.session.emit(UsageReported(Usage(3, 4), "m", self.chance.choice((None, 0.1))))
        elif one == 4:
            await self.agent.activity(self.chance.choice((None, ToolActivity("x", "y"))))
        else:
            self.session.emit(ToolCallStarted("a", "echo"))

    async def permit(self):
        call_id = self.chance.choice(IDS)
        name = self.chance.choice(NAMES)
        permission = await self.ask(name, {"word": call_id}, call_id)
        await asyncio.sleep(0)
        if permission and self.chance.random() < 0.7:
            await self.session.finish(permission.call_id, "made", ok=self.chance.random() < 0.8)

    async def use(self):
        await self.session.call(self.chance.choice(NAMES), {"word": "w"}, self.chance.choice(IDS))

    async def reply(self):
        parts = [Text("text ")] if self.chance.random() < 0.6 else []
        for _ in range(self.chance.randrange(3)):
            call = ToolCall(self.chance.choice(IDS), self.chance.choice(NAMES), {"word": "r"})
            parts.append(call)
            if self.chance.random() < 0.3:
                self.session.emit(ToolCallReady(call))
        self.session.emit(ResponseCompleted("tool_use", Message("assistant", tuple(parts))))

    async def finish(self):
        self.session.emit(ToolResultEvent(ToolOutput(self.chance.choice(IDS), "reported")))


async def story(seed, store):
    chance = random.Random(seed)
    chaos = Chaos(chance)
    agent = chaos.agent = Acting(chaos.act)
    undo = Ledger() if chance.random() < 0.5 else None
    limits = Limits(
        max_tool_calls=chance.choice((0, 0, 2)), max_turn_tokens=chance.choice((0, 0, 20))
    )

    async def approver(asked):
        await asyncio.sleep(0)
        return chance.random() < 0.5

    rest = {"approver": approver, "rules": RULES, "limits": limits, "undo": undo}
    async with acting_engine(agent, echo, store=store, **rest) as engine:
        session = await engine.session()
        for number in range(3):
            turn = await session.send(f"go {number}")
            if chance.random() < 0.3:
                for _ in range(chance.randrange(30)):
                    await asyncio.sleep(0)
                await session.interrupt()
            await session.wait(turn)
            assert session.history.open_calls == ()
        return session.id


@pytest.mark.parametrize("seed", seeds(300))
def test_whatever_an_agent_does_the_log_is_whole(seed, monkeypatch):
    monkeypatch.setattr(foreign_turn, "CANCEL_SECONDS", 0.01)
    store = MemoryStore()
    sid = run(story(seed, store))
    records = list(store.read(sid))
    found = [record.event for record in records]
    assert [one.turn for one in found if isinstance(one, TurnEnded)] == [1, 2, 3]
    asked, answered = [], []
    for one in found:
        if isinstance(one, ResponseCompleted) and one.message is not None:
            asked += [call.id for call in one.message.tool_calls]
        elif isinstance(one, ToolResultEvent):
            answered.append((one.output.call_id, one.output.text))
    assert sorted(asked) == sorted(call_id for call_id, _ in answered)
    told = [one.text for message in fold(records).transcript for one in message.tool_results]
    assert sorted(told) == sorted(text for _, text in answered)  # none came too late to be read
    intended = [one.call_id for one in found if isinstance(one, CallIntended)]
    assert set(intended) <= set(asked)
    whole = fold(records)
    for end in range(1, len(records) + 1, 3):
        before = fold(records[:end])
        assert is_valid(before.transcript)
        summed = Record(end, "", before.checkpoint("h"))
        after = fold([summed, *records[end:]])  # a log that is taken up from there
        assert after.transcript == whole.transcript
        assert after.attached == whole.attached
