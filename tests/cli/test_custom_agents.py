"""An agent of one's own, started by name from every interface (P8)."""

import json
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cli_program import Program
from serve_program import PATIENCE, served

AGENT = '''
"""An agent that puts a word into a file, and remembers which."""
from bridle.agents.base import AgentResponse

class Writer:
    async def execute(self, prompt, session, *, on_text_chunk=None, **callbacks):
        if prompt == "what?":
            return AgentResponse(f"It was {session.state.get('word', 'nothing')}.")
        await on_text_chunk("I write. ")
        done = await session.call("write", {"path": "a.txt", "content": prompt})
        session.state = {"word": prompt}
        return AgentResponse("Not written." if done.is_error else "Written.")

    async def cancel(self, session_id): ...
    async def shutdown(self): ...

class Picky(Writer):
    def __init__(self, shop): ...

def make():
    return Writer()

class Half:
    async def execute(self, prompt, session, **callbacks): ...
'''
POINTS = "[bridle.agents]\nwriter = acme_agents.desk:Writer\nclaude-code = acme_agents.desk:Half\n"
NAMED = "acme_agents.desk:Writer"


@pytest.fixture
def bridle(tmp_path: Path) -> Program:
    """The program, in an environment in which the package `acme-agents` is installed."""
    program = Program(tmp_path)
    site = tmp_path / "site"
    (site / "acme_agents").mkdir(parents=True)
    (site / "acme_agents" / "__init__.py").touch()
    (site / "acme_agents" / "desk.py").write_text(AGENT)
    (site / "acme_agents" / "broken.py").write_text("1 / 0\n")
    about = site / "acme_agents-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-agents\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    program.environ["PYTHONPATH"] = str(site)
    return program


def starts(bridle: Program) -> list[str]:
    """Who carried the newest session, at each of its starts."""
    lines = map(json.loads, bridle.logs()[-1].read_text().splitlines())
    return [one["data"]["model"] for one in lines if one["data"]["type"] == "session_start"]


@pytest.mark.parametrize("name", [NAMED, "acme_agents.desk:make", "writer"])
def test_a_class_of_an_installed_package_carries_a_session_and_takes_it_up_again(bridle, name):
    done = bridle.run("run", "hello", "--agent", name, "--mode", "edits")
    assert (done.returncode, done.stdout) == (0, "Written.\n"), done.stderr
    assert (bridle.workspace / "a.txt").read_text() == "hello"
    again = bridle.run("run", "what?", "--continue")
    assert (again.returncode, again.stdout) == (0, "It was hello.\n"), again.stderr
    assert starts(bridle) == [name, name]


def test_what_it_does_passes_the_gate(bridle):
    done = bridle.run("run", "hello", "--agent", NAMED)
    assert (done.returncode, done.stdout) == (3, "Not written.\n")
    assert not (bridle.workspace / "a.txt").exists()


def test_a_file_is_named_by_its_path_and_again_by_whoever_resumes_the_session(bridle):
    (bridle.workspace / "mine.py").write_text(AGENT)
    done = bridle.run("run", "hello", "--agent", "./mine.py:Writer", "--mode", "edits")
    assert (done.returncode, done.stdout) == (0, "Written.\n"), done.stderr
    whole = f"{bridle.workspace / 'mine.py'}:Writer"
    assert starts(bridle) == [whole]
    refused = bridle.run("run", "what?", "--continue")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "imports a file of code only if you name it" in refused.stderr
    again = bridle.run("run", "what?", "--continue", "--agent", "mine.py:Writer")
    assert (again.returncode, again.stdout) == (0, "It was hello.\n"), again.stderr
    by_setting = bridle.run("run", "what?", "--continue", BRIDLE_AGENT=whole)
    assert by_setting.stdout == "It was hello.\n", by_setting.stderr
    relative = bridle.run("run", "what?", BRIDLE_AGENT="mine.py:Writer")
    assert relative.returncode == 2
    assert "its path is not absolute" in relative.stderr


@pytest.mark.parametrize(
    "program",
    [[Path(sys.executable).with_name("bridle")], [sys.executable, "-m", "bridle"]],
    ids=["bridle", "python -m bridle"],
)
def test_a_module_of_the_current_folder_is_not_imported_by_its_name(bridle, program):
    mark = bridle.home / "imported"
    text = f"open({str(mark)!r}, 'w')\n{AGENT}"
    (bridle.workspace / "local_agent.py").write_text(text)
    done = subprocess.run(
        [*program, "run", "hi", "--agent", "local_agent:Writer"],
        cwd=bridle.workspace,
        env=bridle.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, mark.exists()) == (2, "", False)
    assert "there is no module 'local_agent'" in done.stderr
    assert "--agent PATH.py:CLASS" in done.stderr


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("no_such_module:Writer", "there is no module 'no_such_module'", "Install the agent's"),
        ("acme_agents.desk:Writers", "has no 'Writers'", "It has Writer, Picky, Half."),
        ("acme_agents.desk:Half", "is not an agent: it has no cancel, shutdown", "execute"),
        ("acme_agents.desk:Picky", "could not be made: TypeError", "takes no arguments"),
        ("acme_agents.broken:Writer", "could not be imported: ZeroDivisionError", "Fix"),
        ("./nowhere.py:Writer", "there is no file", "PATH.py:CLASS"),
    ],
)
def test_what_cannot_be_started_is_said_with_what_to_do(bridle, name, said, hint):
    done = bridle.run("run", "hi", "--agent", name)
    message, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout, bridle.logs()) == (2, "", [])
    assert said in message
    assert hint in advice


def test_a_package_cannot_take_the_name_of_an_agent_of_ours(bridle):
    said = bridle.run("doctor").stdout
    assert said.count("claude-code") == bridle.run("doctor", PYTHONPATH="").stdout.count(
        "claude-code"
    )
    assert "writer: from acme_agents.desk:Writer" in said


def test_a_model_cannot_have_code_imported_by_naming_it_in_a_task(bridle):
    task = {"name": "task", "arguments": {"prompt": "go", "agent": "acme_agents.broken:x"}}
    model = bridle.script({"calls": [task]}, "Well.")
    done = bridle.run("run", "go", "-m", model, "--yes", "--rule", "allow: task")
    assert done.stdout.endswith("Well.\n"), done.stderr
    assert "ZeroDivisionError" not in bridle.logs()[-1].read_text()


def test_the_repl_starts_it_and_changes_to_it(bridle):
    lines = f"one\n/agent {NAMED}\nhello\nwhat?\n/agent no_such_module:X\n"
    flags = ("--mode", "edits", "--model", bridle.script("Hi."))
    done = bridle.run("repl", *flags, stdin=lines.encode())
    assert done.stdout == "Hi.\nWritten.\nIt was hello.\n", done.stderr
    assert "there is no module 'no_such_module'" in done.stderr


def test_the_screen_starts_it(bridle):
    with bridle.terminal("chat", "--agent", NAMED, "--mode", "edits") as screen:
        screen.expect(NAMED.rpartition(":")[2])
        screen.type("hello\r")
        screen.expect("Written.")


def test_a_server_starts_it_and_only_if_it_was_named(bridle):
    with served(bridle, "--agent", NAMED, "--mode", "edits") as server:
        session = server.ask("POST", "/api/sessions", {})["id"]
        server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "hello"})
        sign_in = {"Authorization": f"Bearer {server.token}"}
        place = f"{server.url}/api/sessions/{session}/stream"
        request = urllib.request.Request(place, headers=sign_in)
        with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
            while stream.readline() != b"event: completed\n":
                pass
        assert (bridle.workspace / "a.txt").read_text() == "hello"
        offered = [one["name"] for one in server.ask("GET", "/api/agents")["choices"]]
        assert NAMED in offered
        assert "writer" not in offered
        assert server.stop() == (0, "")


def test_an_editors_agent_is_carried_by_it(bridle):
    words = [sys.executable, "-m", "bridle", "acp", "--agent", NAMED, "--mode", "edits"]
    inner = bridle.home / "inner"
    agent = shlex.join(["env", f"BRIDLE_STATE={inner}", *words])
    environ = bridle.environ["PYTHONPATH"]
    agent = agent.replace("env ", f"env PYTHONPATH={environ} ", 1)
    done = bridle.run("run", "hello", "--agent", f"acp:{agent}", "--mode", "edits")
    assert done.stdout.endswith("Written.\n"), done.stderr
    assert (bridle.workspace / "a.txt").read_text() == "hello"


def test_a_task_of_another_program_is_carried_by_it(bridle):
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "other", "version": "1"},
    }
    arguments = {"prompt": "what?", "wait_seconds": 60}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "run_task", "arguments": arguments}},
    ]
    process = subprocess.Popen(
        bridle.command("mcp", "serve", "--agent", NAMED),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=bridle.workspace,
        env=bridle.environ,
    )
    with process:
        for one in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline())]
        while answers[-1].get("id") != 2:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(60) == 0
    assert "It was nothing." in json.dumps(answers[-1]["result"])


def test_a_server_does_not_import_a_file_that_only_a_log_names(bridle):
    mark = bridle.home / "imported"
    mine = bridle.workspace / "mine.py"
    mine.write_text(AGENT)
    bridle.run("run", "hello", "--agent", "./mine.py:Writer", "--mode", "edits")
    mine.write_text(f"open({str(mark)!r}, 'w')\n{AGENT}")  # as a model might have changed it
    session = bridle.logs()[-1].parent.name
    with served(bridle, "-m", bridle.script("Hi.")) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "what?"})
        assert (refused.value.code, mark.exists()) == (403, False)
        refused.value.close()
    with served(bridle, "--agent", "mine.py:Writer") as server:
        sent = server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "what?"})
        assert sent["turn"] == 2
