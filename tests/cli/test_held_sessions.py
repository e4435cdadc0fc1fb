"""A session that another process holds: prompts, stops and answers reach it from here (S9, A8)."""

import json
import os
import pwd
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli_program import Program, Terminal, records

WRITE = {"calls": [{"name": "write", "arguments": {"path": "b.txt", "content": "b\n"}}]}


def shell(command: str) -> dict:
    return {"calls": [{"name": "shell", "arguments": {"command": command}}]}


@contextmanager
def held(
    bridle: Program, *replies: dict | str, mode: str = "auto"
) -> Iterator[tuple[Terminal, str]]:
    """A REPL that has had one turn and waits at its prompt; the terminal, and the session's id."""
    model = bridle.script("Ready.", *replies)
    with bridle.terminal("repl", "--mode", mode, "-m", model) as terminal:
        terminal.expect("❯ ")
        terminal.type("hello\n")
        terminal.expect("Ready.")
        terminal.expect("❯ ")
        yield terminal, bridle.logs()[0].parent.name


def data(bridle: Program, kind: str) -> list[dict]:
    return [one for one in records(bridle.logs()[0]) if one["type"] == kind]


def fifo(bridle: Program, name: str = "said") -> Path:
    """A pipe in the workspace: a command may write nowhere else."""
    path = bridle.workspace / name
    os.mkfifo(path)
    return path


def test_a_prompt_for_a_held_session_runs_there_and_is_shown_here(bridle: Program):
    with held(bridle, shell("echo made > made.txt"), "Made.") as (terminal, session):
        done = bridle.run("run", "--resume", session, "make", "it", USER="ada")
        assert (done.returncode, done.stdout) == (0, "Made.\n")
        assert "which has the session open" in done.stderr
        assert "▸ shell echo made > made.txt" in done.stderr and "2 steps · 1 call" in done.stderr
        terminal.expect("make it")
        terminal.expect("(ada)")
        terminal.expect("Made.")
        terminal.expect("❯ ")
        again = bridle.run("run", "--resume", session, "again", "--json")
        lines = [json.loads(line) for line in again.stdout.splitlines()]
        assert lines[-1]["data"]["type"] == "turn_end"
        assert set(map(json.dumps, lines)) <= {
            json.dumps(json.loads(line)) for line in bridle.logs()[0].read_text().splitlines()
        }
    (_, sent, _) = data(bridle, "user_prompt")
    assert (sent["content"], sent["by"], sent["when"]) == ("make it", "ada", "queue")
    assert len(data(bridle, "session_start")) == 1


def test_send_says_who_takes_it_and_waits_for_nothing(bridle: Program):
    with held(bridle, "One.") as (terminal, session):
        done = bridle.run("sessions", "send", session, "go", "--by", "ada")
        assert done.returncode == 0 and "it runs after the current turn" in done.stdout
        terminal.expect("One.")
        terminal.expect("❯ ")
        terminal.type("/quit\n")
        assert terminal.end()[0] == 0
    waits = bridle.run("sessions", "send", session, "later", "--json")
    assert json.loads(waits.stdout)["holder"] == ""
    bridle.run("sessions", "send", session, "and later")
    model = bridle.script("Two.", "Three.", name="after")
    done = bridle.run("run", "--resume", session, "-m", model)
    assert (done.returncode, done.stdout) == (0, "Two.\nThree.\n")
    sent = [one["content"] for one in data(bridle, "user_prompt")]
    assert sent == ["hello", "go", "later", "and later"]


def test_what_is_sent_to_a_run_is_done_before_it_ends_and_is_not_its_answer(bridle: Program):
    said, on = fifo(bridle), fifo(bridle, "on")
    model = bridle.script(shell("echo up > said; cat on"), "First.", "Second.")
    with bridle.start("run", "go", "--yes", "-m", model) as process:
        assert said.read_text() == "up\n"
        session = bridle.logs()[0].parent.name
        sent = bridle.run("sessions", "send", session, "and then", "--by", "ada")
        assert sent.returncode == 0
        while len(data(bridle, "user_prompt")) < 2:
            pass  # until the holder has written it down
        on.write_text("go\n")
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "First.\n")
    assert "❯ and then (ada)\n" in err and "Second.\n" in err
    assert [one["reason"] for one in data(bridle, "turn_end")] == ["done", "done"]


def test_stop_interrupts_the_turn_and_the_session_stays_usable(bridle: Program):
    """(S9)"""
    said = fifo(bridle)
    with held(bridle, shell("echo up > said; sleep 600"), "Still here.") as (terminal, session):
        bridle.run("sessions", "send", session, "sleep")
        assert said.read_text() == "up\n"
        done = bridle.run("sessions", "stop", session, "--by", "ada")
        assert done.returncode == 0 and done.stdout.startswith("asked process ")
        terminal.expect("interrupted before it finished")
        again = bridle.run("run", "--resume", session, "and now?")
        assert again.stdout == "Still here.\n"
    reasons = [one["reason"] for one in data(bridle, "turn_end")]
    assert reasons == ["done", "interrupted", "done"]
    free = bridle.run("sessions", "stop", session)
    assert free.returncode == 2 and "there is nothing to stop" in free.stderr


def test_bridle_stop_says_who_still_has_the_session_open_and_whether_it_was_at_work(
    bridle: Program,
):
    said = fifo(bridle)
    with held(bridle, shell("echo up > said; sleep 600"), "Still here.") as (terminal, session):
        rests = bridle.run("stop", session)
        assert rests.returncode == 0 and "is stopped" not in rests.stdout
        assert f"{session} was not running; process " in rests.stdout
        assert "still has it open" in rests.stdout
        bridle.run("sessions", "send", session, "sleep")
        assert said.read_text() == "up\n"
        works = bridle.run("stop", session)
        assert works.stdout.startswith("asked process ") and "is stopped" not in works.stdout
        assert f"to stop; it still has {session} open" in works.stdout
        terminal.expect("interrupted before it finished")
        assert json.loads(bridle.run("stop", session, "--json").stdout) == [session]


def test_ctrl_c_here_stops_the_turn_there_and_not_the_program(bridle: Program):
    said = fifo(bridle)
    with held(bridle, shell("echo up > said; sleep 600")) as (terminal, session):
        with bridle.start("run", "--resume", session, "sleep") as process:
            assert said.read_text() == "up\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
        assert process.returncode == 130 and "interrupted; the session is kept" in err
        terminal.expect("interrupted before it finished")
        terminal.expect("❯ ")
        terminal.type("/quit\n")
        assert terminal.end()[0] == 0


def test_a_prompt_whose_turn_is_cut_short_by_a_kill_of_the_other_process_fails_with_code_1(
    bridle: Program,
):
    """It is no mistake in the command line, which is what code 2 says."""
    said = fifo(bridle)
    with held(bridle, shell("echo up > said; sleep 600")) as (terminal, session):
        with bridle.start("run", "--resume", session, "sleep") as process:
            assert said.read_text() == "up\n"
            terminal.signal(signal.SIGKILL)
            _, err = process.communicate()
        assert process.returncode == 1, err
        assert "has ended; its turn was cut off" in err
        assert f"bridle run --resume {session}" in err


def test_ctrl_c_before_the_turn_leaves_what_somebody_else_runs_alone(bridle: Program):
    said, on = fifo(bridle), fifo(bridle, "on")
    command = "echo up > said; cat on"
    with held(bridle, shell(command), "First.", "Second.") as (terminal, session):
        terminal.type("sleep\n")
        assert said.read_text() == "up\n"
        with bridle.start("run", "--resume", session, "second") as process:
            assert process.stderr is not None
            assert "has the session open" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
        assert (process.returncode, "stays in the queue" in err) == (130, True)
        on.write_text("go\n")
        terminal.expect("First.")
        terminal.expect("Second.")
        terminal.expect("❯ ")  # what is told is not over yet
    assert [one["reason"] for one in data(bridle, "turn_end")] == ["done"] * 3


def test_an_answer_from_another_terminal_reaches_the_one_that_asks(bridle: Program):
    with held(bridle, WRITE, "Written.", mode="ask") as (terminal, session):
        terminal.type("write it\n")
        terminal.expect("/N] ")
        done = bridle.run("approvals", "answer", session, "yes", "--by", "ada")
        assert done.returncode == 0 and "sent to process" in done.stdout
        assert terminal.expect("allowed by ada").startswith("\n")  # a line of its own
        terminal.expect("Written.")
    (answer,) = data(bridle, "approval_answered")
    assert (answer["by"], answer["allowed"]) == ("ada", True)
    assert (bridle.workspace / "b.txt").read_text() == "b\n"


def test_who_answers_is_named_as_the_system_knows_them(bridle: Program):
    """Also where the environment names nobody."""
    with held(bridle, WRITE, WRITE, "Written.", mode="ask") as (terminal, session):
        terminal.type("write it\n")
        for environ in ({}, {"LOGNAME": "bo"}):
            terminal.expect("/N] ")
            assert bridle.run("approvals", "answer", session, "no", **environ).returncode == 0
        terminal.expect("Written.")
    assert [one["by"] for one in data(bridle, "approval_answered")] == [_me(), "bo"]


def _me() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without an entry
        return "me"


def test_what_needs_the_log_itself_leaves_a_held_session_alone(bridle: Program):
    with held(bridle) as (_, session):
        before = bridle.logs()[0].read_bytes()
        for arguments in (
            ["sessions", "rename", session, "x"],
            ["sessions", "tag", session, "x"],
            ["sessions", "rewind", session, "--turns", "1"],
            ["sessions", "delete", session, "--yes"],
            ["run", "--resume", session],
        ):
            done = bridle.run(*arguments)
            assert (done.returncode, done.stdout) == (2, ""), arguments
            assert done.stderr.startswith("bridle: session ")
        assert bridle.logs()[0].read_bytes() == before
        shown = bridle.run("sessions", "show", session)
        assert "❯ hello" in shown.stdout
