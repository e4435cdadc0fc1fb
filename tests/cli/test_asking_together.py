"""Questions at a real terminal: several at once, a rule with its preview, plans and ask_user."""

import time
from typing import Any

from cli_program import Program, records

TOUCH = {"name": "shell", "arguments": {"command": "touch a.txt"}}


def writes(*names: str) -> dict[str, Any]:
    calls = [{"name": "write", "arguments": {"path": f"{n}.md", "content": n}} for n in names]
    return {"calls": calls}


def answers(bridle: Program) -> list[tuple[Any, ...]]:
    return [
        (one["callId"], one["allowed"], one.get("scope", "once"), one.get("word", ""))
        for one in records(bridle.logs()[-1])
        if one["type"] == "approval_answered"
    ]


def files(bridle: Program) -> list[str]:
    return sorted(one.name for one in bridle.workspace.iterdir())


def test_four_writes_are_one_question_and_numbers_choose_among_them(bridle: Program):
    model = bridle.script(writes("a", "b", "c", "d"), "Done.")
    with bridle.terminal("run", "go", "-m", model) as terminal:
        shown = terminal.expect("/N] ")
        assert "Allow these 4 calls?" in shown
        terminal.type("1,9\n")
        terminal.expect("numbers from 1 to 4")
        terminal.expect("/N] ")
        terminal.type("1,3\n")
        terminal.expect("Done.")
        assert terminal.end()[0] == 0
    assert files(bridle) == ["a.md", "c.md"]
    assert sorted(answers(bridle)) == [
        ("call_1", True, "once", ""),
        ("call_2", False, "once", ""),
        ("call_3", True, "once", ""),
        ("call_4", False, "once", ""),
    ]


def test_each_walks_through_them_one_by_one(bridle: Program):
    model = bridle.script(writes("a", "b"), "Done.")
    with bridle.terminal("run", "go", "-m", model) as terminal:
        terminal.expect("/N] ")
        terminal.type("each\n")
        assert "a.md" in terminal.expect("/N] ")
        terminal.type("y\n")
        assert "b.md" in terminal.expect("/N] ")
        terminal.type("rather in docs\n")
        terminal.expect("Done.")
        assert terminal.end()[0] == 0
    assert files(bridle) == ["a.md"]
    assert [one[1:] for one in answers(bridle)] == [
        (True, "once", ""),
        (False, "once", "rather in docs"),
    ]


def test_silence_is_a_no_to_all_of_them_and_counted_as_such(bridle: Program):
    model = bridle.script(writes("a", "b", "c"), "Done.")
    done = bridle.run("run", "go", "-m", model, "--on-ask", "prompt", stdin=b"")
    assert done.returncode == 3, done.stderr
    assert (files(bridle), [one[1] for one in answers(bridle)]) == ([], [False] * 3)
    assert done.stderr.count("Allow these ") == 1


def test_an_answer_from_elsewhere_to_one_of_them_stands(bridle: Program):
    model = bridle.script(writes("a", "b"), "Done.")
    with bridle.terminal("run", "go", "-m", model) as terminal:
        terminal.expect("/N] ")
        done = bridle.run("approvals", "answer", "call_2", "no", "--by", "ada")
        assert done.returncode == 0, done.stderr
        while not answers(bridle):  # the process that asks takes the letter in its own time
            time.sleep(0.02)
        terminal.type("y\n")
        terminal.expect("Done.")
        assert terminal.end()[0] == 0
    assert files(bridle) == ["a.md"]
    assert sorted(one[:2] for one in answers(bridle)) == [("call_1", True), ("call_2", False)]


def test_a_rule_is_previewed_then_written_and_holds_from_then_on(bridle: Program):
    rules = bridle.home / ".config" / "bridle" / "policy.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("# mine\nrules:\n  - deny: shell(curl *)  # never\n")
    model = bridle.script({"calls": [TOUCH]}, "First.", {"calls": [TOUCH]}, "Second.")
    with bridle.terminal("repl", "-m", model) as terminal:
        terminal.expect("❯ ")
        terminal.type("go\n")
        assert "rule: allow: shell(touch a.txt), in this folder" in terminal.expect("/r/N] ")
        terminal.type("y\n")
        terminal.expect("First.")
        terminal.expect("❯ ")
        terminal.type("again\n")
        shown = terminal.expect("/r/N] ")
        assert "similar calls were allowed once in this session" in shown
        terminal.type("r\n")
        shown = terminal.expect("Save this rule? [y/N] ")
        assert "in this folder alone: " in shown
        assert "It would have covered 1 of the last 1 call in this folder: shell touch" in shown
        terminal.type("n\n")
        terminal.expect("/r/N] ")
        terminal.type("r\n")
        terminal.expect("Save this rule? [y/N] ")
        terminal.type("y\n")
        terminal.expect("Second.")
    first, second, third, fourth, last = rules.read_text().splitlines()
    assert (first, second, last) == ("# mine", "rules:", "  - deny: shell(curl *)  # never")
    assert fourth == f"    in: '{bridle.workspace.resolve()}'"
    assert third.startswith("  - allow: 'shell(touch a.txt)'  # from an answer by ")
    after = bridle.run("run", "go", "-m", bridle.script({"calls": [TOUCH]}, "Third.", name="3"))
    assert (after.returncode, after.stdout) == (0, "Third.\n")
    other = bridle.home / "other"
    other.mkdir()
    model = bridle.script({"calls": [TOUCH]}, "Fourth.", name="4")
    bridle.run("run", "go", "-m", model, "-w", str(other))
    assert list(other.iterdir()) == []  # a rule of one folder says nothing in another


def test_a_rule_is_not_made_where_the_file_is_bad_by_then(bridle: Program):
    rules = bridle.home / ".config" / "bridle" / "policy.yaml"
    model = bridle.script({"calls": [TOUCH]}, "Done.")
    with bridle.terminal("run", "go", "-m", model) as terminal:
        terminal.expect("/r/N] ")
        rules.parent.mkdir(parents=True)
        rules.write_text("rules: [nonsense\n")
        terminal.type("r\n")
        assert "this is not YAML" in terminal.expect("/r/N] ")
        terminal.type("n\n")
        assert terminal.end()[0] == 0
    assert (rules.read_text(), files(bridle)) == ("rules: [nonsense\n", [])


def test_a_yes_with_a_word_runs_and_the_model_hears_the_word(bridle: Program):
    done = bridle.run(
        "run",
        "go",
        "-m",
        bridle.script({"calls": [TOUCH]}, "Done."),
        "--on-ask",
        "prompt",
        stdin=b"y, but only this one\n",
    )
    assert (done.returncode, files(bridle)) == (0, ["a.txt"])
    assert answers(bridle) == [("call_1", True, "once", "but only this one")]
    assert "[the person added: but only this one]" in bridle.logs()[0].read_text()


def test_a_question_of_the_model_is_answered_with_a_number(bridle: Program):
    ask = {"question": "Which?", "options": ["PostgreSQL", "SQLite"]}
    calls = [{"name": "ask_user", "arguments": ask}] * 2
    with bridle.terminal("run", "go", "-m", bridle.script({"calls": calls}, "Done.")) as terminal:
        assert "SQLite" in terminal.expect("> ")
        terminal.type("2\n")
        terminal.expect("> ")
        terminal.type("neither of them\n")
        terminal.expect("Done.")
        assert terminal.end()[0] == 0
    assert sorted(one[3] for one in answers(bridle)) == ["SQLite", "neither of them"]


def test_questions_that_waited_together_come_up_together(bridle: Program):
    model = bridle.script(writes("a", "b"))
    assert bridle.run("run", "go", "--on-ask", "park", "-m", model).returncode == 3
    session = bridle.logs()[-1].parent.name
    after = bridle.script("Done.", name="after")
    with bridle.terminal("run", "--resume", session, "-m", after) as terminal:
        assert "Allow these 2 calls?" in terminal.expect("/N] ")
        terminal.type("s\n")
        terminal.expect("Done.")
        assert terminal.end()[0] == 0
    assert files(bridle) == ["a.md", "b.md"]
    assert [one[1:3] for one in answers(bridle)] == [(True, "session")] * 2


def test_the_answers_to_several_can_be_typed_in_another_terminal(bridle: Program):
    model = bridle.script(writes("a", "b", "c"))
    assert bridle.run("run", "go", "--on-ask", "park", "-m", model).returncode == 3
    session = bridle.logs()[-1].parent.name
    with bridle.terminal("approvals", "answer", session, "--all") as terminal:
        terminal.expect("/N] ")
        terminal.type("7\n")
        terminal.expect("/N] ")
        terminal.type("2-3\n")
        terminal.expect("denied and allowed 3 requests")
        assert terminal.end()[0] == 0
    bridle.run("run", "--resume", session, "-m", bridle.script("Done.", name="after"))
    assert files(bridle) == ["b.md", "c.md"]
