"""Claude Code through the engine: the gate, the log, approvals, undo, budgets, resume."""

from contextlib import asynccontextmanager

from claude_rig import claude, programs, runs, says, soak, until, uses, workspace

import bridle
from bridle.engine.budget import Limits
from bridle.events import (
    AgentAttached,
    AgentResponded,
    CallIntended,
    FileChange,
    FilesChanged,
    ModeChanged,
    ResponseCompleted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.protocols.session import Answer
from bridle.workspace.undo.undo import Undo
from rig import a_mark, conversation, endings, events, is_valid, marked, results, run
from rig import until as seen


@asynccontextmanager
async def engine_with(script, folder, *, more=None, **options):
    """An engine of real parts whose turns Claude Code carries."""
    async with claude(script, folder, **(more or {})) as (agent, server):
        state = str(folder / "state")
        root = workspace(folder)
        async with bridle.build_engine(
            agent=agent, workspace=root, state=state, **options
        ) as engine:
            yield engine, server


async def told(engine, words, session_id=None):
    """One turn, and how it ended."""
    session = await engine.session(session_id)
    result = await session.wait(await session.send(words))
    assert is_valid(session.history.transcript)
    return session, result


class Person:
    """Says yes, and remembers to what."""

    def __init__(self, *words, allows=True):
        self.asked = []
        self.words = list(words)
        self.allows = allows

    async def __call__(self, question):
        self.asked.append((question.call.name, question.call.arguments))
        return Answer(self.allows, by="tester", word=self.words.pop(0) if self.words else "")


def an_edit(root):
    file = str(root / "a.txt")
    return [
        uses("Read", {"file_path": file}),
        {
            **uses("Edit", {"file_path": file, "old_string": "one", "new_string": "two"}),
            "text": "I will edit it.",
        },
        says("Edited."),
    ]


async def edited(folder, person):
    """The first turn of the journey: a file is edited, with a person's leave."""
    root = workspace(folder)
    (root / "a.txt").write_text("one\n")
    async with engine_with(an_edit(root), folder, approver=person) as (engine, _):
        session, result = await told(engine, "edit it")
        return engine, session.id, result


def test_an_edit_is_asked_about_made_and_reported_as_our_own_loops_would_be_P7(tmp_path):
    root, person = workspace(tmp_path), Person()
    engine, session_id, result = run(edited(tmp_path, person))
    assert (result.reason, result.text) == ("done", "Edited.")
    edit = {"path": "a.txt", "old": "one", "new": "two"}
    assert person.asked == [("edit", edit)]
    assert (root / "a.txt").read_text() == "two\n"
    assert conversation(engine, session_id) == [
        ("user", "edit it"),
        ("assistant", ""),
        ("assistant", "I will edit it."),
        ("assistant", "Edited."),
    ]
    replies = [one.message for one in events(engine, session_id, ResponseCompleted)]
    assert [[call.name for call in one.tool_calls] for one in replies] == [["read"], ["edit"], []]
    read, change = [one.output for one in events(engine, session_id, ToolResultEvent)]
    assert (read.text, read.is_error, change.is_error) == ("one\n", False, False)
    assert change.data["path"] == "a.txt" and "-one\n+two\n" in change.data["diff"]
    order = [type(one) for one in events(engine, session_id)]
    assert order.index(AgentAttached) < order.index(CallIntended) < order.index(ToolResultEvent)
    (changed,) = events(engine, session_id, FilesChanged)
    assert changed.files == (FileChange("a.txt"),)
    (usage,) = events(engine, session_id, UsageReported)
    (response,) = events(engine, session_id, AgentResponded)
    assert usage.cost == response.cost > 0 and usage.usage.output_tokens == 3 * 42


def test_the_journey_goes_on_in_another_process_and_can_be_undone_P5(tmp_path):
    async def second(session_id):
        async with engine_with([says("It was two.")], tmp_path) as (engine, server):
            _, result = await told(engine, "what was it?", session_id)
            return engine, result, str(server.requests[0].body["messages"])

    _, session_id, _ = run(edited(tmp_path, Person()))
    engine, result, told_it = run(second(session_id))
    assert (result.reason, result.text) == ("done", "It was two.")
    assert "edit it" in told_it and "Edited." in told_it
    attached = [one.session_id for one in events(engine, session_id, AgentAttached)]
    assert len(set(attached) - {""}) == 1
    costs = [one.cost for one in events(engine, session_id, UsageReported)]
    assert abs(costs[0] - 3 * costs[1]) < 1e-9  # the program said the sum; the log has the parts
    assert endings(engine, session_id) == ["done", "done"]
    Undo(str(workspace(tmp_path)), tmp_path / "state").undo(session_id)
    assert (workspace(tmp_path) / "a.txt").read_text() == "one\n"


def test_a_no_and_the_floor_hold_for_its_own_tools(tmp_path):
    root, person = workspace(tmp_path), Person("leave it", allows=False)

    async def work():
        script = [
            uses("Write", {"file_path": f"{root}/b.txt", "content": "x"}),
            uses("Read", {"file_path": "/etc/passwd"}),
            uses("Read", {"file_path": "~/.ssh/id_rsa"}),
            uses("Glob", {"pattern": "/etc/*"}),
            uses("Grep", {"pattern": "root", "path": "/etc"}),
            says("well"),
        ]
        async with engine_with(script, tmp_path, approver=person) as (engine, server):
            session, result = await told(engine, "go")
            said = str(server.requests[1].body["messages"])
            return engine, session.id, result, said

    engine, session_id, result, said = run(work())
    assert (result.reason, result.text) == ("done", "well")
    assert person.asked == [("write", {"path": "b.txt", "content": "x"})]
    assert "leave it" in said
    assert [failed for _, _, failed in results(engine, session_id)] == [True] * 5
    assert events(engine, session_id, CallIntended) == []
    assert list(root.iterdir()) == []


def test_plan_mode_out_and_back_through_the_person_P4(tmp_path):
    root, person = workspace(tmp_path), Person("with tests")

    async def work():
        script = [
            runs("touch early"),
            uses("ExitPlanMode", {"plan": "1. write"}),
            uses("Write", {"file_path": f"{root}/b.txt", "content": "x"}),
            says("done"),
        ]
        options = {"approver": person, "mode": "plan"}
        async with engine_with(script, tmp_path, **options) as (engine, server):
            session, result = await told(engine, "plan it")
            assert "with tests" in str(server.requests[2].body["messages"][-2:])
            return engine, session.id, result

    engine, session_id, result = run(work())
    assert (result.reason, result.text) == ("done", "done")
    assert person.asked == [
        ("exit_plan_mode", {"plan": "1. write"}),
        ("write", {"path": "b.txt", "content": "x"}),
    ]
    assert [one.name for one in root.iterdir()] == ["b.txt"]
    assert [one.mode for one in events(engine, session_id, ModeChanged)] == ["ask"]
    first, second, third = results(engine, session_id)
    assert (first[2], second[2], third[2]) == (True, False, False)


def test_an_interrupt_in_the_middle_of_a_command_and_the_next_prompt_P7(tmp_path):
    mark = a_mark()

    async def work():
        script = [runs(f"sleep {mark}"), says("back")]
        async with engine_with(script, tmp_path, approver=Person()) as (engine, _):
            session = await engine.session()
            turn = await session.send("go")
            await until(lambda: marked(f"sleep\0{mark}"))
            await session.interrupt(by="tester")
            assert (await session.wait(turn)).reason == "interrupted"
            assert marked(mark) == [] and programs(tmp_path) == []
            result = await session.wait(await session.send("again"))
            assert is_valid(session.history.transcript)
            return engine, session.id, result

    engine, session_id, result = run(work())
    assert (result.reason, result.text) == ("done", "back")
    assert endings(engine, session_id) == ["interrupted", "done"]
    ((_, _, failed),) = results(engine, session_id)
    assert failed


@soak
def test_a_service_that_stays_busy_fails_the_turn_with_the_friendly_sentence_P6(tmp_path):
    async def work():
        busy = {"error": {"kind": "agent", "message": "busy", "status": 529}}
        async with engine_with([busy, busy, says("back")], tmp_path) as (engine, _):
            session, _ = await told(engine, "go")
            _, again = await told(engine, "again", session.id)
            assert again.text == "back"
            return engine, session.id

    engine, session_id = run(work())
    first, _ = events(engine, session_id, TurnEnded)
    said = "The AI service is temporarily unavailable. Please try again in a moment."
    assert (first.reason, first.detail) == ("failed", said)
    kinds = [one.kind for one in events(engine, session_id, TraceEvent)]
    assert kinds.count("retry") == 1


def test_a_budget_of_steps_ends_it(tmp_path):
    async def work():
        options = {"approver": Person(), "limits": Limits(max_steps=2)}
        async with engine_with(lambda body: runs("true"), tmp_path, **options) as (engine, server):
            _, result = await told(engine, "go")
            assert len(server.requests) == 2
            return result

    result = run(work())
    assert result.reason == "budget"
    assert programs(tmp_path) == []


def test_a_parked_question_is_answered_later_and_claude_goes_on(tmp_path):
    root = workspace(tmp_path)

    async def work():
        script = [uses("Write", {"file_path": f"{root}/b.txt", "content": "x"}), says("went on")]
        async with engine_with(script, tmp_path, on_ask="park") as (engine, server):
            session, result = await told(engine, "go")
            assert result.reason == "parked" and programs(tmp_path) == []
            (asked,) = session.history.pending.values()
            await session.answer(asked.call.id, Answer(True), shown=asked.shown, by="tester")
            await seen(session, lambda event: isinstance(event, TurnEnded))
            told_it = str(server.requests[-1].body["messages"])
            return engine, session.id, told_it

    engine, session_id, told_it = run(work())
    assert (root / "b.txt").read_text() == "x"
    assert endings(engine, session_id) == ["done"]
    assert "b.txt" in told_it


def test_a_secret_in_a_file_it_writes_is_neither_kept_nor_spoilt(tmp_path):
    """What the log would not show is not run in another form."""
    secret = "sk-" + "ant-api03-" + "a1B2" * 22
    root = workspace(tmp_path)

    async def work():
        script = [
            uses("Write", {"file_path": f"{root}/k", "content": f"key={secret}"}),
            says("ok"),
        ]
        async with engine_with(script, tmp_path, approver=Person()) as (engine, _):
            session, _ = await told(engine, "go")
            return engine, session.id

    engine, session_id = run(work())
    assert secret not in repr(events(engine, session_id))
    assert [failed for _, _, failed in results(engine, session_id)] == [True]
    assert list(root.iterdir()) == []
