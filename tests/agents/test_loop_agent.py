"""Our loop as an agent: under a session that bridle lends, and under anybody else's (P1, P8)."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.rig import Thing, call, conversation, endings, events, results, run

import bridle
from bridle.agents.base import BaseAgent, Permission, ToolActivity
from bridle.agents.loop import LoopAgent
from bridle.engine.history import fold
from bridle.engine.stream import Channel
from bridle.events import AgentResponded, CallIntended, FilesChanged, TextDelta, TodosChanged
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore

EDIT = call("write", path="note.txt", content="hello\n")


def lone(tmp_path, replies, **options):
    """An engine of a model, for a LoopAgent to wrap."""
    kept = {"state": tmp_path / "inner", "workspace": tmp_path / "ws", **options}
    return bridle.build_engine(Scripted(replies), **kept)


def outer(tmp_path, agent, **options):
    kept = {"state": tmp_path / "outer", "workspace": tmp_path / "ws", **options}
    return bridle.build_engine(agent=agent, **kept)


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "ws").mkdir()


def test_the_lent_session_judges_runs_and_records_what_our_loop_asks_for(tmp_path):
    async def work():
        asked = []

        async def approver(question):
            asked.append((question.call.name, question.call.arguments["path"]))
            return True

        async with lone(tmp_path, [EDIT, "written"]) as inner:
            agent = LoopAgent(inner)
            assert isinstance(agent, BaseAgent)
            async with outer(tmp_path, agent, approver=approver) as engine:
                session = await engine.session()
                await session.wait(await session.send("write it"))
                said = conversation(engine, session.id)
                ran = results(engine, session.id)
                intents = events(engine, session.id, CallIntended)
                answer = events(engine, session.id, AgentResponded)
                undo = events(engine, session.id, FilesChanged)
                return asked, said, ran, intents, answer, undo, endings(engine, session.id)

    asked, said, ran, intents, answer, undo, ended = run(work())
    assert asked == [("write", "note.txt")]
    assert (tmp_path / "ws/note.txt").read_text() == "hello\n"
    assert said == [("user", "write it"), ("assistant", ""), ("assistant", "written")]
    assert [(failed, "note.txt" in text) for _, text, failed in ran] == [(False, True)]
    assert [one.name for one in intents] == ["write"]
    assert [(one.agent, one.tools_used, one.is_error) for one in answer] == [
        ("loop", ("write",), False)
    ]
    assert len(undo) == 1
    assert ended == ["done"]


def test_a_refused_call_is_refused_for_our_loop_too_and_its_todo_list_is_the_sessions(tmp_path):
    async def work():
        todos = call("todo_write", todos=[{"content": "one", "status": "pending"}])
        inner = lone(tmp_path, [EDIT, todos, "no then"])
        async with inner, outer(tmp_path, LoopAgent(inner), rules=["deny: write"]) as engine:
            session = await engine.session()
            await session.wait(await session.send("write it"))
            listed = events(engine, session.id, TodosChanged)
            return results(engine, session.id), [one.todos[0].content for one in listed]

    ran, listed = run(work())
    assert [failed for _, _, failed in ran] == [True, False]
    assert "not run" in ran[0][1]
    assert not (tmp_path / "ws/note.txt").exists()
    assert listed == ["one"]


def test_a_later_turn_in_a_new_process_knows_what_was_said_before(tmp_path):
    async def work():
        async with lone(tmp_path, ["first"]) as inner, outer(tmp_path, LoopAgent(inner)) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            kept = session.id
        model = Scripted(["second"])
        inner = bridle.build_engine(model, state=tmp_path / "i2")
        async with inner, outer(tmp_path, LoopAgent(inner)) as engine:
            result = await engine.run("two", session=kept)
            view = fold(engine.store.read(kept))
            return result.text, [one.content for one in model.requests[0].messages], view.turn

    text, heard, turns = run(work())
    assert (text, turns) == ("second", 2)
    assert heard == ["one", "first", "two"]


def test_somebody_elses_session_has_every_call_asked_and_a_no_holds(tmp_path):
    async def work():
        asked, chunks, shown = [], [], []

        async def can_use_tool(name, arguments, context=None):
            asked.append(name)
            return Permission(False, "not today")

        async def on_text(text):
            chunks.append(text)

        async def on_activity(activity):
            shown.append(activity)

        session = SimpleNamespace(
            id="s1", working_directory="/", mode="auto", claude_session_id=None
        )
        replies = [call("list", path="."), EDIT, "done"]
        async with lone(tmp_path, replies) as inner:
            response = await LoopAgent(inner).execute(
                "go",
                session,
                can_use_tool=can_use_tool,
                on_text_chunk=on_text,
                on_tool_activity=on_activity,
            )
            return asked, "".join(chunks), shown, response

    asked, text, shown, response = run(work())
    assert asked == ["list", "write"]
    assert not (tmp_path / "ws/note.txt").exists()
    assert (text, response.content, response.is_error) == ("done", "done", False)
    assert shown == [
        ToolActivity("list", "running list"),
        None,
        ToolActivity("write", "running write"),
        None,
    ]
    assert response.tools_used == ["list", "write"]
    assert response.session_id


def test_its_own_conversation_is_taken_up_by_the_id_that_it_gave_back(tmp_path):
    async def work():
        session = SimpleNamespace(
            id="s1", working_directory="/", mode="ask", claude_session_id=None
        )
        model = Scripted(["first", "second"])
        async with bridle.build_engine(model, state=tmp_path / "s") as inner:
            first = await LoopAgent(inner).execute("one", session)
            session.claude_session_id = first.session_id
            second = await LoopAgent(inner).execute("two", session)
            return first.session_id == second.session_id, [
                m.content for m in model.requests[1].messages
            ]

    same, heard = run(work())
    assert same
    assert heard == ["one", "first", "two"]


def test_cancel_ends_the_run_and_the_engine_is_usable_after(tmp_path):
    async def work():
        async def waits(arguments, context):
            began.set()
            await asyncio.sleep(60)

        began = asyncio.Event()
        tool = Thing(waits, read_only=True)
        session = SimpleNamespace(id="s1", working_directory="/", mode="ask", claude_session_id="")
        async with lone(tmp_path, [call("thing"), "after"], tools=[tool]) as inner:
            agent = LoopAgent(inner)
            running = asyncio.ensure_future(agent.execute("go", session))
            await began.wait()
            await agent.cancel("s1")
            first = await running
            again = await agent.execute("again", session)
            await agent.shutdown()
            return first.is_error, again.content

    assert run(work()) == (False, "after")


def test_text_of_a_lent_session_is_streamed_once(tmp_path):
    async def work():
        inner = lone(tmp_path, ["some words"])
        async with inner, outer(tmp_path, LoopAgent(inner)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return "".join(one.text for one in events(engine, session.id, TextDelta))

    assert run(work()) == "some words"


class Nobody:
    """Somebody else's session, as small as the protocol allows."""

    id, mode, claude_session_id = "theirs", "auto", None


def test_a_callback_that_is_slow_hears_everything_and_the_run_ends(tmp_path, monkeypatch):
    """(P7): with room for five records it falls behind, and reads on."""
    monkeypatch.setattr(Channel.join, "__defaults__", (5,))

    async def work():
        heard, looks, many = [], [], asyncio.Event()

        @bridle.tool(read_only=True)
        async def look() -> str:
            """Look at it."""
            looks.append(1)
            if len(looks) == 4:
                many.set()
            return "ok"

        async def slow(text):
            await many.wait()
            heard.append(text)

        steps = [{"text": f"step {number} ", **call("look")} for number in range(4)]
        options = {"tools": [look], "store": MemoryStore()}
        async with lone(tmp_path, [*steps, "done"], **options) as inner:
            response = await LoopAgent(inner).execute("go", Nobody(), on_text_chunk=slow)
        return response.content, "".join(heard)

    assert run(work()) == ("done", "step 0 step 1 step 2 step 3 done")


def test_a_callback_that_breaks_is_an_error_and_no_hang(tmp_path):
    async def broken(text):
        raise ValueError("mine")

    async def work():
        async with lone(tmp_path, ["hello"]) as inner:
            with pytest.raises(ValueError, match="mine"):
                await LoopAgent(inner).execute("go", Nobody(), on_text_chunk=broken)

    run(work())
