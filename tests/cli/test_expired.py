"""A parked turn whose questions have expired is no dead end, with or without a terminal (A9)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cli_program import Program

from bridle.protocols.codec import encode_line

SHELL = {"name": "shell", "arguments": {"command": "echo made > made.txt"}}
WRITE = {"name": "write", "arguments": {"path": "b.txt", "content": "b\n"}}


def parked(bridle: Program, *calls: dict, hours: float = 24.0) -> str:
    """A session whose turn waits for answers, and has so many hours for them; its id."""
    model = bridle.script({"calls": list(calls)})
    done = bridle.run("run", "make it", "--on-ask", "park", "-m", model)
    assert done.returncode == 3, done.stderr
    log = bridle.logs()[-1]
    until = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines, before = [], ""
    for line in log.read_text().splitlines():
        found = json.loads(line)
        if "expires" in found["data"]:
            found["data"]["expires"] = until
        data = json.dumps(found["data"], separators=(",", ":"), ensure_ascii=False).encode()
        encoded, before = encode_line(found["seq"], found["timestamp"], data, before)
        lines.append(encoded)
    log.write_bytes(b"".join(lines))
    return log.parent.name


def data(bridle: Program, session: str, kind: str) -> list[dict]:
    log = (bridle.state / "sessions" / session / "log.jsonl").read_text()
    found = [json.loads(line)["data"] for line in log.splitlines()]
    return [one for one in found if one["type"] == kind]


def go_on(bridle: Program, session: str, *arguments: str):
    model = bridle.script("Done.", "More.", name="after")
    return bridle.run("run", "--resume", session, *arguments, "-m", model)


@pytest.mark.parametrize("how", [(), ("--on-ask", "deny"), ("--on-ask", "park"), ("-y",)])
def test_a_turn_with_expired_questions_goes_on_with_a_no(bridle: Program, how: tuple[str, ...]):
    session = parked(bridle, SHELL, WRITE, hours=-1)
    late = bridle.run("approvals", "answer", f"{session}/call_1", "yes")
    assert late.returncode == 2 and "has expired, so it is denied" in late.stderr
    assert f"`bridle run --resume {session}` continues the turn" in late.stderr
    done = go_on(bridle, session, *how)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    said = [(one["allowed"], one["by"]) for one in data(bridle, session, "approval_answered")]
    assert said == [(False, "expiry")] * 2
    assert [one["reason"] for one in data(bridle, session, "turn_end")] == ["done"]
    assert list(bridle.workspace.iterdir()) == []


def test_a_prompt_comes_after_the_turn_that_expired(bridle: Program):
    session = parked(bridle, SHELL, hours=-1)
    done = go_on(bridle, session, "and more")
    assert done.returncode == 0 and done.stdout.endswith("More.\n"), done.stderr
    assert [one["turn"] for one in data(bridle, session, "turn_end")] == [1, 2]


@pytest.mark.parametrize("hours", [-1, 24])
def test_a_parked_turn_that_nobody_holds_can_be_stopped_and_then_rewound(
    bridle: Program, hours: float
):
    session = parked(bridle, SHELL, hours=hours)
    bridle.run("sessions", "send", session, "later")
    stuck = bridle.run("sessions", "rewind", session, "--to", "0")
    assert stuck.returncode == 2 and f"`bridle sessions stop {session}`" in stuck.stderr
    stopped = bridle.run("sessions", "stop", session, "--by", "ada")
    assert stopped.returncode == 0 and "ended the parked turn" in stopped.stdout, stopped.stderr
    assert [one["reason"] for one in data(bridle, session, "turn_end")] == ["interrupted"]
    assert bridle.run("approvals", "list").stdout == "No approvals are pending.\n"
    again = bridle.run("sessions", "stop", session)
    assert again.returncode == 2 and "nothing to stop" in again.stderr
    assert bridle.run("sessions", "rewind", session, "--to", "0").returncode == 0
    done = go_on(bridle, session)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert [one["content"] for one in data(bridle, session, "user_prompt")] == ["make it", "later"]
    assert list(bridle.workspace.iterdir()) == []
