"""Who carries the turns, as a person chooses it: flag, settings, environment, session, REPL.

Real programs: Claude Code against a fake vendor, and a scripted agent that speaks ACP.
"""

import asyncio
import json
import re
import shlex
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_program import Program

from agents.acp_rig import AGENT
from bridle.testing import FakeAnthropic

KEY = "sk-ant-" + "nobody-may-see-this"


def acp(bridle: Program, *turns, name="agent", **can) -> str:
    """A scripted agent that plays these turns and remembers its conversations; its name."""
    place = bridle.home / f"{name}.json"
    can = {"load": True, "remember": str(bridle.home / f"{name}-sessions.json"), **can}
    place.write_text(json.dumps({"agent": can, "turns": list(turns)}))
    return f"acp:{shlex.join([*AGENT, str(place)])}"


def an_edit(bridle: Program) -> list:
    """A turn that edits a.txt after asking."""
    path = str(bridle.workspace / "a.txt")
    call = {"id": "e1", "kind": "edit", "diffs": [{"path": path, "old": "one", "new": "two"}]}
    then = [
        {"put": {"path": path, "content": "two\n"}},
        {"update": {"id": "e1", "status": "completed", "text": "edited"}},
        {"say": "Edited."},
    ]
    over = {"update": {"id": "e1", "status": "failed"}}
    return [{"say": "I edit."}, {"ask": call, "then": then, "else": [over, {"say": "Not edited."}]}]


def records(bridle: Program, log: int = -1) -> list[dict]:
    return [json.loads(line)["data"] for line in bridle.logs()[log].read_text().splitlines()]


def agents(bridle: Program) -> list[str]:
    """Whom each start of the session named, where the model stands."""
    return [one["model"] for one in records(bridle) if one["type"] == "session_start"]


def without(bridle: Program, module: str) -> dict[str, str]:
    """An environment in which that library is not installed."""
    folder = bridle.home / f"without-{module}"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("gpt", "there is no agent 'gpt'", "Use loop, claude-code, acp:COMMAND"),
        ("acp:", "acp: needs a command", "such as acp:"),
        ("acp:'", "cannot be read", "such as acp:"),
        ("acp:no-such-program --acp", "the program 'no-such-program'", "`bridle doctor` lists"),
    ],
)
def test_a_wrong_name_is_one_line_with_what_to_do_and_leaves_no_session(bridle, name, said, hint):
    done = bridle.run("run", "hi", "--agent", name)
    message, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout, bridle.logs()) == (2, "", [])
    assert said in message and hint in advice
    assert bridle.run("run", "hi", BRIDLE_AGENT=name).stderr == done.stderr


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("claude-code", "claude_agent_sdk", "claude"), ("acp:python3", "acp", "acp")],
)
def test_a_missing_library_is_one_line_with_what_to_install(bridle, name, module, extra):
    environ = without(bridle, module)
    done = bridle.run("run", "hi", "--agent", name, **environ)
    message, advice = done.stderr.splitlines()
    assert (done.returncode, bridle.logs()) == (2, [])
    assert "nothing was started" in message and f"bridle-agent[{extra}]" in advice
    found = json.loads(bridle.run("doctor", "--json", **environ).stdout)
    said = {one["found"]: one for one in found if one["topic"] == "agent"}
    (lacking,) = [one for one in said.values() if one["good"] is None]
    assert lacking["found"].startswith(name[:4]) and f"bridle-agent[{extra}]" in lacking["advice"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("claude-code", "--model", "openai/gpt-5"), "claude-code runs Claude's models"),
        (("claude-code", "--temperature", "1"), "--temperature works only with bridle's own loop"),
        (("claude-code", "--provider", "openai"), "--provider works only with bridle's own loop"),
        (("acp:python3", "--model", "opus"), "acp:python3 chooses its model itself"),
    ],
)
def test_what_an_agent_cannot_be_told_is_an_error_and_not_ignored(bridle, flags, said):
    done = bridle.run("run", "hi", "--agent", *flags)
    assert (done.returncode, bridle.logs()) == (2, [])
    assert said in done.stderr and "\n  → " in done.stderr


def test_doctor_lists_the_agents_and_says_what_is_wrong_with_the_chosen_one(bridle):
    folder = bridle.home / "bin"
    folder.mkdir()
    goose = folder / "goose"
    goose.write_text('#!/bin/sh\ntouch "$HOME/started"\n')
    goose.chmod(0o755)
    environ = {"PATH": f"{folder}:{bridle.environ['PATH']}", "BRIDLE_AGENT": "acp:nowhere"}
    found = json.loads(bridle.run("doctor", "--json", **environ).stdout)
    agents = [(one["found"], one["good"]) for one in found if one["topic"] == "agent"]
    (wrong, is_good), ours, (claude, _), program = agents
    assert "'nowhere'" in wrong and is_good is False
    assert ours == ("loop: bridle's own", True)
    assert claude.startswith("claude-code: at /")
    assert program == (f"acp:goose acp: at {goose}", True)
    assert not (bridle.home / "started").exists()


def test_a_session_goes_on_with_who_carried_it_and_our_loop_can_take_it_up(bridle):
    """(P8) Edit, resume without a flag, then our own loop, which reads what the log has."""
    (bridle.workspace / "a.txt").write_text("one\n")
    agent = acp(bridle, an_edit(bridle), [{"say": "It was one."}])
    done = bridle.run("run", "edit it", "--agent", agent, "--mode", "edits")
    assert (done.returncode, done.stdout) == (0, "Edited.\n"), done.stderr
    assert (bridle.workspace / "a.txt").read_text() == "two\n"
    assert "▸ edit" in done.stderr and "2 steps" in done.stderr
    done = bridle.run("run", "what was it?", "--continue", BRIDLE_AGENT="loop")
    assert (done.returncode, done.stdout) == (0, "It was one.\n"), done.stderr

    async def ours():
        async with FakeAnthropic(["Ours now.", "Ours still."]) as server:
            environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
            words = ("run", "and now?", "--continue", "--agent", "loop", "-m", "anthropic/m")
            done = await asyncio.to_thread(bridle.run, *words, **environ)
            again = await asyncio.to_thread(
                bridle.run, "run", "more", "--continue", "-m", "anthropic/m", **environ
            )
            return done, again, json.dumps(server.requests[0].body["messages"])

    done, again, sent = asyncio.run(ours())
    assert (done.stdout, again.stdout) == ("Ours now.\n", "Ours still.\n"), again.stderr
    assert all(words in sent for words in ("edit it", "I edit.", "edited", "It was one."))
    assert agents(bridle) == [agent, agent, "anthropic/m", "anthropic/m"]
    done = bridle.run("run", "you again", "--continue", "--agent", acp(bridle, name="other"))
    assert "it does not know the conversation" in done.stderr


def test_the_settings_name_an_agent_and_what_its_program_may_have(bridle):
    agent = acp(bridle, [{"say": "Hello."}])
    folder = bridle.home / ".config" / "bridle"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"agent: {json.dumps(agent)}\nmodel: openai/gpt-5\n")
    done = bridle.run("run", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
    (folder / "config.yaml").write_text("agent_env: {}\n")
    assert "- GEMINI_API_KEY" in bridle.run("run", "hi").stderr


def test_an_answer_of_another_agent_has_to_fit_the_schema_too(bridle):
    shape = bridle.home / "shape.json"
    shape.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    agent = acp(bridle, [{"say": '{"n": "x"}'}], [{"say": '{"n": 2}'}])
    done = bridle.run("run", "count", "--agent", agent, "--output-schema", str(shape))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"n": 2}), done.stderr
    assert [one["type"] for one in records(bridle)].count("turn_end") == 1
    assert "does not fit the schema" in json.dumps(records(bridle))


def test_what_an_agent_does_unasked_is_said_and_a_failing_one_ends_with_code_1(bridle):
    done_it = {"id": "c1", "kind": "execute", "status": "completed", "input": {"command": "make"}}
    agent = acp(bridle, [{"call": done_it}, {"say": "Made."}], [{"die": 3}])
    done = bridle.run("run", "make it", "--agent", agent)
    assert (done.returncode, done.stdout) == (0, "Made.\n"), done.stderr
    assert "ran without asking" in done.stderr
    assert "This agent does some things without asking first" in done.stderr
    done = bridle.run("run", "again", "--continue")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr and "\n  → " in done.stderr


def test_the_repl_shows_and_changes_who_carries_the_turns(bridle):
    agent = acp(bridle, [{"say": "From there."}])
    model = bridle.script("From here.")
    lines = f"/agent\none\n/agent {agent}\ntwo\n/agent nobody\n/agent\n/model x\n"
    done = bridle.run("repl", "-m", model, stdin=lines.encode())
    assert (done.returncode, done.stdout) == (0, "From here.\nFrom there.\n"), done.stderr
    assert agents(bridle) == ["scripted/scripted", agent]
    said = done.stderr
    assert said.index("loop\n") < said.index(agent) < said.index("there is no agent 'nobody'")
    assert "chooses its model itself" in said


@contextmanager
def claude(bridle: Program, script):
    """A fake vendor for the real Claude Code, served in a thread."""
    import threading

    started, over, found = threading.Event(), threading.Event(), {}

    async def serve():
        async with FakeAnthropic(script) as server:
            found["server"] = server
            started.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    bridle.environ |= {
        "ANTHROPIC_BASE_URL": found["server"].url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CONFIG_DIR": str(bridle.home / "claude"),
        "CLAUDE_CODE_TMPDIR": str(bridle.home),
    }
    try:
        yield found["server"]
    finally:
        over.set()
        thread.join()


def test_claude_code_at_a_terminal_asks_as_our_loop_does_and_its_model_is_the_flags(bridle):
    """(P3, P7) The same lines, the same difference in the question, steps and cost at the end."""
    file = bridle.workspace / "a.txt"
    file.write_text("one\n")
    used = {"input_tokens": 1000, "output_tokens": 42}
    edit = {"file_path": str(file), "old_string": "one", "new_string": "two"}
    script = [
        {"calls": [{"name": "Read", "arguments": {"file_path": str(file)}}], "usage": used},
        {"text": "I edit.", "calls": [{"name": "Edit", "arguments": edit}], "usage": used},
        {"text": "Edited.", "usage": used},
        {"text": "It was one.", "usage": used},
    ]
    with claude(bridle, script) as server:
        words = ("run", "edit it", "--agent", "claude-code", "-m", "anthropic/claude-sonnet-5-5")
        with bridle.terminal(*words) as terminal:
            shown = terminal.expect("[y/s/r/N] ")
            terminal.type("y\n")
            code, rest = terminal.end()
        done = bridle.run("run", "what was it?", "--continue")
        models = {one.body["model"] for one in server.requests[:3]}
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert code == 0 and file.read_text() == "two\n"
    assert all(words in plain for words in ("read", "I edit.", "Allow edit to", "-one", "+two"))
    assert "Edited." in rest and "3 steps · 2 calls" in rest and "cost unknown" not in rest
    assert models == {"claude-sonnet-5-5"}
    assert (done.returncode, done.stdout) == (0, "It was one.\n"), done.stderr
    assert agents(bridle) == ["claude-code", "claude-code"]
    assert KEY not in shown + rest + done.stderr + Path(bridle.logs()[0]).read_text()
