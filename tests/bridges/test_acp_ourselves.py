"""bridle carried by bridle: our own ACP client drives `bridle acp` as it drives any agent."""

import json
import shlex
import sys

import pytest

from cli.cli_program import Program

WRITE = {"name": "write", "arguments": {"path": "a.txt", "content": "two\n"}}


@pytest.fixture
def bridle(tmp_path):
    return Program(tmp_path)


def records(log, kind):
    found = [json.loads(line)["data"] for line in log.read_text().splitlines()]
    return [one for one in found if one["type"] == kind]


def test_our_own_client_gates_and_resumes_what_bridle_does_as_an_agent(bridle, tmp_path):
    """The outer gate is asked about the inner call; the inner session goes on with the next run."""
    model = bridle.script({"text": "I write.", "calls": [WRITE]}, {"text": "Done."})
    inner = tmp_path / "inner"
    program = [sys.executable, "-m", "bridle", "acp", "--model", model]
    agent = shlex.join(["env", f"BRIDLE_STATE={inner}", *program])
    done = bridle.run("run", "write it", "--agent", f"acp:{agent}", "--mode", "edits")
    assert done.returncode == 0, done.stderr
    assert "Done." in done.stdout
    assert (bridle.workspace / "a.txt").read_text() == "two\n"
    (outer,) = bridle.logs()
    (mine,) = inner.glob("sessions/*/log.jsonl")
    (intent,) = records(outer, "intent")
    assert intent["name"] == "write"
    assert [one["allowed"] for one in records(mine, "approval_answered")] == [True]
    bridle.script({"text": "Still here."})  # what the model says from now on
    again = bridle.run("run", "--continue", "more", "--agent", f"acp:{agent}")
    assert again.returncode == 0, again.stderr
    assert "Still here." in again.stdout
    assert len(list(inner.glob("sessions/*"))) == 1
    assert [one["content"] for one in records(mine, "user_prompt")] == ["write it", "more"]


def test_what_the_outer_gate_refuses_the_inner_one_does_not_do(bridle, tmp_path):
    model = bridle.script({"text": "I write.", "calls": [WRITE]}, {"text": "Well."})
    program = [sys.executable, "-m", "bridle", "acp", "--model", model]
    agent = shlex.join(["env", f"BRIDLE_STATE={tmp_path / 'inner'}", *program])
    rule = "deny: write(a.txt)"
    done = bridle.run("run", "write it", "--agent", f"acp:{agent}", "--rule", rule)
    assert "Well." in done.stdout
    assert not (bridle.workspace / "a.txt").exists()
