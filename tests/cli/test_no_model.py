"""Without a key nobody answers: an exit code of its own, and never `offline` unasked."""

import json
import os
import time
import urllib.error

import pytest
from cli_program import Program, records
from serve_program import served

import bridle as library
from bridle.errors import MissingModel

KEY = "key-" + "abcdefghijklmnopqrstuvwxyz"
NO_MODEL = 5


@pytest.mark.parametrize(
    "words",
    [
        ("run", "why does the build fail?"),
        ("run", "--detach", "why does the build fail?"),
        ("run", "hi", "--json"),
        ("repl",),
        ("run", "hi", "-m", "anthropic/claude-x"),
        ("run", "hi", "-m", "openai/gpt-x"),
        ("chat-server", "--port", "0"),
    ],
)
def test_without_a_key_the_program_fails_with_an_exit_code_of_its_own(bridle: Program, words):
    done = bridle.run(*words)
    said, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout, bridle.logs()) == (NO_MODEL, "", [])
    assert "no model was found: no key was found" in said or "there is no API key for" in said
    assert "_API_KEY" in advice


def test_offline_answers_where_it_is_named(bridle: Program):
    done = bridle.run("run", "hello", BRIDLE_MODEL="offline")
    assert done.returncode == 0 and "offline responder" in done.stdout


def test_a_key_that_wants_a_model_to_be_named_says_so(bridle: Program):
    done = bridle.run("run", "hi", OPENROUTER_API_KEY=KEY)
    assert done.returncode == NO_MODEL and "Name a model: openrouter/MODEL." in done.stderr


def test_doctor_says_that_no_model_would_answer(bridle: Program):
    found = json.loads(bridle.run("doctor", "--json").stdout)
    (model,) = [one for one in found if one["topic"] == "model"]
    assert "no model was found" in model["found"] and "ANTHROPIC_API_KEY" in model["advice"]


def test_another_agent_needs_no_model_and_an_engine_without_either_is_refused(
    tmp_path, monkeypatch
):
    """(P1) `build_engine(agent=…)` needs no model; without both there is nobody to ask."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name.startswith("BRIDLE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("BRIDLE_CONFIG", str(tmp_path / "none.yaml"))
    (tmp_path / "none.yaml").write_text("")
    with pytest.raises(MissingModel, match="no model was found") as refused:
        library.build_engine(workspace=tmp_path, state=tmp_path / "state")
    assert "ANTHROPIC_API_KEY" in refused.value.hint

    class Mine:
        async def execute(self, prompt, session, **callbacks): ...
        async def cancel(self, session_id): ...
        async def shutdown(self): ...

    assert library.build_engine(agent=Mine(), workspace=tmp_path, state=tmp_path / "state")


def test_a_server_starts_without_a_key_and_tells_a_prompt_why_nobody_answers(bridle: Program):
    with served(bridle) as server:
        assert "model     none" in server.said
        session = server.ask("POST", "/api/sessions", {})["id"]
        server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "hi"})
        assert "no model was found: no key was found" in failure_of(bridle)["detail"]
        other = server.ask("POST", "/api/sessions", {"provider": "offline"})["id"]
        server.ask("POST", f"/api/sessions/{other}/chat", {"prompt": "hello"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.ask("POST", "/api/sessions", {"provider": "anthropic"})
        assert refused.value.code == 403  # not offered: its key is not there
        refused.value.close()
        _, said = server.stop()
    assert "no model was found" in said and "ANTHROPIC_API_KEY" in said


def failure_of(bridle: Program):
    """How the first turn of the only session ended, once it has."""
    while True:
        found = [one for log in bridle.logs() for one in records(log) if one["type"] == "turn_end"]
        if found:
            assert found[0]["reason"] == "failed"
            return found[0]
        time.sleep(0.05)
