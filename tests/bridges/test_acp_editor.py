"""`bridle acp` at a real editor's client: the official TypeScript library, over real pipes."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bridges.editor_rig import editor, quick_editor
from cli import cli_program
from cli.cli_program import Program
from rig import run

FRIENDLY = Path(__file__).parent.parent / "mcp" / "friendly_server.py"
WRITE = {"name": "write", "arguments": {"path": "a.txt", "content": "two\n"}}
READ = {"name": "read", "arguments": {"path": "a.txt"}}
EDIT = {"name": "edit", "arguments": {"path": "a.txt", "old": "one", "new": "two"}}


@pytest.fixture
def bridle(tmp_path):
    return Program(tmp_path)


def records(bridle, kind):
    (log,) = bridle.logs()
    return [one for one in cli_program.records(log) if one["type"] == kind]


async def begun(one, bridle, **more):
    return await one.ask("session/new", cwd=str(bridle.workspace), mcpServers=[], **more)


def test_a_session_streams_shows_the_diff_first_and_does_what_the_person_allows(bridle):
    """Thoughts and words as they come; the diff stands before the question; then the result."""
    (bridle.workspace / "a.txt").write_text("one\nmore\n")
    todo = {
        "name": "todo_write",
        "arguments": {"todos": [{"content": "edit", "status": "pending"}]},
    }
    model = bridle.script(
        {"thinking": "hm", "text": "I plan.", "calls": [todo, READ]},
        {"text": "Now.", "calls": [EDIT]},
        {"text": "Done."},
    )

    async def story():
        async with quick_editor(bridle, "--model", model) as one:
            session = await begun(one, bridle)
            ending = one.prompt(session["sessionId"], "go")
            question = await one.question()
            before = list(one.updates)
            one.answer(question, "allow_once")
            return one, session, question, before, (await ending)["result"]

    one, session, question, before, ending = run(story())
    assert one.hello["agentInfo"]["name"] == "bridle"
    assert [mode["id"] for mode in session["modes"]["availableModes"]] == ["plan", "ask", "edits"]
    place = str(bridle.workspace / "a.txt")
    diff = {"type": "diff", "path": place, "oldText": "one\nmore\n", "newText": "two\nmore\n"}
    shown = [update for update in before if update.get("kind") == "edit"]
    assert shown[0]["sessionUpdate"] == "tool_call"
    assert shown[-1]["content"] == [diff]
    assert shown[-1]["locations"] == [{"path": place}]
    call = question["params"]["toolCall"]
    assert (call["toolCallId"], call["content"][0]) == (shown[-1]["toolCallId"], diff)
    kinds = [option["kind"] for option in question["params"]["options"]]
    assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once"]
    assert one.said("agent_thought_chunk") == "hm"
    assert one.said() == "I plan.Now.Done."
    assert one.told("plan")[-1]["entries"] == [
        {"content": "edit", "priority": "medium", "status": "pending"}
    ]
    states = [u["status"] for u in one.updates if u.get("toolCallId") == call["toolCallId"]]
    assert states == ["pending", "pending", "in_progress", "completed"]
    assert ending["stopReason"] == "end_turn"
    assert (bridle.workspace / "a.txt").read_text() == "two\nmore\n"
    (answered,) = records(bridle, "approval_answered")
    assert answered["shown"] == question["params"]["_meta"]["bridle"]["shown"]


def test_no_is_a_no_and_a_yes_for_the_session_asks_no_more(bridle):
    more = {"name": "shell", "arguments": {"command": "touch made"}}
    model = bridle.script(
        {"calls": [WRITE]}, {"calls": [more]}, {"calls": [more]}, {"text": "Done."}
    )

    async def story():
        async with quick_editor(bridle, "--model", model) as one:
            session = (await begun(one, bridle))["sessionId"]
            ending = one.prompt(session, "go")
            one.answer(await one.question(1), "reject_once")
            one.answer(await one.question(2), "allow_session")
            return one, (await ending)["result"]

    one, ending = run(story())
    assert ending["stopReason"] == "end_turn"
    assert [path.name for path in bridle.workspace.iterdir()] == ["made"]
    assert len(one.questions) == 2
    answers = records(bridle, "approval_answered")
    said = [(found["allowed"], found.get("scope", "once")) for found in answers]
    assert said == [(False, "once"), (True, "session")]
    ends = [update for update in one.told("tool_call_update") if update["status"] == "failed"]
    assert len(ends) == 1


def test_a_rule_is_kept_for_every_session_to_come(bridle):
    call = {"name": "shell", "arguments": {"command": "touch made"}}
    model = bridle.script({"calls": [call]}, {"text": "Done."})

    async def story(answers):
        async with quick_editor(bridle, "--model", model) as one:
            session = (await begun(one, bridle))["sessionId"]
            ending = one.prompt(session, "go")
            if answers:
                question = await one.question()
                assert "allow: shell(touch" in question["params"]["options"][2]["name"]
                one.answer(question, "allow_rule")
            return one, (await ending)["result"]["stopReason"]

    run(story(True))
    one, ending = run(story(False))
    assert (one.questions, ending) == ([], "end_turn")


def test_a_turn_is_stopped_in_the_middle_and_the_session_goes_on(bridle):
    sleep = {"name": "shell", "arguments": {"command": "echo begun; sleep 1000"}}
    model = bridle.script({"text": "I wait.", "calls": [sleep]}, {"text": "Again."})

    async def story():
        async with quick_editor(bridle, "--model", model, "--rule", "allow: shell(*)") as one:
            session = (await begun(one, bridle))["sessionId"]
            ending = one.prompt(session, "go")
            await one.until(lambda: "begun" in json.dumps(one.told("tool_call_update")))
            one.notify("session/cancel", sessionId=session)
            first = (await ending)["result"]
            return one, first, (await one.prompt(session, "on"))["result"]

    one, first, second = run(story())
    assert (first["stopReason"], second["stopReason"]) == ("cancelled", "end_turn")
    assert one.said().endswith("Again.")
    assert [one["reason"] for one in records(bridle, "turn_end")] == ["interrupted", "done"]


def test_a_question_that_was_answered_elsewhere_is_withdrawn(bridle):
    """First answer wins: another terminal says yes, and the editor's question goes away."""
    model = bridle.script({"calls": [WRITE]}, {"text": "Done."})

    async def story():
        async with quick_editor(bridle, "--model", model) as one:
            session = (await begun(one, bridle))["sessionId"]
            ending = one.prompt(session, "go")
            question = await one.question()
            call = question["params"]["toolCall"]["toolCallId"]
            done = bridle.run("approvals", "answer", f"{session}/{call}", "yes")
            assert done.returncode == 0, done.stderr
            await one.until(lambda: one.withdrawn)
            return one, (await ending)["result"]

    one, ending = run(story())
    assert (one.withdrawn, ending["stopReason"]) == ([1], "end_turn")
    assert (bridle.workspace / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM"])
def test_after_a_restart_the_session_is_loaded_and_its_question_stands(bridle, signal):
    """Killed while a person was asked: what was said is replayed, and the same is asked again."""
    model = bridle.script({"text": "I write.", "calls": [WRITE]}, {"text": "Done."})

    async def first():
        async with editor(bridle, "--model", model) as one:
            session = (await begun(one, bridle))["sessionId"]
            one.prompt(session, "please write").add_done_callback(lambda done: done.exception())
            await one.question()
            one.kill(signal)
            await one.until(lambda: one.ended is not None)
            return session, one.ended

    async def second(session):
        rest = bridle.script({"text": "Done."}, name="rest")
        async with quick_editor(bridle, "--model", rest) as one:
            where = {"cwd": str(bridle.workspace), "mcpServers": []}
            listed = await one.ask("session/list", cwd=str(bridle.workspace))
            await one.ask("session/load", sessionId=session, **where)
            question = await one.question()
            replayed = list(one.updates)
            one.answer(question, "allow_once")
            await one.until(lambda: "Done." in one.said())
            while not records(bridle, "turn_end"):  # noqa: ASYNC110 - who loaded it is not told
                await asyncio.sleep(0.01)
            await one.ask("session/close", sessionId=session)
            return one, listed, replayed

    session, ended = run(first())
    assert ended == (signal if signal == "SIGKILL" else 0)
    one, listed, replayed = run(second(session))
    assert [(found["sessionId"], found["title"]) for found in listed["sessions"]] == [
        (session, "please write")
    ]
    kinds = [update["sessionUpdate"] for update in replayed][:3]
    assert kinds == ["user_message_chunk", "agent_message_chunk", "tool_call"]
    assert one.said("user_message_chunk") == "please write"
    assert one.said() == "I write.Done."
    assert (bridle.workspace / "a.txt").read_text() == "two\n"
    assert [found["reason"] for found in records(bridle, "turn_end")] == ["done"]


def test_the_editors_mcp_servers_have_tools_that_ask_like_all_others(bridle):
    """Beside a server of the person's own: both are looked into by the one tool `mcp`."""
    settings = bridle.home / ".config" / "bridle" / "config.yaml"
    settings.parent.mkdir(parents=True)
    program = [sys.executable, str(FRIENDLY), "stdio"]
    settings.write_text(f"mcp:\n  servers:\n    mine:\n      command: {json.dumps(program)}\n")
    look = {"name": "mcp", "arguments": {"action": "tools", "server": "the-editor-s"}}
    add = {"name": "mcp__the-editor-s__add", "arguments": {"a": 1, "b": 2}}
    model = bridle.script({"calls": [look]}, {"calls": [add]}, {"text": "Done."})
    given = {"name": "the editor's", "command": program[0], "args": program[1:], "env": []}

    async def story():
        async with quick_editor(bridle, "--model", model) as one:
            found = await one.ask("session/new", cwd=str(bridle.workspace), mcpServers=[given])
            ending = one.prompt(found["sessionId"], "go")
            question = await one.question()
            one.answer(question, "allow_once")
            return one, question, (await ending)["result"]

    one, question, ending = run(story())
    assert question["params"]["toolCall"]["rawInput"] == {"a": 1, "b": 2}
    assert ending["stopReason"] == "end_turn"
    said = [update.get("content") for update in one.told("tool_call_update")]
    assert {"type": "content", "content": {"type": "text", "text": "3"}} in said[-1]
