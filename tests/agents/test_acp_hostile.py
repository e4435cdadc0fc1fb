"""Programs that are no agents, or bad ones: each costs its own turn, and leaves nothing behind."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.acp_rig import ANSWER, HandMade, one_prompt, opened, program, started
from agents.claude_rig import until
from bridle.agents.acp.connection import Transport
from bridle.errors import AgentError, ConfigError
from bridle.events import TextDelta, TraceEvent
from rig import a_mark, marked, run


def failure(command, session, **rest):
    with pytest.raises(AgentError) as caught:
        run(one_prompt(command, session, **rest))
    error = caught.value
    assert error.hint
    assert "Traceback" not in error.message
    return error


def test_a_program_that_is_not_there_says_what_to_install(tmp_path):
    error = failure("surely-not-installed --acp", HandMade(tmp_path))
    assert isinstance(error, ConfigError)
    assert error.message == (
        "The agent's program `surely-not-installed` was not found; nothing was started."
    )
    assert "Install `surely-not-installed`" in error.hint


def test_a_program_of_the_workspace_is_not_found_by_its_name_alone(tmp_path, monkeypatch):
    place = tmp_path / "bin" / "helper"
    place.parent.mkdir()
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}:/usr/bin:/bin")
    error = failure("helper", HandMade(tmp_path))
    assert "was not found" in error.message


def test_a_program_that_dies_at_once_is_named_with_what_it_said(tmp_path):
    command = program(tmp_path, "import sys; sys.exit('I need a licence \\x1b[31m')")
    error = failure(command, HandMade(tmp_path))
    assert "ended with exit code 1 before its answer came" in error.message
    assert "I need a licence \\x1b[31m" in error.message  # written out, not obeyed


def test_a_program_that_never_answers_has_a_deadline(tmp_path):
    command = program(tmp_path, "import sys; print('Please log in:', flush=True); sys.stdin.read()")
    error = failure(command, HandMade(tmp_path), start_seconds=3)
    assert error.kind == "agent"  # no limit of the person's
    assert "did not answer `initialize` within 3 seconds" in error.message
    assert "Please log in:" in error.message


def test_garbage_on_its_output_is_no_message_and_too_much_of_it_is_an_error(tmp_path, caplog):
    some = opened(tmp_path, f"print('hello')\nprint('[1]')\nprint('{{')\ntext('hi')\n{ANSWER}")
    session = HandMade(tmp_path)
    assert run(one_prompt(some, session)).content == "hi"
    error = failure(program(tmp_path, "while True: print('no json')"), HandMade(tmp_path))
    assert "lines that are not messages of the protocol" in error.message
    assert "no json" in error.message
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_a_line_without_an_end_is_not_kept_in_memory(tmp_path):
    command = program(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    error = failure(command, HandMade(tmp_path))
    assert "a line of more than 8,388,608 bytes" in error.message


def test_messages_that_lie_about_their_shape_hurt_nobody(tmp_path, caplog):
    odd = [
        {"method": ["session/update"], "params": {}},
        {"method": "session/update", "params": 5},
        {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": 7}}},
        {"method": "session/update", "params": {"sessionId": "other", "update": {}}},
        {"method": "vendor/news", "params": {"a": 1}},
        {"id": [1], "result": {}},
        {"id": 77, "result": {}},
        {"id": 78, "error": "no"},
        {"id": 5, "method": "fs/read_text_file", "params": {}},
        {"id": 6, "method": "no/such"},
        {"id": "7", "method": "terminal/output", "params": {"sessionId": "s", "terminalId": "x"}},
    ]
    lines = "".join(f"say(**json.loads({json.dumps(one)!r}))\n" for one in odd)
    lines += "answers = [json.loads(sys.stdin.readline()) for _ in range(3)]\n"
    lines += "text(json.dumps({str(a['id']): a['error']['code'] for a in answers}))\n"
    session = HandMade(tmp_path)
    response = run(one_prompt(opened(tmp_path, lines + ANSWER), session))
    assert json.loads(response.content) == {"5": -32602, "6": -32601, "7": -32002}
    assert {one.kind for one in session.told(TraceEvent)} == {"acp"}
    assert caplog.records == []


def test_an_answer_that_is_none_and_a_refusal_are_sentences(tmp_path):
    error = failure(opened(tmp_path, 'say(id=number, result="fine")'), HandMade(tmp_path))
    assert error.message == "The agent ended the turn with something that is not an answer."
    refusal = 'say(id=number, error={"code": -32603, "message": "quota", "data": {"details": "0"}})'
    error = failure(opened(tmp_path, refusal), HandMade(tmp_path))
    assert error.message == "The agent could not answer: quota 0."


def test_a_flood_is_stopped_and_the_others_are_served_meanwhile(tmp_path):
    flood = opened(tmp_path, "words = 'x' * 1_000_000\nwhile True: text(words)")

    async def story():
        session, ticks = HandMade(tmp_path), 0
        session.emit = lambda event: None

        async def others():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        try:
            with pytest.raises(AgentError, match="more than 67,108,864 characters"):
                await one_prompt(flood, session)
        finally:
            beside.cancel()
        return ticks

    assert run(story()) > 10


def test_what_is_buffered_already_is_not_read_without_a_pause():
    async def story():
        reader, ticks = asyncio.StreamReader(limit=2**24), 0
        reader.feed_data(b'{"id": 1, "result": 0}\n' * 10_000)
        reader.feed_eof()

        async def others():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        pipe = Transport(SimpleNamespace(reader=reader), None)
        beside = asyncio.ensure_future(others())
        while await pipe.receive() is not None:
            pass
        beside.cancel()
        await asyncio.wait({beside})
        return ticks

    assert run(story()) > 100


def test_too_many_requests_at_once_are_refused(tmp_path):
    lines = """
for n in range(80):
    ask = {"toolCallId": f"c{n}", "kind": "execute", "rawInput": {"command": "ls"}}
    say(id=n, method="session/request_permission", params={"sessionId": "s", "toolCall": ask,
        "options": [{"optionId": "y", "name": "y", "kind": "allow_once"}]})
answers = [json.loads(sys.stdin.readline()) for _ in range(80 - 64)]
text(str(sum("error" in one for one in answers)))
"""
    session = HandMade(tmp_path)
    never = asyncio.Event

    async def story():
        waits = never()

        async def gate(name, arguments, context=None):
            await waits.wait()

        async with started(opened(tmp_path, lines + ANSWER)) as agent:
            return await agent.execute("go", session, can_use_tool=gate)

    assert run(story()).content == "16"


def sleeper(mark):
    """In the program: the words of a process that says when it runs, and is known by the mark."""
    return f"""
here, there = os.pipe()
os.set_inheritable(there, True)
code = "import os, time; os.write(%d, b'x'); time.sleep({mark})" % there
sleep = [sys.executable, "-c", code]
"""


def test_whoever_it_started_ends_with_it_wherever_they_went(tmp_path):
    """(P7) Counted: the program, its child, and a grandchild in a session of its own."""
    mark = a_mark()
    lines = f"""{sleeper(mark)}
subprocess.Popen(sleep, close_fds=False)
away = "import subprocess as s, sys; s.Popen(sys.argv[1:], close_fds=False, start_new_session=True)"
subprocess.run([sys.executable, "-c", away, *sleep], close_fds=False)
os.read(here, 1), os.read(here, 1)
text("started")
{ANSWER}
"""

    async def story():
        session = HandMade(tmp_path)
        async with started(opened(tmp_path, lines)) as agent:
            await agent.execute("go", session, can_use_tool=session.can_use_tool)
            return len(marked(mark))

    assert run(story()) == 2
    assert marked(mark) == []


def test_one_that_does_not_stop_is_ended_with_everybody(tmp_path):
    """(P7)"""
    mark = a_mark()
    lines = f"""{sleeper(mark)}
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(sleep, close_fds=False)
os.read(here, 1)
text("started")
while True: time.sleep(1)
"""

    async def story():
        session, begun = HandMade(tmp_path), asyncio.Event()
        session.emit = lambda event: begun.set() if isinstance(event, TextDelta) else None
        async with started(opened(tmp_path, lines)) as agent:
            running = asyncio.ensure_future(agent.execute("go", session))
            await begun.wait()
            assert len(marked(mark)) == 1
            await agent.cancel(session.id)
            with pytest.raises(AgentError, match="did not stop when it was asked to"):
                await running
            assert marked(mark) == []

    run(story())


def test_a_cancelled_task_leaves_no_program(tmp_path):
    mark = a_mark()

    async def story():
        session, begun = HandMade(tmp_path), asyncio.Event()
        session.emit = lambda event: begun.set()
        lines = "text('started')\nwhile True: time.sleep(1)"
        agent_command = [*opened(tmp_path, lines), mark]
        async with started(agent_command) as agent:
            running = asyncio.ensure_future(agent.execute("go", session))
            await begun.wait()
            assert len(marked(mark)) == 2  # the program and its supervisor
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert marked(mark) == []

    run(story())


LONELY = """
import asyncio, sys
from agents.acp_rig import HandMade, one_prompt
asyncio.run(one_prompt(sys.argv[2:], HandMade(sys.argv[1])))
"""
DETACHED = """
command = ["sleep", "MARK"]
subprocess.Popen(command, start_new_session=True, env={}, stdout=subprocess.DEVNULL)
"""


def test_nothing_is_left_of_it_when_bridle_is_killed_P7(tmp_path):
    mark = a_mark()
    command = opened(tmp_path, DETACHED.replace("MARK", mark))
    tests = str(Path(__file__).parents[1])

    async def work():
        host = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", LONELY, str(tmp_path), *command),
            env={**os.environ, "PYTHONPATH": tests},
        )
        await until(lambda: marked(f"sleep\0{mark}"))
        host.kill()
        await host.wait()
        await until(lambda: not marked(f"sleep\0{mark}") and not marked(command[-1]))

    run(work())


def test_a_program_that_may_not_be_run_says_so(tmp_path):
    place = tmp_path / "agent"
    place.write_text("#!/bin/sh\n")
    error = failure(str(place), HandMade(tmp_path))
    assert isinstance(error, ConfigError) and "cannot be started" in error.message
    assert "was not found" in failure("./nobody", HandMade(tmp_path)).message
