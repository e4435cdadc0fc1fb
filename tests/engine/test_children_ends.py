"""How child sessions end: with their parent, by a person, parked, unasked, by another agent."""

import asyncio
from contextlib import aclosing

import pytest
from acting import Acting
from family import Cast, children_of, ends_of, family_engine, task, tasks

from bridle.engine.history import UNKNOWN
from bridle.engine.subagents import AT_ONCE
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    ChildStarted,
    ResponseCompleted,
    ToolOutputDelta,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, Text
from bridle.protocols.agent import AgentResponse
from bridle.protocols.session import Answer
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from bridle.usage import Usage
from rig import call, endings, events, results, run, until


class Work:
    """A tool that waits until it is let go, and one that changes something."""

    def __init__(self):
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled, self.done, self.most, self.now = 0, [], 0, 0

        @tool(read_only=True)
        async def wait() -> str:
            """Wait."""
            self.now += 1
            self.most = max(self.most, self.now)
            self.begun.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            finally:
                self.now -= 1
            return "waited"

        @tool
        async def mark(word: str) -> str:
            """Change something."""
            self.done.append(word)
            return f"made {word}"

        self.tools = wait, mark


def test_an_interrupt_of_the_parent_reaches_every_child_and_waits_for_it():
    async def story():
        work = Work()
        cast = Cast(
            go=[tasks(("a", {}), ("b", {})), "never"],
            a=[task("below"), "never"],
            below=[call("wait"), "never"],
            b=[call("wait"), "never"],
        )
        async with family_engine(cast, *work.tools) as engine:
            session = await engine.session()
            turn = await session.send("go")
            while work.now < 2:
                work.begun.clear()
                await work.begun.wait()
            await session.interrupt()
            assert [one.id for one in engine.summaries()] == [session.id]
            result = await session.wait(turn)
            (a, b) = children_of(engine, session.id)
            (below,) = children_of(engine, a)
            assert (result.reason, work.cancelled, work.now) == ("interrupted", 2, 0)
            for one in (session.id, a, b, below):
                assert endings(engine, one) == ["interrupted"]
            assert ends_of(engine, session.id) == {a: "interrupted", b: "interrupted"}
            said = [text for _, text, _ in results(engine, session.id)]
            assert said == ["interrupted before it finished"] * 2

    run(story())


def test_an_interrupt_of_the_child_alone_is_a_failed_call_for_the_parent():
    async def story():
        work = Work()
        cast = Cast(go=[task("a"), "I see"], a=[call("wait"), "never"])
        async with family_engine(cast, *work.tools) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await work.begun.wait()
            (child,) = children_of(engine, session.id)
            await engine.get_open(child).interrupt(by="ann")
            result = await session.wait(turn)
            ((_, text, failed),) = results(engine, session.id)
            return result.reason, text.partition(":")[0], failed

    said = "The task was interrupted before it was done"
    assert run(story()) == ("done", said, True)


def test_no_more_than_a_few_run_at_once_and_the_others_come_after():
    async def story():
        work = Work()
        names = [f"n{number}" for number in range(AT_ONCE + 2)]
        cast = Cast(
            go=[tasks(*((name, {}) for name in names)), "ok"],
            **{name: [call("wait"), f"{name} is done"] for name in names},
        )
        async with family_engine(cast, *work.tools) as engine:
            session = await engine.session()
            turn = await session.send("go")
            while work.now < AT_ONCE:
                work.begun.clear()
                await work.begun.wait()
            assert len(engine.summaries()) == AT_ONCE + 1
            work.go.set()
            await session.wait(turn)
            return work.most, sorted(ends_of(engine, session.id).values())

    assert run(story()) == (AT_ONCE, ["done"] * (AT_ONCE + 2))


def test_with_nobody_to_ask_a_childs_question_is_a_no_and_the_parent_counts_it():
    async def story():
        work = Work()
        cast = Cast(go=[task("a"), "ok"], a=[call("mark", word="x"), "could not"])
        async with family_engine(cast, *work.tools) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.reason, result.permission_needed, work.done

    assert run(story()) == ("done", 1, [])


def test_a_question_of_a_child_that_waits_is_answered_in_the_childs_session():
    async def story():
        work = Work()
        cast = Cast(go=[task("a"), "ok"], a=[call("mark", word="x"), "marked"])
        async with family_engine(cast, *work.tools, on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            told = await until(session, lambda one: isinstance(one, ToolOutputDelta))
            (child,) = children_of(engine, session.id)
            reason = "mark needs approval: mark may change things"
            assert told.event.text == f"? {reason} (session {child})\n"
            waiting = {one.id: one.waiting for one in engine.summaries()}
            assert waiting == {session.id: 0, child: 1}
            (asked,) = events(engine, child, ApprovalAsked)
            shown = asked.shown
            await engine.get_open(child).answer(asked.call.id, True, shown=shown, by="ann")
            result = await session.wait(turn)
            return result.reason, work.done, events(engine, session.id, ApprovalAsked)

    assert run(story()) == ("done", ["x"], [])


def test_a_parked_child_rests_in_its_own_log_and_goes_on_from_there():
    """The parent's call ends with a word about it; nothing is run that nobody allowed."""

    async def story():
        work = Work()
        cast = Cast(go=[task("a"), "I will wait"], a=[call("mark", word="x"), "marked"])
        async with family_engine(cast, *work.tools, on_ask="park") as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            (child,) = children_of(engine, session.id)
            ((_, text, failed),) = results(engine, session.id)
            assert (result.reason, failed, work.done) == ("done", True, [])
            assert text.startswith("The task is parked until a person answers")
            assert ends_of(engine, session.id) == {child: "parked"}
            again = await engine.session(child)
            (asked,) = events(engine, child, ApprovalAsked)
            assert (again.is_parked, again.turn) == (True, 1)
            await again.answer(asked.call.id, Answer(True), shown=asked.shown, by="ann")
            after = await again.wait(1)
            return after.reason, after.text, work.done

    assert run(story()) == ("done", "marked", ["x"])


def test_an_approver_is_asked_one_question_at_a_time_over_the_whole_tree():
    async def story():
        work, asking = Work(), []

        async def approver(asked):
            asking.append(asked.call.arguments["word"])
            assert len(asking) == 1
            await asyncio.sleep(0)
            asking.clear()
            return True

        names = ("a", "b", "c")
        cast = Cast(
            go=[tasks(*((name, {}) for name in names)), "ok"],
            **{name: [call("mark", word=name), "ok"] for name in names},
        )
        async with family_engine(cast, *work.tools, approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            answers = [
                events(engine, one, ApprovalAnswered) for one in children_of(engine, session.id)
            ]
            return sorted(work.done), [len(one) for one in answers]

    assert run(story()) == (["a", "b", "c"], [1, 1, 1])


@pytest.mark.parametrize("where", [ChildStarted, ResponseCompleted])
def test_after_a_crash_the_childs_turn_is_interrupted_and_the_call_is_unknown(tmp_path, where):
    """(A8) A killed process leaves the beginnings of both logs."""
    work = Work()

    async def play():
        cast = Cast(go=[task("a"), "never"], a=[call("wait"), "never"])
        async with family_engine(cast, *work.tools, store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            await session.send("go")
            await work.begun.wait()
            (child,) = children_of(engine, session.id)
            kept = {}
            for one in (session.id, child):  # as a kill leaves them
                await engine.get_open(one)._log.settled()
                kept[one] = JsonlStore(tmp_path).path(one).read_bytes()
            await session.interrupt()
        for one, data in kept.items():
            JsonlStore(tmp_path).path(one).write_bytes(data)
        return session.id, child

    async def resume(parent, child):
        async with family_engine(Cast(), *work.tools, store=JsonlStore(tmp_path)) as engine:
            ids = (parent, child) if where is ChildStarted else (child, parent)
            for one in ids:
                await engine.session(one)
            assert endings(engine, child) == ["interrupted"]
            assert endings(engine, parent) == ["interrupted"]
            assert [text for _, text, _ in results(engine, parent)] == [UNKNOWN]
            assert len(events(engine, parent, CallIntended)) == 1

    run(resume(*run(play())))


async def speak(prompt, session, can_use_tool):
    session.claude_session_id = "theirs"
    session.emit(UsageReported(Usage(100, 10), "other", 0.25))
    allowed = await can_use_tool("mark", {"word": prompt})
    said = "allowed" if allowed else f"refused: {allowed.message}"
    if allowed:
        await session.finish(allowed.call_id, "made it")
    session.emit(ResponseCompleted("complete", Message("assistant", (Text(said),))))
    return AgentResponse(said)


def test_another_agent_carries_a_task_behind_the_same_gate_and_is_shut_down_after():
    made = []

    def agents(name):
        made.append(Acting(speak))
        return made[-1]

    async def yes(asked):
        return "task" in asked.reason or asked.call.name == "task"

    async def story(agent, **rest):
        work = Work()
        cast = Cast(go=[task("a", agent=agent), "ok"])
        async with family_engine(cast, *work.tools, agents=agents, **rest) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            texts = [text for _, text, _ in results(engine, session.id)]
            for child in children_of(engine, session.id):
                assert [one.session_id for one in events(engine, child, AgentAttached)][-1:] == [
                    "theirs"
                ]
            return result.metrics.cost, texts[0].rpartition("\n")[2]

    cost, said = run(story("acting", approver=yes))
    assert (cost, said) == (0.25, "allowed")
    assert [one.is_down for one in made] == [True]
    denied = "not run: it starts a program: acp:evil; only a person may allow that"
    assert run(story("acp:evil", mode="auto")) == (0.0, denied)
    planned = "not run: plan mode only reads; nothing is changed until the plan is agreed"
    assert run(story("acting", mode="plan")) == (0.0, planned)
    assert len(made) == 1


def test_a_subscriber_of_the_parent_sees_the_child_begin_before_it_does_anything():
    async def story():
        work = Work()
        work.go.set()
        cast = Cast(go=[task("a"), "ok"], a=[call("wait"), "done"])
        async with family_engine(cast, *work.tools) as engine:
            session = await engine.session()
            seen = []
            async with aclosing(session.subscribe()) as records:
                await session.send("go")
                async for record in records:
                    seen.append(record.event)
                    if isinstance(record.event, ChildStarted):
                        seen.append(list(events(engine, record.event.session_id, CallIntended)))
                    if isinstance(record.event, TurnEnded):
                        break
            index = next(n for n, one in enumerate(seen) if isinstance(one, ChildStarted))
            return seen[index + 1], type(seen[index - 1])

    assert run(story()) == ([], CallIntended)
