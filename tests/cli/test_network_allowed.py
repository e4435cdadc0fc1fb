"""A yes to a command that goes out over the network gives the network to that command alone."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cli_program import Program

from rig import call


class Page(BaseHTTPRequestHandler):
    """Answers everything with one word."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"reached\n")

    def log_message(self, *about: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["bubblewrap", "landlock"])
def level(request: pytest.FixtureRequest, bridle: Program) -> str:
    return bridle.use_sandbox(request.param)


def networks(bridle: Program, kind: str) -> list[bool]:
    return [one.get("network", False) for one in bridle.recorded(kind)]


def allow(bridle: Program, *commands: str) -> None:
    policy = bridle.home / ".config/bridle/policy.yaml"
    policy.parent.mkdir(parents=True)
    rules = [json.dumps(f"allow: shell({one})") for one in commands]
    policy.write_text("rules:\n" + "".join(f"  - {one}\n" for one in rules))


def reach_by_script(bridle: Program, address: str) -> str:
    """A command of which nobody can know that it uses the network."""
    (bridle.workspace / "address").write_text(address)
    script = "import urllib.request as u; print(u.urlopen(open('address').read()).read())"
    (bridle.workspace / "ask.py").write_text(script)
    return f"{os.path.realpath(sys.executable)} ask.py"


def test_a_yes_gives_the_network_to_that_command_and_not_to_the_next(
    bridle: Program, address: str, level: str
):
    fetch = f"curl -s --max-time 20 {address}"
    script = reach_by_script(bridle, address)
    allow(bridle, script)
    model = bridle.script(call("shell", command=fetch))
    done = bridle.run("run", "look", "--on-ask", "park", "-m", model)
    assert done.returncode == 3, done.stderr
    session = bridle.logs()[-1].parent.name
    answered = bridle.run("approvals", "answer", session, "yes")
    assert "if allowed, this command gets network access" in answered.stderr
    after = bridle.script(call("shell", command=script), "Done.", name="after")
    go_on = bridle.run("run", "--resume", session, "-m", after)
    assert go_on.returncode == 0, go_on.stderr
    first, second = bridle.results()
    assert first["text"] == "reached\n[exit code 0]"
    assert (first["data"]["sandbox"], first["data"]["network"]) == (level, True)
    assert "URLError" in second["text"]
    assert networks(bridle, "approval_asked") == [True]
    assert networks(bridle, "intent") == [True, False]


def test_in_the_mode_auto_there_is_no_network_and_nobody_is_said_to_have_said_yes(
    bridle: Program, address: str, level: str
):
    fetch = f"curl -s --max-time 20 {address}"
    model = bridle.script(call("shell", command=fetch), "Done.")
    done = bridle.run("run", "look", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    (only,) = bridle.results()
    assert only["text"].startswith("(no output)\n[exit code 7]")
    assert networks(bridle, "intent") == [False]
    explained = bridle.run("policy", "explain", "--mode", "auto", fetch).stdout
    assert "only a person's approval gives it the network" in explained
    assert "--yes" not in explained


def test_a_rule_gives_the_network_to_the_command_that_it_names_alone(
    bridle: Program, address: str, level: str
):
    fetch = f"curl -s --max-time 20 {address}"
    script = reach_by_script(bridle, address)
    allow(bridle, fetch, script)
    both = f"{script}; {fetch}"
    model = bridle.script(call("shell", command=fetch), call("shell", command=both), "Done.")
    done = bridle.run("run", "look", "-m", model)
    assert done.returncode == 0, done.stderr
    alone, beside = bridle.results()
    assert alone["text"].startswith("reached\n")
    assert "reached" not in beside["text"]
    assert networks(bridle, "intent") == [True, False]
