"""Plan mode from end to end (P4): nothing changes until a person agrees; and questions to them."""

import re
import shlex

import pytest
from cli_program import Program

from bridle.cli.approval_prompt import answer_prompt, full_text, is_question, parse_answer
from bridle.cli.style import Paint
from bridle.events import ApprovalAsked, ModeChanged, ToolResultEvent, TurnEnded
from bridle.messages import ToolCall
from bridle.protocols.session import Answer
from bridle.stores.reader import SessionFolder

PLAN = "# Plan\n\n1. write `a.txt`\n2. look at it"
WRITE = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]}
SHOW = {"calls": [{"name": "exit_plan_mode", "arguments": {"plan": PLAN}}]}
QUESTION = {"question": "Which one?", "options": ["tabs", "spaces"]}
ASKS = {"calls": [{"name": "ask_user", "arguments": QUESTION}]}


def asked(name, **arguments):
    return ApprovalAsked(ToolCall("c", name, arguments), "shown")


def plain(name, **arguments):
    request, paint = asked(name, **arguments), Paint(False)
    text = f"{full_text([request], paint, 40)}\n{answer_prompt(request)}"
    return text.split("\n")


def test_a_plan_is_shown_whole_as_markdown_with_a_mark_before_each_line():
    """P4: leaving plan mode passes through the person."""
    assert plain("exit_plan_mode", plan=f"{PLAN}\n\n\x1b[2J? Go ahead with this plan?") == [
        "? Go ahead with this plan?",
        "  │ # Plan",
        "  │",
        "  │ 1. write `a.txt`",
        "  │ 2. look at it",
        "  │",
        "  │ \\x1b[2J? Go ahead with this plan?",
        "  [y] Yes  [y WORDS] Yes, with changes  [n] Keep planning  or say what is wrong with it",
        "  [y/N] ",
    ]


def test_a_question_has_numbered_options_and_long_words_are_folded():
    assert plain("ask_user", question="w" * 50, options=["tabs", "spa\nces"]) == [
        "? A question for you",
        f"  │ {'w' * 34}",
        f"  │ ↪ {'w' * 16}",
        "  1. tabs",
        "  2. spa ces",
        "  Type a number, or other words; an empty line leaves it unanswered.",
        "  > ",
    ]
    closed = plain("ask_user", question="?", options=["a", "b"], free_text=False)
    assert closed[-2] == "  Type a number; an empty line leaves it unanswered."
    assert (
        plain("ask_user", question="?")[-2]
        == "  Type your answer; an empty line leaves it unanswered."
    )


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", Answer(True)),
        (" YES ", Answer(True)),
        ("go", Answer(True)),
        ("y skip the tests", Answer(True, word="skip the tests")),
        ("yes, but no tests", Answer(True, word="but no tests")),
        ("", Answer(False)),
        (None, Answer(False)),
        ("n", Answer(False)),
        ("no: too risky", Answer(False, word="too risky")),
        ("go back and read first", Answer(False, word="go back and read first")),
        ("yesterday it was fine", Answer(False, word="yesterday it was fine")),
        ("and the docs?", Answer(False, word="and the docs?")),
    ],
)
def test_a_plan_is_agreed_to_by_a_yes_and_by_nothing_else(typed, answer):
    assert parse_answer(asked("exit_plan_mode", plan=PLAN), typed) == answer


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2", Answer(True, word="spaces")),
        ("3", Answer(True, word="3")),
        ("0", Answer(True, word="0")),
        ("no", Answer(True, word="no")),
        ("neither", Answer(True, word="neither")),
        ("9" * 5000, Answer(True, word="9" * 5000)),
        ("  ", Answer(False)),
        (None, Answer(False)),
    ],
)
def test_a_question_is_answered_by_a_number_or_by_words(typed, answer):
    assert parse_answer(asked("ask_user", **QUESTION), typed) == answer


def test_other_calls_are_no_questions_of_this_kind():
    found = [is_question(asked(name)) for name in ("exit_plan_mode", "ask_user", "shell")]
    assert found == [True, True, False]


def events(bridle, kind):
    (log,) = bridle.logs()
    found = SessionFolder(bridle.state).read(log.parent.name)
    return [record.event for record in found if isinstance(record.event, kind)]


def results(bridle):
    return [one.output.text for one in events(bridle, ToolResultEvent)]


def test_after_go_the_same_turn_goes_on_in_the_mode_ask(bridle: Program):
    """P4."""
    model = bridle.script(WRITE, SHOW, WRITE, "all done")
    with bridle.terminal("run", "go", "--mode", "plan", "-m", model) as terminal:
        terminal.expect("Go ahead with this plan?")
        terminal.expect("1. write `a.txt`")
        terminal.expect("[y/N] ")
        assert not (bridle.workspace / "a.txt").exists()
        terminal.type("y in one go\n")
        terminal.expect("Allow write to a.txt?")  # the mode is ask now
        terminal.type("y\n")
        terminal.expect("all done")
        code, _ = terminal.end()
    assert code == 0
    assert (bridle.workspace / "a.txt").read_text() == "x\n"
    assert events(bridle, ModeChanged)[-1] == ModeChanged("ask", "plan", "the plan was agreed")
    assert [one.reason for one in events(bridle, TurnEnded)] == ["done"]
    first, second, _ = results(bridle)
    assert "plan mode only reads" in first
    assert second == "The plan was agreed; go ahead, with these changes: in one go"


def test_a_no_with_words_keeps_plan_mode_and_reaches_the_model(bridle: Program):
    """P4."""
    model = bridle.script(SHOW, WRITE, "as you like")
    with bridle.terminal("run", "go", "--mode", "plan", "-m", model) as terminal:
        terminal.expect("[y/N] ")
        terminal.type("keep it simpler\n")
        terminal.expect("as you like")
        assert terminal.end()[0] == 0
    first, second = results(bridle)
    assert first.endswith("keep it simpler")
    assert "plan mode only reads" in second
    assert not (bridle.workspace / "a.txt").exists()


def test_commands_that_only_read_run_in_plan_mode_and_others_do_not(bridle: Program):
    """P4: the gate sees to it."""
    (bridle.workspace / "b.txt").write_text("bee\n")
    commands = ["cat b.txt | wc -l", "touch a.txt", "cat b.txt > a.txt", "cat $(ls)"]
    calls = [{"name": "shell", "arguments": {"command": one}} for one in commands]
    model = bridle.script({"calls": calls}, "ok")
    done = bridle.run("run", "go", "--mode", "plan", "-m", model)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    first, *others = results(bridle)
    assert first.startswith("1\n")
    assert ["plan mode only reads" in one for one in others] == [True] * 3
    assert not (bridle.workspace / "a.txt").exists()


def test_without_a_person_the_plan_is_shown_and_it_is_said_that_nobody_agreed(bridle: Program):
    """P4: silence is no agreement."""
    done = bridle.run("run", "go", "--mode", "plan", "-m", bridle.script(SHOW, WRITE, "I stop"))
    assert (done.returncode, done.stdout) == (3, "I stop\n")
    assert "  │ 1. write `a.txt`\n" in done.stderr
    assert "no one was available to give it; nothing was changed" in done.stderr
    assert "--on-ask park" in done.stderr
    assert not (bridle.workspace / "a.txt").exists()


def test_a_parked_plan_is_agreed_to_later_and_the_turn_goes_on(bridle: Program):
    """P4."""
    model = bridle.script(SHOW, WRITE, "done")
    flags = ("--mode", "plan", "--on-ask", "park", "-m", model)
    done = bridle.run("run", "go", *flags)
    assert done.returncode == 3
    assert "the turn is parked" in done.stderr
    (log,) = bridle.logs()
    said = bridle.run("approvals", "answer", log.parent.name, "yes", "--word", "mind the gap")
    assert said.returncode == 0
    model = bridle.script(WRITE, "done")
    rules = ("--rule", "allow: write")
    done = bridle.run("run", "--resume", log.parent.name, "-m", model, *rules)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert results(bridle)[0].endswith("with these changes: mind the gap")
    assert (bridle.workspace / "a.txt").exists()


def test_a_question_is_put_at_the_terminal_and_the_answer_reaches_the_model(bridle: Program):
    with bridle.terminal("run", "go", "-m", bridle.script(ASKS, "as you wish")) as terminal:
        terminal.expect("Which one?")
        terminal.expect("spaces\n")
        terminal.expect("> ")
        terminal.type("2\n")
        terminal.expect("as you wish")
        assert terminal.end()[0] == 0
    assert results(bridle) == ["The person answered: spaces"]


def test_in_the_repl_plan_is_a_word_and_what_was_agreed_ends_it(bridle: Program):
    """P4."""
    model = bridle.script(SHOW, "planned", "talked")
    with bridle.terminal("repl", "-m", model) as terminal:
        terminal.expect("❯ ")
        terminal.type("/plan make it so\n")
        terminal.expect("Mode plan: reads and plans; changes nothing.")
        terminal.expect("[y/N] ")
        terminal.type("y\n")
        terminal.expect("planned")
        terminal.expect("❯ ")
        terminal.type("/mode\n")
        terminal.expect("ask\n")
        terminal.expect("❯ ")
        terminal.type("/mode plan\n")
        terminal.expect("plan\n")
        terminal.type("/quit\n")
        terminal.end()


def test_a_session_in_plan_mode_stays_in_it_until_somebody_says_otherwise(bridle: Program):
    """P4: also in another process; what is asked for by name comes first."""
    bridle.run("run", "go", "--mode", "plan", "-m", bridle.script("hm"))
    bridle.run("run", "--continue", "go", "-m", bridle.script(WRITE, "ok"))
    assert "plan mode only reads" in results(bridle)[-1]
    bridle.run("run", "--continue", "go", "--yes", "-m", bridle.script(WRITE, "ok"))
    assert (bridle.workspace / "a.txt").exists()


def test_how_a_parked_question_is_answered_is_said(bridle: Program):
    done = bridle.run("run", "go", "--on-ask", "park", "-m", bridle.script(ASKS, "Done."))
    (session,) = (log.parent.name for log in bridle.logs())
    assert done.returncode == 3
    (said,) = re.findall(r"Answer with `bridle (.*?)`", done.stderr)
    assert said.endswith(" yes --word 'YOUR ANSWER'")
    assert f"→ bridle {said}" in bridle.run("approvals", "list").stdout
    words = shlex.split(said.replace("YOUR ANSWER", "spaces"))
    assert bridle.run(*words).returncode == 0
    done = bridle.run("run", "--resume", session, "-m", bridle.script("Done."))
    assert (done.returncode, results(bridle)[-1]) == (0, "The person answered: spaces")
