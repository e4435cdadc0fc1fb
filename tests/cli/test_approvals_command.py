"""Questions that outlive their process: parked turns, `bridle approvals`, and going on (A8, A9)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cli_program import Program

SHELL = {"name": "shell", "arguments": {"command": "echo made > made.txt"}}
WRITE = {"name": "write", "arguments": {"path": "b.txt", "content": "b\n"}}


def parked(bridle: Program, *calls: dict) -> str:
    """A session whose turn waits for answers about these calls; its id."""
    model = bridle.script({"calls": list(calls)})
    done = bridle.run("run", "make it", "--on-ask", "park", "-m", model)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    return bridle.logs()[-1].parent.name


def waiting(bridle: Program) -> list[dict]:
    return json.loads(bridle.run("approvals", "list", "--json").stdout)


def data(bridle: Program, session: str, kind: str) -> list[dict]:
    log = (bridle.state / "sessions" / session / "log.jsonl").read_text()
    found = [json.loads(line)["data"] for line in log.splitlines()]
    return [one for one in found if one["type"] == kind]


def go_on(bridle: Program, session: str, *arguments: str):
    model = bridle.script("Done.", "More.", name="after")
    return bridle.run("run", "--resume", session, *arguments, "-m", model)


def test_a_parked_run_says_what_waits_and_how_to_answer(bridle: Program):
    model = bridle.script({"calls": [SHELL]})
    done = bridle.run("run", "make it", "--on-ask", "park", "-m", model)
    session = bridle.logs()[0].parent.name
    name = f"{session.rpartition('-')[2]}/call_1"
    assert (done.returncode, done.stdout) == (3, "")
    assert "  │ $ echo made > made.txt\n" in done.stderr
    assert f"`bridle approvals answer {name} yes`" in done.stderr
    assert f"`bridle run --resume {session}`" in done.stderr
    assert not (bridle.workspace / "made.txt").exists()
    (one,) = waiting(bridle)
    assert (one["id"], one["session"], one["title"]) == (name, session, "make it")
    assert (one["call"]["arguments"], one["reason"]) == (
        SHELL["arguments"],
        "writes made.txt",
    )
    assert (one["expired"], one["answered"]) == (False, None)
    listed = bridle.run("approvals", "list").stdout
    assert "▸ shell echo made > made.txt" in listed and "(expires in " in listed
    shown = bridle.run("sessions", "show", session).stdout
    assert "■ parked: the turn waits for 1 answer\n" in shown


@pytest.mark.parametrize("said", ["yes", "no"])
def test_an_answer_waits_for_the_session_and_the_turn_goes_on_with_it(bridle: Program, said: str):
    session = parked(bridle, SHELL)
    done = bridle.run("approvals", "answer", session, said, "--by", "ada", "--word", "mind the gap")
    assert done.returncode == 0
    assert "$ echo made > made.txt" in done.stderr
    verb = "allowed" if said == "yes" else "denied"
    assert done.stdout.startswith(f"{verb}; it takes effect when the session is resumed")
    assert f"bridle run --resume {session}" in done.stdout
    (one,) = waiting(bridle)
    assert one["answered"] is (said == "yes")
    again = bridle.run("approvals", "answer", session, "yes")
    assert again.returncode == 2 and "the first answer counts" in again.stderr
    after = go_on(bridle, session)
    assert (after.returncode, after.stdout) == (0, "Done.\n")
    assert (bridle.workspace / "made.txt").exists() is (said == "yes")
    (answer,) = data(bridle, session, "approval_answered")
    assert (answer["by"], answer["allowed"], answer["word"]) == (
        "ada",
        said == "yes",
        "mind the gap",
    )
    assert waiting(bridle) == []
    assert [one["reason"] for one in data(bridle, session, "turn_end")] == ["done"]


def test_a_turn_with_two_questions_waits_for_both(bridle: Program):
    session = parked(bridle, SHELL, WRITE)
    several = bridle.run("approvals", "answer", session, "yes")
    assert several.returncode == 2 and "2 approvals are pending" in several.stderr
    bridle.run("approvals", "answer", "call_1", "yes")
    early = go_on(bridle, session)
    assert early.returncode == 3 and "needs an approval" in early.stderr
    assert "b.txt" in early.stderr and "made.txt" not in early.stderr
    left = bridle.run("approvals", "answer", session, "yes", "--json")
    assert json.loads(left.stdout)["left"] == 0
    assert go_on(bridle, session).stdout == "Done.\n"
    assert sorted(one.name for one in bridle.workspace.iterdir()) == ["b.txt", "made.txt"]


def test_a_prompt_for_a_parked_session_is_held_back_where_nobody_can_answer(bridle: Program):
    session = parked(bridle, SHELL)
    done = go_on(bridle, session, "and", "more")
    assert done.returncode == 3 and "the prompt was not sent" in done.stderr
    assert len(data(bridle, session, "user_prompt")) == 1


def test_at_a_terminal_the_questions_come_first_and_then_the_prompt(bridle: Program):
    session = parked(bridle, SHELL)
    model = bridle.script("Done.", "More.", name="after")
    with bridle.terminal("run", "--resume", session, "and more", "-m", model) as terminal:
        terminal.expect("/N] ")
        terminal.type("y\n")
        terminal.expect("Done.")
        terminal.expect("More.")
        assert terminal.end()[0] == 0
    assert (bridle.workspace / "made.txt").exists()
    assert [one["content"] for one in data(bridle, session, "user_prompt")] == [
        "make it",
        "and more",
    ]


def test_without_a_prompt_there_has_to_be_something_to_go_on_with(bridle: Program):
    bridle.run("run", "hi", "-m", bridle.script("ok"))
    session = bridle.logs()[0].parent.name
    before = bridle.logs()[0].read_text()
    done = go_on(bridle, session)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has nothing to resume" in done.stderr
    assert [one["content"] for one in data(bridle, session, "user_prompt")] == ["hi"]
    assert bridle.logs()[0].read_text() == before
    piped = bridle.run("run", "--continue", "-m", bridle.script("Piped."), stdin=b"go on\n")
    assert piped.stdout == "Piped.\n"


def test_answering_at_a_terminal_asks_for_the_answer(bridle: Program):
    session = parked(bridle, SHELL)
    with bridle.terminal("approvals", "answer", session) as terminal:
        terminal.expect("/N] ")
        terminal.type("s\n")
        assert terminal.end()[0] == 0
    go_on(bridle, session)
    (answer,) = data(bridle, session, "approval_answered")
    assert (answer["allowed"], answer["scope"]) == (True, "session")
    unsaid = bridle.run("approvals", "answer", parked(bridle, WRITE))
    assert unsaid.returncode == 2 and "Add yes or no" in unsaid.stderr


def test_a_question_that_has_expired_is_said_to_be_and_cannot_be_answered(bridle: Program):
    session = parked(bridle, SHELL)
    log = bridle.logs()[0]
    (asked,) = data(bridle, session, "approval_asked")
    past = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    log.write_text(_rechained(log.read_text().replace(asked["expires"], past)))
    assert [one["expired"] for one in waiting(bridle)] == [True]
    assert "expired: it will be denied" in bridle.run("approvals", "list").stdout
    late = bridle.run("approvals", "answer", session, "yes")
    assert late.returncode == 2 and "has expired" in late.stderr


def _rechained(text: str) -> str:
    from bridle.protocols.codec import encode_line

    lines, previous = [], ""
    for line in text.splitlines():
        found = json.loads(line)
        data = json.dumps(found["data"], separators=(",", ":"), ensure_ascii=False).encode()
        encoded, previous = encode_line(found["seq"], found["timestamp"], data, previous)
        lines.append(encoded.decode())
    return "".join(lines)


def test_nothing_waits_and_nothing_is_known_are_two_things(bridle: Program):
    assert bridle.run("approvals", "list").stdout == "No approvals are pending.\n"
    assert waiting(bridle) == []
    done = bridle.run("approvals", "answer", "call_1", "yes")
    assert done.returncode == 2 and "no approval is pending under 'call_1'" in done.stderr
