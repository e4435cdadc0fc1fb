"""`bridle mcp serve` as a program: pipes, signals, HTTP and its guard, and a person beside it."""

import asyncio
import json
import os
import select
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from serve_rig import WRITE, Watched, words

from cli.cli_program import Program

OTHER = Implementation(name="other", version="1")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "other", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def bridle(tmp_path):
    return Program(tmp_path)


def task(**arguments):
    given = {"name": "run_task", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": given}


def events(bridle, kind):
    (log,) = bridle.logs()
    records = [json.loads(line)["data"] for line in log.read_text().splitlines()]
    return [one for one in records if one["type"] == kind]


def is_gone(pid):
    """Has the process ended? One that nobody has buried yet has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Raw:
    """The program, spoken to line by line."""

    def __init__(self, bridle, *flags):
        self.process = subprocess.Popen(
            bridle.command("mcp", "serve", *flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=bridle.workspace,
            env=bridle.environ,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def send(self, *messages):
        self.process.stdin.write("".join(f"{json.dumps(one)}\n" for one in messages))
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())


def busy(bridle):
    """A model that starts a command which says its number through a pipe, and stays."""
    os.mkfifo(bridle.workspace / "number")
    (bridle.workspace / "stay.sh").write_text("echo $$ > number\nexec sleep 600\n")
    call = {"name": "shell", "arguments": {"command": "sh stay.sh"}}
    model = bridle.script({"calls": [call]})
    return ("--model", model, "--rule", "allow: shell(sh stay.sh)", "--sandbox", "none")


def test_the_end_of_the_input_ends_everything_that_runs(bridle):
    with Raw(bridle, *busy(bridle)) as program:
        program.send(HELLO, READY, task(prompt="stay"))
        assert program.hear()["result"]["serverInfo"]["name"] == "bridle"
        number = int((bridle.workspace / "number").read_text())
        program.process.stdin.close()
        left = program.process.stdout.read()
        assert program.process.wait(30) == 0
        assert "Traceback" not in program.process.stderr.read()
    assert [json.loads(line)["jsonrpc"] for line in left.splitlines()] == ["2.0"] * left.count("\n")
    assert is_gone(number)
    assert [one["reason"] for one in events(bridle, "turn_end")] == ["interrupted"]


def test_without_a_key_it_starts_and_a_task_is_told_why_nobody_does_it(bridle):
    with Raw(bridle) as program:
        program.send(HELLO, READY, task(prompt="hi"))
        assert program.hear()["result"]["serverInfo"]["name"] == "bridle"
        answer = program.hear()
        said = json.dumps(answer)
        assert "o model was found: no key was found" in said and "offline responder" not in said
        assert answer["result"]["isError"] is True
        program.process.stdin.close()
        assert program.process.wait(30) == 0
        assert "Traceback" not in program.process.stderr.read()


def test_killing_it_leaves_no_program_behind_that_a_task_has_started(bridle):
    with Raw(bridle, *busy(bridle)) as program:
        program.send(HELLO, READY, task(prompt="stay"))
        number = int((bridle.workspace / "number").read_text())
        ended = os.pidfd_open(number)
        program.process.kill()
        program.process.wait(30)
        assert select.select([ended], [], [], 30)[0] == [ended]
        os.close(ended)
    assert events(bridle, "turn_end") == []


def test_a_signal_ends_it_while_the_input_is_open_and_a_turn_that_waits_is_parked(bridle):
    model = bridle.script(WRITE)
    with Raw(bridle, "--model", model) as program:
        asked = task(prompt="write", wait_seconds=600)
        asked["params"]["_meta"] = {"progressToken": "p"}
        program.send(HELLO, READY, asked)
        while "needs approval" not in program.hear().get("params", {}).get("message", ""):
            pass
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(30) == 0
    assert events(bridle, "turn_end") == []
    assert len(events(bridle, "turn_parked")) == 1
    assert events(bridle, "approval_answered") == []


def test_a_person_in_a_terminal_answers_what_another_agents_task_asks(bridle):
    model = bridle.script(WRITE, "written")
    flags = ["mcp", "serve", "--model", model]
    command = bridle.command(*flags)
    server = StdioServerParameters(
        command=command[0], args=command[1:], env=bridle.environ, cwd=bridle.workspace
    )

    async def work():
        async with Client(server, client_info=OTHER) as client:
            call = Watched(client, "run_task", {"prompt": "write", "wait_seconds": 600})
            await call.says("needs approval: write: a")
            said = await asyncio.to_thread(
                bridle.run, "approvals", "answer", "call_1", "yes", "--by", "ann"
            )
            return said, await call.task

    said, found = asyncio.run(work())
    assert said.returncode == 0, said.stderr
    assert found.structured_content["reason"] == "done"
    assert found.structured_content["files_changed"] == [{"path": "a", "how": "added"}]
    assert [one["by"] for one in events(bridle, "approval_answered")] == ["ann"]
    assert [one["mode"] for one in events(bridle, "session_start")] == ["mcp"]


def test_over_http_only_who_knows_the_token_and_comes_by_the_right_name_gets_in(bridle):
    model, token_file = bridle.script("hello"), bridle.home / "token"
    with Raw(bridle, "--model", model, "--http", "--token-file", str(token_file)) as program:
        url = program.process.stderr.readline().rpartition(" ")[2].strip()
        assert program.process.stderr.readline() == f"token: in {token_file}\n"
        token = token_file.read_text().strip()
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        statuses, found = asyncio.run(visited(url, token))
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(30) == 0
        assert program.process.stdout.read() == ""
    assert statuses == [401, 401, 401, 421, 403, 200]
    assert words(found).startswith("hello\nsession: ")


async def visited(url, token):
    """How each way of asking is answered, and what a task comes to for the right one."""
    right = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    ways = [
        right | {"Authorization": ""},
        right | {"Authorization": "Bearer wrong"},
        right | {"Authorization": f"Basic {token}"},
        right | {"Host": "evil.example.com"},
        right | {"Origin": "http://evil.example.com"},
        right,
    ]
    statuses = []
    async with aiohttp.ClientSession() as session:
        for headers in ways:
            async with session.post(url, json=HELLO, headers=headers) as answer:
                statuses.append(answer.status)
    async with httpx2.AsyncClient(headers=right, timeout=240) as http:
        way = streamable_http_client(url, http_client=http)
        async with Client(way, client_info=OTHER) as client:
            return statuses, await client.call_tool("run_task", {"prompt": "hello"})


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--mode", "auto"], "the mode auto is not allowed"),
        (["--port", "1"], "--port and --token-file need --http"),
        (["--resume", "x"], "no such option"),
        (["--http", "--token-file", "open"], "open contains the token, but others can read it"),
        (["--http", "--token-file", "short"], "short does not contain a token"),
    ],
)
def test_what_it_cannot_be_started_with_is_said(bridle, flags, why):
    for name in ("open", "short"):
        path = bridle.workspace / name
        path.write_text("x" * 32 if name == "open" else "x")
        path.chmod(0o644 if name == "open" else 0o600)
    done = bridle.run("mcp", "serve", "--model", "offline", *flags)
    assert done.returncode == 2
    assert why in done.stderr and done.stdout == ""


def test_without_the_sdk_it_says_what_to_install(bridle):
    """An extra that is not there is not found by a traceback."""
    code = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "from bridle.cli import main; sys.exit(main(['mcp', 'serve', '-m', 'offline']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=bridle.environ,
        timeout=240,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "bridle: the official SDK of MCP is not installed\n"
        "  → Install it with: pip install 'bridle-agent[mcp]'\n"
    )


def test_limits_are_narrowed_and_never_widened(bridle, monkeypatch):
    """Also beyond the engine's own, where a person has set none."""
    from bridle.cli.mcp_server_run import narrowed_setup
    from bridle.cli.setup import Setup, to_limits
    from bridle.server.mcp.tasks import TaskLimits

    monkeypatch.setenv("BRIDLE_STATE", str(bridle.state))
    setup = Setup({"workspace": str(bridle.workspace), "max_cost": 2.0, "max_seconds": 60.0})

    def limits(*caps):
        found = to_limits(narrowed_setup(setup, "plan", TaskLimits(*caps)).settings)
        return found.max_steps, found.max_seconds, found.max_turn_tokens, found.max_cost

    assert limits(10_000, 600.0, 5_000, 9.0) == (200, 60.0, 5_000, 2.0)
    assert limits(3, 5.0, None, 0.5) == (3, 5.0, 0, 0.5)
    assert limits() == (200, 60.0, 0, 2.0)
    assert (
        setup.settings.mode == "ask"
        and narrowed_setup(setup, "plan", TaskLimits()).settings.mode == "plan"
    )
