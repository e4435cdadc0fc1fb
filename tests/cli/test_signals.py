"""Signals, sent to the real program: the turn ends, its commands end, the log is whole."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from cli_program import Program

ENDING = [signal.SIGTERM, signal.SIGHUP]


def sleeping(bridle: Program) -> tuple[str, Path]:
    """A model whose command says its number and then sleeps; where it says it."""
    said = bridle.home / "said"
    os.mkfifo(said)
    line = f"sleep 600 & echo $! $$ > {said}; wait"
    call = {"name": "shell", "arguments": {"command": line}}
    return bridle.script({"calls": [call]}, "Awake."), said


def runs(number: int) -> bool:
    """Is there such a process, and is it more than a zombie?"""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def ends(bridle: Program) -> list[tuple[str, str]]:
    """How the last records of each log end."""
    last = [json.loads(log.read_text().splitlines()[-1])["data"] for log in bridle.logs()]
    return [(data["type"], data.get("reason", "")) for data in last]


def numbers(said: Path) -> list[int]:
    """The command's processes, once they run."""
    return [int(number) for number in said.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_a_signal_interrupts_a_run_and_ends_its_commands(bridle: Program, number: signal.Signals):
    model, said = sleeping(bridle)
    with bridle.start("run", "sleep", "--yes", "-m", model) as process:
        commands = numbers(said)
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "interrupted; the session is kept" in err
    assert [runs(one) for one in commands] == [False, False]
    assert ends(bridle) == [("turn_end", "interrupted")]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_repl_in_the_middle_of_a_turn(bridle: Program, number: signal.Signals):
    model, said = sleeping(bridle)
    with bridle.terminal("repl", "--yes", "-m", model) as terminal:
        terminal.expect("❯ ")
        terminal.type("sleep\n")
        commands = numbers(said)
        terminal.signal(number)
        terminal.expect("interrupted")
        assert terminal.end()[0] == 130
    assert [runs(one) for one in commands] == [False, False]
    assert ends(bridle) == [("turn_end", "interrupted")]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_repl_that_waits_for_a_line(bridle: Program, number: signal.Signals):
    with bridle.terminal("repl", "-m", bridle.script("ok")) as terminal:
        terminal.expect("❯ ")
        terminal.signal(number)
        assert terminal.end()[0] == 130


@pytest.mark.parametrize("face", ["run", "repl"])
def test_a_closed_terminal_ends_the_commands_and_keeps_the_session(bridle: Program, face: str):
    model, said = sleeping(bridle)
    prompt = ["sleep"] if face == "run" else []
    with bridle.terminal(face, *prompt, "--yes", "-m", model) as terminal:
        if not prompt:
            terminal.expect("❯ ")
            terminal.type("sleep\n")
        commands = numbers(said)
        assert terminal.hang_up() == 130
    assert [runs(one) for one in commands] == [False, False]
    assert ends(bridle) == [("turn_end", "interrupted")]


def test_who_was_told_to_ignore_a_closed_terminal_does(bridle: Program):
    model, said = sleeping(bridle)
    command = ["nohup", *bridle.command("run", "sleep", "--yes", "-m", model)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=bridle.workspace,
        env=bridle.environ,
    ) as process:
        sleeper, _ = numbers(said)
        process.send_signal(signal.SIGHUP)
        os.kill(sleeper, signal.SIGKILL)  # the command ends, and the turn goes on
        out, _ = process.communicate()
    assert (process.returncode, out) == (0, b"Awake.\n")
