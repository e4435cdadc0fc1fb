"""What a session last ran with, read from the end of its log."""

import asyncio
import json
import os
import re

import pytest

from bridle.protocols.agent import AgentResponse
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.stores.session_index import last_run


def a_start(model):
    data = {"type": "session_start", "sessionId": "s", "workspace": "/w" * 900, "model": model}
    return json.dumps({"seq": 1, "timestamp": "", "data": data}, separators=(",", ":")) + "\n"


def an_account(agent, size, kind):
    data = {"type": kind, "agent": agent, "content": "x" * size}
    return json.dumps({"seq": 2, "timestamp": "", "data": data}, separators=(",", ":")) + "\n"


def a_text(size):
    quoted = '"data":{"type":"session_start","model":"a lie"}'
    data = {"type": "event", "eventType": "TextDelta", "text": quoted + "x" * size}
    return json.dumps({"seq": 2, "timestamp": "", "data": data}, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("size", [0, 10, 1000, (1 << 18) - 1000, 1 << 18, (1 << 20) + 7])
def test_the_newest_start_counts_wherever_it_lies(tmp_path, size):
    log = tmp_path / "log.jsonl"
    log.write_text(a_start("first") + a_text(size) + a_start("claude-code") + a_text(size))
    assert last_run(log)[:2] == ("", "claude-code")
    log.write_text(a_start("first") + a_text(size) * 3)
    assert last_run(log)[:2] == ("", "first")


def test_a_line_that_lies_across_two_pieces_is_read_whole(tmp_path):
    log = tmp_path / "log.jsonl"
    for size in range((1 << 18) - 2100, (1 << 18) + 20, 130):
        log.write_text(a_start("first") + a_start("claude-code") + a_text(size))
        assert last_run(log)[:2] == ("", "claude-code"), size


def test_a_log_that_says_nothing_names_nobody(tmp_path):
    log = tmp_path / "log.jsonl"
    assert last_run(log)[:2] == ("", "")
    for text in ("", "\n", '{"data":{"type":"session_start","x', a_text(10)):
        log.write_text(text)
        assert last_run(log)[:2] == ("", ""), text
    log.unlink()
    os.mkfifo(log)
    assert last_run(log)[:2] == ("", "")  # and nobody waits for a writer
    assert last_run(tmp_path)[:2] == ("", "")


@pytest.mark.parametrize("size", [0, 1000, 1 << 18, (1 << 20) + 7])
@pytest.mark.parametrize("kind", ["agent", "agent_response"])
def test_an_agent_that_spoke_since_the_newest_start_is_named_beside_it(tmp_path, size, kind):
    log = tmp_path / "log.jsonl"
    said = an_account('Our"own', size, kind)
    log.write_text(a_start("first") + a_text(size) + said + a_text(size))
    assert last_run(log)[:2] == ('Our"own', "first")
    log.write_text(a_start("first") + said + a_text(size) + a_start("second") + a_text(size))
    assert last_run(log)[:2] == ("", "second")


def test_what_a_call_says_in_its_arguments_names_nobody(tmp_path):
    log = tmp_path / "log.jsonl"
    lies = [{"type": "session_start", "model": "acp:x"}, {"type": "agent", "agent": "acp:x"}]
    calls = [{"name": "f", "arguments": {"data": one}} for one in lies]
    data = {"type": "message", "calls": calls, "agent": "no", "model": "no"}
    message = {"seq": 3, "timestamp": "", "data": data}
    log.write_text(a_start("first") + json.dumps(message, separators=(",", ":")) + "\n")
    assert last_run(log)[:2] == ("", "first")


class Scribe:
    """Somebody's own agent, in their own program."""

    async def execute(self, prompt, session, **hooks):
        return AgentResponse("written")

    async def cancel(self, session_id):
        pass

    async def shutdown(self):
        pass


def carried(bridle, agent, **more):
    async def whole():
        where = {"workspace": bridle.workspace, "state": bridle.state}
        async with build_engine(agent=agent, **where, **more) as engine:
            return (await engine.run("go")).session_id

    return asyncio.run(whole())


@pytest.mark.parametrize("more", [{}, {"provider": Scripted(["x"])}])
def test_who_carried_a_session_that_our_loop_goes_on_with_is_said_once(bridle, more):
    session = carried(bridle, Scribe(), **more)
    flags = ("run", "more", "--resume", session, "--model", bridle.script("Mine."))
    done = bridle.run(*flags)
    assert (done.returncode, done.stdout) == (0, "Mine.\n")
    said = "another agent, Scribe, ran this session before; bridle's own loop continues it\n"
    assert done.stderr.count(said) == 1
    assert "Scribe" not in bridle.run(*flags).stderr


def test_a_program_that_an_imported_log_names_is_not_started(bridle):
    made = bridle.home / "made"
    agent = Scribe()
    agent.name = f"acp:touch {made}"
    session = carried(bridle, agent)
    log = bridle.logs()[0].read_bytes()
    bridle.run("sessions", "delete", session, "--yes")
    assert bridle.run("sessions", "import", "-", stdin=log).returncode == 0
    flags = ("run", "more", "--resume", session, "--model", bridle.script("Mine."))
    done = bridle.run(*flags)
    assert (done.returncode, done.stdout) == (0, "Mine.\n")
    assert re.search("acp:touch .* ran this session", done.stderr)
    assert not made.exists()
