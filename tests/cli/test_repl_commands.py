"""The REPL has every command of the table, in plain lines (A9, A12, P4)."""

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from cli_program import Program

from bridle.presentation.commands import TABLE
from bridle.tui.slash.commands import COMMANDS

WRITE = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "new\n"}}]}
READ = {"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}
SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}


def told(bridle: Program, *lines: str, replies: tuple = ("ok",) * 4, flags=()) -> str:
    """What a REPL says besides its answers when it is given these lines."""
    text = "".join(f"{line}\n" for line in lines).encode()
    done = bridle.run("repl", "-m", bridle.script(*replies), *flags, stdin=text)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_every_command_of_the_table_does_something_in_the_repl():
    """A9: one table; what is for the screen alone says so."""
    assert set(COMMANDS) == {one.name for one in TABLE if one.where != "screen"}


def test_the_mode_is_true_and_shown_before_the_first_prompt(bridle: Program):
    """P4: `/mode auto` before anything was said."""
    said = told(
        bridle, "/mode", "/mode auto", "/mode", "go", "/new", "/mode", replies=(SHELL, "ok")
    )
    assert (bridle.workspace / "made.txt").read_text() == "made\n"
    lines = (line for line in said.splitlines() if not line.startswith("  ◆"))
    modes = [line for line in lines if line in ("ask", "auto") or "mode" in line.lower()]
    changed = "Mode auto: asks nothing; what is denied stays denied."
    assert modes == ["ask", changed, "auto", "A new session, mode ask.", "ask"]


def test_plan_mode_from_the_first_line_writes_nothing(bridle: Program):
    """P4"""
    said = told(bridle, "/plan write it", replies=(WRITE, "I may not."))
    assert "Mode plan: reads and plans; changes nothing." in said
    assert not (bridle.workspace / "a.txt").exists()


def test_help_is_the_table_and_tells_of_one(bridle: Program):
    said = told(bridle, "/help", "/help undo", "/help nonsense", "/copy")
    for one in TABLE:
        assert (f"  {one.spelled} " in said) == (one.where != "screen"), one.name
    assert said.count("/undo [TURN]") == 2
    assert "there is no command nonsense" in said
    assert "/copy works only on the full screen" in said


def test_help_breaks_a_long_line_between_words(bridle: Program):
    with bridle.terminal("repl", "-m", bridle.script("ok"), columns=44) as terminal:
        terminal.expect("❯ ")
        terminal.type("/help\n")
        shown = re.sub(r"\x1b\[[\d;]*[mK]", "", terminal.expect("❯ "))
    (row,) = re.findall(r"  /undo.*(?:\r?\n {10,}.*)+", shown)
    assert all(len(line) <= 44 for line in row.splitlines())
    assert next(one.meaning for one in TABLE if one.name == "undo") in " ".join(row.split())


def test_an_undo_is_shown_and_asked_about_first(bridle: Program):
    """A9"""
    file = bridle.workspace / "a.txt"
    file.write_text("old\n")
    lines = ("/undo", "go", "/undo", "n", "/mode", "/undo", "y", "/undo")
    said = told(bridle, *lines, replies=(READ, WRITE, "ok"), flags=("--mode", "edits"))
    assert "this session is empty" in said
    assert "a.txt  will be restored" in said and "  │ -new\n" in said
    assert said.count("Undo turn 1? This restores 1 file. [y/N]") == 2
    assert "Nothing was restored." in said and said.count("1 file put back") == 1
    assert file.read_text() == "old\n"


def test_an_undo_of_what_was_changed_since_is_refused(bridle: Program):
    file = bridle.workspace / "a.txt"
    file.write_text("old\n")
    model = bridle.script(READ, WRITE, "ok")
    with bridle.terminal("repl", "-m", model, "--mode", "edits") as terminal:
        terminal.expect("❯ ")
        terminal.type("go\n")
        terminal.expect("❯ ")
        file.write_text("mine\n")
        terminal.type("/undo\n")
        terminal.expect("nothing was changed: a.txt changed since")
        terminal.expect("❯ ")
    assert file.read_text() == "mine\n"


def test_what_there_is_to_work_with_is_told(bridle: Program):
    said = told(bridle, "/tools", "/mcp", "/policy", "/budget", "/cost", "/doctor", "/theme")
    assert "  read " in said and "  shell " in said
    assert "the sizes of files.\n" in said and "`depth`" not in said  # what is for the model
    assert "No MCP server is set up here." in said
    assert "• mode: ask " in said
    assert "money, this session" in said and "no limit" in said
    assert "python" in said
    assert "This session uses scripted" in said and " default model " in said
    assert all(f"  {name}  " in said for name in ("auto", "dark", "light", "plain"))


def test_rules_and_grants_are_told(bridle: Program):
    """P4"""
    rule = ("--rule", "deny: shell(rm *)")
    said = told(bridle, "go", "a", "/policy", replies=(SHELL, "ok"), flags=rule)
    assert "  deny: shell(rm *)" in said
    assert "  allowed: " in said and "for this session" in said


def test_a_lower_budget_holds_and_a_higher_one_is_refused(bridle: Program):
    said = told(bridle, "go", "/budget 2.50", "/budget 3", "/budget x", "/theme x", "/theme plain")
    assert "may spend $2.50 in all" in said
    assert "can only be lowered" in said
    assert "x is not an amount of money" in said
    assert "there is no theme x" in said and "Theme plain, until you leave" in said


def test_a_command_of_one_s_own_is_a_prompt(bridle: Program):
    """A9: Markdown files of the user's; a folder's own count where it is trusted."""
    mine = bridle.home / ".config/bridle/commands"
    mine.mkdir(parents=True)
    (mine / "review.md").write_text("# Review something\n\nReview $ARGUMENTS, please.\n")
    (mine / "quit.md").write_text("never\n")
    theirs = bridle.workspace / ".bridle/commands"
    theirs.mkdir(parents=True)
    (theirs / "deploy.md").write_text("Deploy it.\n")
    said = told(bridle, "/help", "/review the tests", "/deploy")
    assert "  /review [WORDS]      Review something" in said
    assert "there is no command /deploy" in said
    data = [json.loads(line)["data"] for line in bridle.logs()[0].read_text().splitlines()]
    prompts = [one["content"] for one in data if one["type"] == "user_prompt"]
    assert prompts == ["# Review something\n\nReview the tests, please."]
    assert bridle.run("trust", "--yes").returncode == 0
    assert "there is no command" not in told(bridle, "/deploy")


@pytest.fixture
def background(bridle: Program):
    """The program; whatever it left in the background is ended."""
    try:
        yield bridle
    finally:
        for lock in bridle.state.glob("background/*/lock"):
            with suppress(OSError, ValueError):
                pid = int(lock.read_text())
                if b"bridle.cli.background_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)


def test_a_question_of_a_background_session_is_answered_from_another_repl(background: Program):
    """A12: approvals show wherever the person is."""
    done = background.run("run", "--detach", "go", "-m", background.script(SHELL, "Made."))
    session = done.stdout.strip()
    while not json.loads(background.run("approvals", "list", "--json").stdout):
        pass  # it has to come to its question first
    with background.terminal("repl", "-m", background.script("hi", name="other")) as terminal:
        terminal.expect("❯ ")
        terminal.type("hello\n")
        terminal.expect("1 approval needed in other sessions: /approvals")
        terminal.expect("❯ ")
        terminal.type("/approvals\n")
        terminal.expect("1 of 1 · go")
        terminal.expect("] ")
        terminal.type("y\n")
        terminal.expect("allowed")
        terminal.expect("❯ ")
        terminal.type(f"/resume {session}\n")
        terminal.expect("Resumed: go")
        terminal.expect("❯ ")
    assert (background.workspace / "made.txt").read_text() == "made\n"


def test_a_session_that_another_repl_holds_is_attached_to(bridle: Program):
    """A12, S8: two terminals, one session; what is asked can be answered in either."""
    with bridle.terminal("repl", "-m", bridle.script("One.", SHELL, "Made.")) as first:
        first.expect("❯ ")
        first.type("one\n")
        first.expect("One.")
        first.expect("❯ ")
        session = bridle.logs()[0].parent.name
        with bridle.terminal("repl", "-m", bridle.script("x", name="other")) as second:
            second.expect("❯ ")
            second.type(f"/resume {session}\n")
            second.expect("Resumed: one")
            second.expect("❯ ")
            second.type("make it\n")
            second.expect("$ echo made > made.txt")
            second.expect("] ")
            second.type("y\n")
            second.expect("Made.")
            second.expect("❯ ")
            first.expect("Made.")
    assert (bridle.workspace / "made.txt").read_text() == "made\n"
