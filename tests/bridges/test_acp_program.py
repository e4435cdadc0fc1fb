"""`bridle acp` as a program: its output is the protocol alone, and it leaves nothing behind."""

import json
import subprocess

import pytest

from bridges.editor_rig import editor
from cli.cli_program import Program
from rig import a_mark, marked, run

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture
def bridle(tmp_path):
    return Program(tmp_path)


def test_its_output_is_messages_alone_and_it_ends_with_its_input(bridle):
    """There is no model, which a prompt is told; a broken line is answered."""
    where = {"cwd": str(bridle.workspace), "mcpServers": []}
    begin = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": where}
    sent = b"".join(json.dumps(one).encode() + b"\n" for one in (HELLO, begin)) + b"{oh no\n"
    process = subprocess.Popen(
        bridle.command("acp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=bridle.home,
        env=bridle.environ,
    )
    process.stdin.write(sent)
    process.stdin.flush()
    seen = {}
    while len(seen) < 3:
        message = json.loads(process.stdout.readline())
        seen.setdefault(message.get("id"), message)
    words = {
        "sessionId": seen[2]["result"]["sessionId"],
        "prompt": [{"type": "text", "text": "hi"}],
    }
    prompt = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": words}
    process.stdin.write(json.dumps(prompt).encode() + b"\n")
    process.stdin.flush()
    told = ""
    while '"id":3' not in told.replace(" ", ""):
        told += process.stdout.readline().decode()
    assert "no model was found: no key was found" in told and "offline responder" not in told
    rest, said = process.communicate(timeout=240)
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert seen[1]["result"]["protocolVersion"] == 1
    assert seen[2]["result"]["sessionId"]
    assert seen[None]["error"]["code"] == -32700
    assert b"Traceback" not in said


def test_without_the_library_it_says_what_to_install(bridle):
    folder = bridle.home / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['acp'] = None\n")
    done = bridle.run("acp", "--model", "offline", PYTHONPATH=str(folder))
    assert done.returncode != 0
    assert done.stdout == ""
    assert "pip install 'bridle-agent[acp]'" in done.stderr


def test_when_the_editor_goes_nothing_of_its_turn_runs_on(bridle):
    mark = a_mark()
    sleep = {"name": "shell", "arguments": {"command": f"echo begun; sleep {mark}"}}
    model = bridle.script({"calls": [sleep]})

    async def story():
        async with editor(bridle, "--model", model, "--rule", "allow: shell(*)") as one:
            where = {"cwd": str(bridle.workspace), "mcpServers": []}
            session = (await one.ask("session/new", **where))["sessionId"]
            one.prompt(session, "go")
            await one.until(lambda: "begun" in json.dumps(one.outputs()))
            assert marked(mark) != []
        return one

    one = run(story())
    assert one.ended == 0
    assert marked(mark) == []
    (log,) = bridle.logs()
    ends = [json.loads(line)["data"] for line in log.read_text().splitlines()]
    assert [end["reason"] for end in ends if end["type"] == "turn_end"] == ["interrupted"]
