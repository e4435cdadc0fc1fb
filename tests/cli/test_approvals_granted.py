"""What was allowed for longer than once: listed, taken back, and answers to several questions."""

import json
from typing import Any

from cli_program import Program

MAKE = {"name": "shell", "arguments": {"command": "touch a.txt"}}
WRITES = [{"name": "write", "arguments": {"path": f"{n}.md", "content": n}} for n in "abc"]


def parked(bridle: Program, *calls: dict[str, Any], name: str = "script") -> str:
    model = bridle.script({"calls": list(calls)}, name=name)
    done = bridle.run("run", "make it", "--on-ask", "park", "-m", model)
    assert done.returncode == 3, done.stderr
    return bridle.logs()[-1].parent.name


def go_on(bridle: Program, session: str) -> None:
    model = bridle.script("Done.", name="after")
    assert bridle.run("run", "--resume", session, "-m", model).stdout == "Done.\n"


def grants(bridle: Program, *about: str) -> list[dict[str, Any]]:
    return json.loads(bridle.run("approvals", "grants", *about, "--json").stdout)


def data(bridle: Program, session: str, kind: str) -> list[dict[str, Any]]:
    log = (bridle.state / "sessions" / session / "log.jsonl").read_text()
    found = [json.loads(line)["data"] for line in log.splitlines()]
    return [one for one in found if one["type"] == kind]


def allowed(bridle: Program, name: str = "script") -> str:
    """A session in which a call was allowed for longer; its id."""
    session = parked(bridle, MAKE, name=name)
    bridle.run("approvals", "answer", session, "yes", "--scope", "session", "--by", "ada")
    go_on(bridle, session)
    return session


def test_what_was_allowed_is_listed_with_who_when_and_until(bridle: Program):
    assert bridle.run("approvals", "grants").stdout == "Nothing is allowed for a whole session.\n"
    session = allowed(bridle)
    (one,) = grants(bridle)
    assert grants(bridle, session) == [one]
    assert (one["session"], one["by"], one["rule"]) == (session, "ada", "")
    assert one["what"] == "shell(touch a.txt)" and one["since"] < one["until"]
    listed = bridle.run("approvals", "grants").stdout.splitlines()
    assert listed[0] == f"{one['id']}  shell(touch a.txt)"
    assert listed[1].startswith("  by ada · ") and " · ends in " in listed[1]


def test_a_yes_once_to_a_build_allows_no_other_build(bridle: Program):
    (bridle.workspace / "Makefile").write_text("all:\n\t@true\n")
    build = {"name": "shell", "arguments": {"command": "make"}}
    session = parked(bridle, build)
    model = bridle.script({"calls": [build]}, "Done.", name="after")
    bridle.run("approvals", "answer", session, "yes")
    again = bridle.run("run", "--resume", session, "--on-ask", "park", "-m", model)
    assert again.returncode == 3, again.stderr
    assert grants(bridle) == []
    bridle.run("approvals", "answer", session, "yes", "--scope", "session")
    third = bridle.script({"calls": [build]}, "Done.", name="third")
    assert bridle.run("run", "--resume", session, "-m", third).stdout == "Done.\n"
    (grant,) = grants(bridle)
    assert grant["what"] == f"tests and builds in {grant['cwd']}"
    scopes = [one.get("scope", "once") for one in data(bridle, session, "approval_answered")]
    assert scopes == ["once", "session"]


def test_a_grant_is_taken_back_by_its_name_by_its_session_or_with_all(bridle: Program):
    first, second, third = (allowed(bridle, name) for name in ("one", "two", "three"))
    names = {one["session"]: one["id"] for one in grants(bridle)}
    done = bridle.run("approvals", "revoke", names[first], "--by", "bo")
    assert (done.returncode, done.stdout) == (0, "revoked: shell(touch a.txt)\n")
    assert [one["by"] for one in data(bridle, first, "grant_revoked")] == ["bo"]
    assert (
        "✗ one approval for the session revoked by bo"
        in bridle.run("sessions", "show", first).stdout
    )
    bridle.run("approvals", "revoke", second)
    assert [one["session"] for one in grants(bridle)] == [third]
    told = json.loads(bridle.run("approvals", "revoke", "--all", "--json").stdout)
    assert [one["session"] for one in told] == [third] and grants(bridle) == []
    unknown = bridle.run("approvals", "revoke", "zzzz")
    assert unknown.returncode == 2 and "there is no grant 'zzzz'" in unknown.stderr
    assert bridle.run("approvals", "revoke").returncode == 2


def test_a_grant_of_a_session_that_somebody_holds_is_taken_back_there(bridle: Program):
    touch = {"calls": [MAKE]}
    model = bridle.script(touch, "First.", touch, "Second.")
    with bridle.terminal("repl", "-m", model) as terminal:
        terminal.expect("❯ ")
        terminal.type("go\n")
        terminal.expect("/N] ")
        terminal.type("s\n")
        terminal.expect("First.")
        terminal.expect("❯ ")
        assert bridle.run("approvals", "revoke", "--all", "--by", "ada").returncode == 0
        terminal.expect("revoked by ada")
        terminal.expect("❯ ")
        terminal.type("go\n")
        terminal.expect("/N] ")
        terminal.type("n\n")
        terminal.expect("Second.")


def test_questions_that_belong_together_are_listed_and_answered_together(bridle: Program):
    session = parked(bridle, *WRITES, MAKE)
    listed = bridle.run("approvals", "list").stdout
    assert listed.count("→ bridle approvals answer ") == 2
    assert "call_1 yes --all\n    (all 3 of this group" in listed
    several = bridle.run("approvals", "answer", session, "yes")
    assert several.returncode == 2 and "or use --all" in several.stderr
    done = bridle.run("approvals", "answer", "call_2", "yes", "--all", "--json")
    told = json.loads(done.stdout)
    assert [one["id"].rpartition("/")[2] for one in told] == ["call_1", "call_2", "call_3"]
    assert {one["left"] for one in told} == {1}
    assert "Allow these 3 calls?" in done.stderr
    assert bridle.run("approvals", "answer", session, "no", "--all").returncode == 0
    go_on(bridle, session)
    assert sorted(one.name for one in bridle.workspace.iterdir()) == ["a.md", "b.md", "c.md"]


def test_a_rule_is_made_of_an_answer_from_elsewhere(bridle: Program):
    session = parked(bridle, MAKE)
    done = bridle.run("approvals", "answer", session, "yes", "--scope", "rule")
    assert done.returncode == 0, done.stderr
    assert "There are no earlier calls in this folder" in done.stderr
    go_on(bridle, session)
    rules = (bridle.home / ".config" / "bridle" / "policy.yaml").read_text()
    assert "- allow: 'shell(touch a.txt)'  # from an answer by" in rules
    assert f"\n    in: '{bridle.workspace.resolve()}'\n" in rules
    (answer,) = data(bridle, session, "approval_answered")
    assert (answer["scope"], answer["rule"]) == ("rule", "allow: shell(touch a.txt)")
    shown = bridle.run("sessions", "show", session).stdout
    assert "with the rule allow: shell(touch a.txt)" in shown


def test_a_scope_that_would_not_count_is_refused(bridle: Program):
    secret = {"name": "write", "arguments": {"path": ".env", "content": "A=1\n"}}
    session = parked(bridle, secret)
    for scope in ("session", "rule"):
        done = bridle.run("approvals", "answer", session, "yes", "--scope", scope)
        assert done.returncode == 2 and "only be allowed once" in done.stderr
    line = {"name": "shell", "arguments": {"command": "touch a && touch b"}}
    session = parked(bridle, line, name="line")
    done = bridle.run("approvals", "answer", session, "yes", "--scope", "rule")
    assert done.returncode == 2 and "no rule would match this call" in done.stderr
    no = bridle.run("approvals", "answer", session, "no", "--scope", "rule")
    assert no.returncode == 2 and "only for yes" in no.stderr


def test_what_the_model_asks_is_answered_with_a_word(bridle: Program):
    ask = {"name": "ask_user", "arguments": {"question": "Which?", "options": ["x", "y"]}}
    session = parked(bridle, ask)
    assert "▸ ask_user Which?" in bridle.run("approvals", "list").stdout
    done = bridle.run("approvals", "answer", session, "yes", "--word", "2")
    assert "  1. x\n  2. y\n" in done.stderr
    go_on(bridle, session)
    assert "The person answered: y" in bridle.run("sessions", "show", session).stdout
