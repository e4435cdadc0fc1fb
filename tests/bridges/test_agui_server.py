"""AG-UI over plain HTTP: roles, refusals, retries, sessions that others hold, the server's end."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from contextlib import aclosing

import pytest

from bridle.events import PromptReceived, TurnEnded
from bridle.protocols.provider import ProviderInfo
from bridle.server.agui import agui_routes
from bridle.server.agui import run as agui_run
from bridle.tools.function import tool
from bridle.tools.session_tools import TaskTool
from rig import call, run, until
from server.rig_server import Running, server, write_note

NOTE = call("write_note", text="hi")


def body(say="hi", thread="t", run_id="r", **more):
    messages = [{"id": "m", "role": "user", "content": say}] if say else []
    return {"threadId": thread, "runId": run_id, "messages": messages, **more}


async def ran(there: Running, **more):
    """The events of a run that is waited for."""
    found = []
    headers = there.headers()
    async with there.client.post(
        f"{there.url}/api/agui", json=body(**more), headers=headers
    ) as got:
        assert got.status == 200, await got.text()
        async for line in got.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
    return found


def logged(there, session, kind):
    found = there.room.sessions.catalog.read(session)
    return [one.event for one in found if isinstance(one.event, kind)]


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (body(resume=[{"interruptId": "s/c/h", "status": "cancelled"}]), 404, "unknown_session"),
        (body(""), 404, "unknown_session"),
        (body(" "), 400, "invalid_request"),
        (body(tools=[{"name": "x", "description": "d"}]), 400, "invalid_request"),
        (body(forwardedProps={"bridle": {"workspacePath": "/etc"}}), 403, "unknown_workspace"),
        ({"threadId": "t"}, 400, "invalid_request"),
        ([], 400, "invalid_request"),
    ],
)
def test_what_cannot_be_run_is_a_problem_before_anything_is_told(tmp_path, sent, status, code):
    async def story():
        async with server(tmp_path, ["never"]) as there:
            answer = await there.post("/api/agui", sent)
            return answer, (await there.get("/api/sessions")).body["sessions"]

    answer, begun = run(story())
    assert (answer.status, answer.code, begun) == (status, code, [])
    assert answer.body["detail"]


def test_driving_takes_the_role_for_it(tmp_path):
    async def story():
        async with server(tmp_path, ["never"]) as there:
            token = there.room.door.tokens.add("anna", "answer")
            return [
                await there.post("/api/agui", body(), token=token),
                await there.post("/api/agui", body(), token="nonsense"),
            ]

    codes = [(one.status, one.code) for one in run(story())]
    assert codes == [(403, "forbidden_role"), (401, "no_token")]


def test_the_same_run_sent_twice_is_one_turn_and_told_twice(tmp_path):
    async def story():
        async with server(tmp_path, ["One.", "Two."]) as there:
            first, again = await ran(there), await ran(there)
            other = await ran(there, run_id="another")
            session = first[1]["snapshot"]["sessionId"]
            return first, again, other, logged(there, session, PromptReceived)

    first, again, other, prompts = run(story())

    def said(events):
        return "".join(one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT")

    assert (said(first), said(again), said(other)) == ("One.", "One.", "Two.")
    assert len(prompts) == 2


def test_threads_that_begin_at_once_are_one_session_and_only_one_run_at_a_time(tmp_path):
    async def story():
        async with server(tmp_path, lambda: Never()) as there:
            runs = [asyncio.ensure_future(_status(there, f"r{number}")) for number in range(3)]
            done, _ = await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
            while len(done) < 2:
                more, _ = await asyncio.wait(set(runs) - done, return_when=asyncio.FIRST_COMPLETED)
                done |= more
            statuses = [one.result() for one in done]
            for one in runs:
                one.cancel()
            await asyncio.wait(runs)
            return statuses, (await there.get("/api/sessions")).body["sessions"]

    statuses, listed = run(story())
    assert statuses == [409, 409]
    assert len(listed) == 1


async def _status(there, run_id):
    url, headers = f"{there.url}/api/agui", there.headers()
    async with there.client.post(url, json=body(run_id=run_id), headers=headers) as got:
        await got.read()
        return got.status


class Never:
    """A model that never answers."""

    info = ProviderInfo("never")

    async def stream(self, request):
        await asyncio.Event().wait()
        yield

    async def close(self):
        pass


def test_when_the_server_stops_a_run_that_waits_is_told_so_and_its_turn_is_parked(tmp_path):
    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    async def story():
        async with server(tmp_path, [call("wait")], wait) as there:
            running = asyncio.ensure_future(ran(there))
            listed = []
            while not listed:
                listed = (await there.get("/api/sessions")).body["sessions"]
            session = there.room.sessions.get_open(listed[0]["id"])
            await until(session, lambda event: type(event).__name__ == "CallIntended")
            await there.serving.stop(5)
            return await running, logged(there, session.id, TurnEnded)

    events, ends = run(story())
    assert [one.reason for one in ends] == ["interrupted"]
    assert (events[-1]["type"], events[-1]["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})


HOLDER = """
import asyncio, sys
from bridle.runtime import build_engine
from bridle.providers.scripted import Scripted
async def main(folder, workspace):
    model = Scripted([{"text": "From elsewhere."}])
    async with build_engine(model, tools=[], workspace=workspace, state=folder) as engine:
        session = await engine.session()
        await session.begin()
        print(session.id, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main(*sys.argv[1:]))
"""


def test_a_session_that_another_process_holds_is_driven_there_and_told_from_its_log(tmp_path):
    async def story():
        async with server(tmp_path, ["never"]) as there:
            words = (sys.executable, "-c", HOLDER, tmp_path / "sessions", tmp_path / "workspace")
            pipe = asyncio.subprocess.PIPE
            holder = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
            try:
                session = (await holder.stdout.readline()).decode().strip()
                return session, await ran(there, thread=session)
            finally:
                holder.stdin.close()
                await holder.wait()

    session, events = run(story())
    assert events[1]["snapshot"]["sessionId"] == session
    said = [one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(said) == "From elsewhere."
    assert events[-1]["type"] == "RUN_FINISHED"


def test_a_question_outlives_the_server_and_is_answered_by_the_next_run(tmp_path):
    async def first():
        async with server(tmp_path, [NOTE], write_note) as there:
            asked = (await ran(there))[-1]["outcome"]["interrupts"]
            again = (await ran(there, say="", run_id="again"))[-1]["outcome"]["interrupts"]
            assert again == asked  # a front end that was loaded anew is told what is asked
            return asked

    async def second(asked):
        async with server(tmp_path, ["Done."], write_note) as there:
            resume = [{"interruptId": asked["id"], "status": "resolved", "payload": True}]
            elsewhere = await there.post(
                "/api/agui", body("", thread=await there.made(), resume=resume)
            )
            return elsewhere, await ran(there, say="", resume=resume)

    (asked,) = run(first())
    elsewhere, events = run(second(asked))
    assert (elsewhere.status, elsewhere.code) == (400, "invalid_request")
    results = [one["content"] for one in events if one["type"] == "TOOL_CALL_RESULT"]
    assert results == ["wrote hi"]
    assert events[-1]["type"] == "RUN_FINISHED"


def test_a_question_of_a_task_is_an_interrupt_of_the_run_and_answered_there(tmp_path):
    """The child asks, the parent's run waits; with the answer both go on."""
    delegate = call("task", description="note it", prompt="write a note")
    replies = [delegate, NOTE, "The child is done.", "Done."]

    async def story():
        async with server(tmp_path, replies, write_note, TaskTool()) as there:
            first = await ran(there)
            (asked,) = first[-1]["outcome"]["interrupts"]
            session = first[1]["snapshot"]["sessionId"]
            resume = [{"interruptId": asked["id"], "status": "resolved", "payload": True}]
            return session, asked, await ran(there, say="", run_id="r2", resume=resume)

    session, asked, events = run(story())
    assert not asked["id"].startswith(session)
    assert asked["metadata"]["asked"]["call"]["name"] == "write_note"
    said = [one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(said) == "Done."
    assert events[-1]["type"] == "RUN_FINISHED"
    assert "outcome" not in events[-1]


def test_a_run_that_is_silent_says_that_it_is_still_there(monkeypatch):
    monkeypatch.setattr(agui_run, "QUIET", 0.01)

    async def story():
        heard = asyncio.Event()

        async def pieces():
            await heard.wait()
            yield b"data: {}\n\n"

        found = []
        async with aclosing(pieces()) as slow, aclosing(agui_run.with_keep_alives(slow)) as spoken:
            async for piece in spoken:
                found.append(piece)
                if len(found) == 2:
                    heard.set()
        return found

    found = run(story())
    assert found[:2] == [b": still here\n\n"] * 2
    assert found[-1] == b"data: {}\n\n"


def test_without_the_library_there_is_no_such_address_and_with_it_nothing_is_loaded_before_a_run(
    monkeypatch,
):
    code = "import sys, bridle.server.app; print([m for m in ('ag_ui', 'acp') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert agui_routes() == ()
