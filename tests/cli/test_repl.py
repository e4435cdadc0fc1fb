"""`bridle repl`: prompts by line in a pipe and at a terminal (A9)."""

import fcntl
import json
import signal
from pathlib import Path

import pytest
from cli_program import Program

SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}
SLEEP = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}


def prompts(bridle: Program) -> list[list[str]]:
    """What was sent, by session."""
    found = []
    for log in bridle.logs():
        data = [json.loads(line)["data"] for line in log.read_text().splitlines()]
        found.append([one["content"] for one in data if one["type"] == "user_prompt"])
    return found


def test_each_line_of_a_pipe_is_a_prompt_of_one_session(bridle: Program):
    """(A9, REPL)"""
    model = bridle.script("One.", "Two.")
    done = bridle.run("repl", "-m", model, stdin=b"first\n\nsecond")
    assert (done.returncode, done.stdout) == (0, "One.\nTwo.\n")
    assert prompts(bridle) == [["first", "second"]]


@pytest.mark.parametrize("leave", ["/new", "/resume {}"])
def test_a_session_that_was_left_can_be_taken_up_elsewhere(bridle: Program, leave: str):
    bridle.run("run", "earlier", "-m", bridle.script("ok"))
    earlier = bridle.logs()[0]
    away = leave.format(earlier.parent.name)
    with bridle.terminal("repl", "-m", bridle.script("first", "second")) as terminal:
        for line, said in (("one", "first"), (away, away), ("two", "second")):
            terminal.expect("❯ ")
            terminal.type(f"{line}\n")
            terminal.expect(said)
        terminal.expect("❯ ")
        (left,) = [log for log in bridle.logs() if '"one"' in log.read_text()]
        (held,) = [log for log in bridle.logs() if '"two"' in log.read_text()]
        assert (is_free(left), is_free(held)) == (True, False)


def is_free(log: Path) -> bool:
    """Could another process take this session up?"""
    with log.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_triple_quotes_hold_several_lines_together(bridle: Program):
    model = bridle.script("ok", loop=True)
    lines = b'"""one\ntwo\n\nthree"""\n"""single"""\n"""\nopen\n'
    bridle.run("repl", "-m", model, stdin=lines)
    assert prompts(bridle) == [["one\ntwo\n\nthree", "single", "open"]]


def test_questions_are_asked_in_the_line_and_the_next_line_answers(bridle: Program):
    model = bridle.script(SHELL, "Made.", SHELL, "Not made.", SHELL, "Not made either.")
    lines = b"go\ny\ngo\nplease do not\ngo\n"
    done = bridle.run("repl", "-m", model, stdin=lines)
    assert done.stdout == "Made.\nNot made.\nNot made either.\n"
    assert (bridle.workspace / "made.txt").read_text() == "made\n"
    assert done.stderr.count("$ echo made > made.txt") == 3
    assert "please do not" in bridle.logs()[0].read_text()


def test_a_file_that_would_be_replaced_is_shown_as_a_change(bridle: Program):
    (bridle.workspace / "a.txt").write_text("one\ntwo\n")
    write = {"name": "write", "arguments": {"path": "a.txt", "content": "one\n2\n"}}
    read = {"name": "read", "arguments": {"path": "a.txt"}}
    model = bridle.script({"calls": [read]}, {"calls": [write]}, "No.")
    done = bridle.run("repl", "-m", model, stdin=b"go\nn\n")
    assert "  │ -two\n  │ +2\n" in done.stderr
    (bridle.workspace / "a.txt").write_text("x" * 300_000)
    done = bridle.run("repl", "-m", model, stdin=b"go\nn\n")
    assert "  │ + one\n  │ + 2\n" in done.stderr


def test_yes_for_the_session_is_asked_once(bridle: Program):
    model = bridle.script(SHELL, SHELL, "Made twice.")
    done = bridle.run("repl", "-m", model, stdin=b"go\na\n")
    assert done.stdout == "Made twice.\n"
    assert done.stderr.count("/N] ") == 1


def test_the_commands_of_the_repl(bridle: Program):
    model = bridle.script("ok", loop=True)
    other = bridle.script("other", name="other", loop=True)
    lines = f"hi\n/cost\n/new\nho\n/mode plan\n/mode nonsense\n/model {other}\nhey\n/model\n"
    lines += "/sessions\n/help\n/nonsense\n/resume\n/resume zzz\n /slash\n/quit\nnever\n"
    done = bridle.run("repl", "-m", model, stdin=lines.encode())
    assert (done.returncode, done.stdout) == (0, "ok\nok\nother\nother\n")
    assert sorted(prompts(bridle)) == [["hi"], ["ho", "hey", " /slash"]]
    for said in (
        "model requests                    1\n",
        "A new session, mode ask.\n",
        "Mode: plan\n",
        "bridle: there is no mode nonsense\n",
        "bridle: there is no command /nonsense\n",
        "bridle: /resume needs ID\n",
        "bridle: there is no session 'zzz'\n",
        "  /resume ID ",
    ):
        assert said in done.stderr


def test_a_session_can_be_taken_up_again(bridle: Program):
    model = bridle.script("ok", loop=True)
    bridle.run("repl", "-m", model, stdin=b"one\n")
    session = bridle.logs()[0].parent.name
    bridle.run("repl", "-m", model, stdin=f"two\n/resume {session}\nthree\n".encode())
    bridle.run("repl", "-m", model, "--resume", session, stdin=b"four\n")
    assert sorted(prompts(bridle)) == [["one", "three", "four"], ["two"]]


def test_what_fails_is_said_and_the_next_line_is_read(bridle: Program):
    fault = {"error": {"status": 401, "message": "bad key"}}
    model = bridle.script(fault, "Better.")
    done = bridle.run("repl", "-m", model, stdin=b"one\ncaf\xe9\n/model nonsense/x\ntwo\n")
    assert (done.returncode, done.stdout) == (0, "Better.\n")
    for said in ("bad key", "the line is not valid UTF-8", "there is no provider for"):
        assert said in done.stderr


def test_at_a_terminal_a_turn_streams_and_ctrl_d_leaves(bridle: Program):
    with bridle.terminal("repl", "-m", bridle.script("Hello, you.")) as terminal:
        terminal.expect("bridle")
        terminal.expect("❯ ")
        terminal.type("hi\n")
        terminal.expect("Hello, you.")
        terminal.expect("1 step")
        terminal.expect("❯ ")
        terminal.type("\x04")
        assert terminal.end()[0] == 0


def test_ctrl_c_interrupts_the_turn_and_the_session_goes_on(bridle: Program):
    with bridle.terminal("repl", "--yes", "-m", bridle.script(SLEEP, "Awake.")) as terminal:
        terminal.expect("❯ ")
        terminal.type("\x03")
        terminal.expect("Ctrl-D or /quit to quit")
        terminal.expect("❯ ")
        terminal.type("sleep\n")
        terminal.expect("▸")
        terminal.type("\x03")
        terminal.expect("interrupted")
        terminal.expect("❯ ")
        terminal.type("wake up\n")
        terminal.expect("Awake.")
        terminal.expect("❯ ")
        terminal.type("/quit\n")
        assert terminal.end()[0] == 0


def test_what_was_typed_ahead_does_not_answer_a_question(bridle: Program):
    replies = [{"delay": 0.3, **SHELL}, "Not made."]
    with bridle.terminal("repl", "-m", bridle.script(*replies)) as terminal:
        terminal.expect("❯ ")
        terminal.type("go\ny\n")
        terminal.expect("/N] ")
        terminal.type("\n")
        terminal.expect("Not made.")
    assert not (bridle.workspace / "made.txt").exists()


@pytest.mark.parametrize(
    "variable", [("NO_COLOR", "1"), ("TERM", "dumb"), ("BRIDLE_THEME", "plain")]
)
def test_a_terminal_without_colour_gets_none(bridle: Program, variable: tuple[str, str]):
    bridle.environ |= dict([variable])
    with bridle.terminal("repl", "-m", bridle.script(SHELL, "ok")) as terminal:
        terminal.expect("❯ ")
        terminal.type("go\n")
        terminal.expect("/N] ")
        terminal.type("n\n")
        terminal.expect("ok")
        terminal.expect("❯ ")
        terminal.type("\x04")
        code, _ = terminal.end()
        assert (code, "\x1b" in terminal.everything) == (0, False)


def test_run_at_a_terminal_streams_asks_and_takes_ctrl_c(bridle: Program):
    wait = {"calls": [{"name": "shell", "arguments": {"command": "touch x && sleep 600"}}]}
    model = bridle.script({"text": "Shall I?", **SHELL}, {**wait, "text": "Good."})
    with bridle.terminal("run", "go", "-m", model) as terminal:
        terminal.expect("Shall I?")
        terminal.expect("$ echo made > made.txt")
        terminal.expect("/N] ")
        terminal.type("y\n")
        terminal.expect("Good.")
        terminal.expect("sleep 600")
        terminal.expect("/N] ")
        terminal.type("\x03")
        terminal.expect("interrupted; the session is kept")
        terminal.expect("bridle run --resume ")
        assert terminal.end()[0] == 130
    assert (bridle.workspace / "made.txt").exists()


def test_twice_leaves_at_once(bridle: Program):
    with bridle.terminal("run", "go", "--yes", "-m", bridle.script(SLEEP)) as terminal:
        terminal.expect("▸")
        terminal.signal(signal.SIGINT)
        terminal.signal(signal.SIGINT)
        assert terminal.end()[0] == 130
