"""A server that was killed: when it is started again everything is there, and goes on."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from sessions_rig import ASKS, HOLDS, Held, asked, ended, made, refused, seen, serving, spoken, yes

from bridle.errors import SessionBusy
from bridle.events import (
    MessageAdded,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
)
from bridle.protocols.session_values import PromptRequest, ResumeOptions
from rig import run

PROGRAM = str(Path(__file__).with_name("killed_program.py"))
STALLS = {"calls": [{"name": "stall", "arguments": {}}]}


class Doomed:
    """A server in another process."""

    def __init__(self, process):
        self.process = process

    async def heard(self):
        return (await self.process.stdout.readline()).decode().strip()

    async def do(self, *verb):
        self.process.stdin.write(json.dumps(verb).encode() + b"\n")
        await self.process.stdin.drain()
        return await self.heard()


@asynccontextmanager
async def doomed(place, *replies):
    """It is killed at the end, without a word."""
    (place / "work").mkdir(exist_ok=True)
    words = [PROGRAM, str(place / "state"), str(place / "work"), json.dumps(replies)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe, stdout=pipe)
    other = Doomed(process)
    try:
        assert await other.heard() == "begun"
        yield other
    finally:
        process.kill()
        process.stdin.close()
        await process.wait()


def told(sessions, name, *kinds):
    return [one.event for one in sessions.catalog.read(name) if isinstance(one.event, kinds)]


def test_a_turn_that_was_cut_off_is_ended_and_the_prompts_behind_it_go_on(tmp_path):
    async def story():
        async with doomed(tmp_path, STALLS) as server:
            name = await server.do("create")
            assert await server.do("send", name, "go", False) == "1"
            assert await server.heard() == "stalling"
            assert await server.do("send", name, "and then", True) == "2"
            assert await server.do("send", name, "at last", True) == "3"
        async with serving(tmp_path, ["it is later", "it is late"]) as sessions:
            assert await ended(sessions, name, 3) == "done"
            ends = [(one.turn, one.reason) for one in told(sessions, name, TurnEnded)]
            assert ends == [(1, "interrupted"), (2, "done"), (3, "done")]
            said = [one.kind for one in told(sessions, name, TraceEvent)]
            assert "unknown_call" in said  # nobody knows whether it ran, and it is not run again
            assert len(told(sessions, name, ToolResultEvent)) == 1
            entered = [one.message.content for one in told(sessions, name, MessageAdded)]
            assert entered == ["go", "and then", "at last"]

    run(story())


def test_a_question_outlives_the_server_and_its_turn_goes_on_with_the_answer(tmp_path):
    async def story():
        async with doomed(tmp_path, ASKS) as server:
            name = await server.do("create")
            assert await server.do("send", name, "go", False) == "1"
            folder = tmp_path / "state" / "sessions" / name / "log.jsonl"

            async def look():
                return b'"approval_asked"' in folder.read_bytes()

            await seen(look, bool)
        async with serving(tmp_path, ["thank you"]) as sessions:
            (question,) = (await sessions.pending()).approvals
            view = await sessions.info(name)
            assert (view.state, view.waiting, view.holder) == ("waiting", 1, "here")
            assert len(told(sessions, name, TurnParked)) == 1
            busy = await refused(sessions.send(name, PromptRequest("more"), "ann"), SessionBusy)
            assert "needs 1 approval" in busy.message
            outcome = await sessions.answer(name, question.call_id, yes(question), "ann")
            assert outcome.allowed
            assert await ended(sessions, name) == "done"
            (result,) = told(sessions, name, ToolResultEvent)
            assert result.output.text == "noted one"
            assert len(told(sessions, name, TurnEnded)) == 1

    run(story())


def test_stopping_parks_what_waits_for_a_person_and_interrupts_the_rest(tmp_path):
    async def story():
        held = Held()
        async with serving(tmp_path, [HOLDS, "never"], held) as sessions:
            runs = await made(sessions)
            await sessions.send(runs, PromptRequest("go"), "ann")
            await held.begun.wait()
            await sessions.send(runs, PromptRequest("later", queue=True), "ann")
            await sessions.stop(5)
            (end,) = told(sessions, runs, TurnEnded)
            assert end.reason == "interrupted"
        async with serving(tmp_path, ["it went on", ASKS]) as sessions:
            assert await ended(sessions, runs, 2) == "done"
            waits = await made(sessions)
            await sessions.send(waits, PromptRequest("go"), "ann")
            await asked(sessions, waits)
            await sessions.stop(5)
            assert told(sessions, waits, TurnEnded) == []
            assert len(told(sessions, waits, TurnParked)) == 1
            assert (await sessions.info(waits)).state == "waiting"
        async with serving(tmp_path, ["done"]) as sessions:
            (question,) = (await sessions.pending()).approvals
            await sessions.answer(waits, question.call_id, yes(question), "ann")
            assert await ended(sessions, waits) == "done"

    run(story())


def test_a_session_that_another_program_left_is_not_touched_until_somebody_asks(tmp_path):
    async def story():
        async with serving(tmp_path, ["one", STALLS], face="cli") as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
        log = tmp_path / "state" / "sessions" / name / "log.jsonl"
        _cut(log)  # as if its process had been killed before its turn ended
        before = log.read_bytes()
        async with serving(tmp_path, ["two"]) as sessions:
            assert log.read_bytes() == before
            view = await sessions.info(name)
            assert (view.state, view.reason, view.holder) == ("failed", "interrupted", "")
            view = await sessions.resume(name, ResumeOptions(), "ann")
            assert (view.state, view.reason, view.holder) == ("failed", "interrupted", "here")
            assert [one.reason for one in told(sessions, name, TurnEnded)] == ["interrupted"]

    def _cut(log):
        lines = log.read_bytes().splitlines(keepends=True)
        end = next(i for i, line in enumerate(lines) if b'"turn_end"' in line)
        log.write_bytes(b"".join(lines[:end]))

    run(story())


def test_marks_of_sessions_that_are_open_go_when_they_are_closed(tmp_path):
    async def story():
        marks = tmp_path / "state" / "serving"
        async with serving(tmp_path, ["one"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
            assert [one.name for one in marks.iterdir()] == [name]
        assert list(marks.iterdir()) == []
        (marks / "20200101-000000-0000000000").touch()
        async with serving(tmp_path, ["one"]):
            assert list(marks.iterdir()) == []

    run(story())
