"""Signals, sent to the real program: the turn ends, its commands end, the log is whole."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from cli_program import Program

from rig import a_mark, marked

ENDING = [signal.SIGTERM, signal.SIGHUP]


class Sleeping:
    """A model whose command says that it runs, and then sleeps; its processes bear a mark."""

    def __init__(self, bridle: Program) -> None:
        self.mark = a_mark()
        self._said = bridle.workspace / "said"
        os.mkfifo(self._said)
        line = f"sleep {self.mark} & echo up > said; wait"
        call = {"name": "shell", "arguments": {"command": line}}
        self.model = bridle.script({"calls": [call]}, "Awake.")

    def begun(self) -> None:
        """Wait until the command runs."""
        assert self._said.read_text() == "up\n"
        assert marked(self.mark) != []


def ends(bridle: Program) -> list[tuple[str, str]]:
    """How the last records of each log end."""
    last = [json.loads(log.read_text().splitlines()[-1])["data"] for log in bridle.logs()]
    return [(data["type"], data.get("reason", "")) for data in last]


def sleeper(mark: str) -> int:
    """The process that does nothing but sleep, once it does: bash goes on before that."""
    while not (found := marked(f"sleep\0{mark}\0")):
        pass
    (one,) = found
    return one


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_a_signal_interrupts_a_run_and_ends_its_commands(bridle: Program, number: signal.Signals):
    command = Sleeping(bridle)
    with bridle.start("run", "sleep", "--yes", "-m", command.model) as process:
        command.begun()
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "interrupted; the session is kept" in err
    assert marked(command.mark) == []
    assert ends(bridle) == [("turn_end", "interrupted")]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_repl_in_the_middle_of_a_turn(bridle: Program, number: signal.Signals):
    command = Sleeping(bridle)
    with bridle.terminal("repl", "--yes", "-m", command.model) as terminal:
        terminal.expect("❯ ")
        terminal.type("sleep\n")
        command.begun()
        terminal.signal(number)
        terminal.expect("interrupted")
        assert terminal.end()[0] == 130
    assert marked(command.mark) == []
    assert ends(bridle) == [("turn_end", "interrupted")]


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_repl_that_waits_for_a_line(bridle: Program, number: signal.Signals):
    with bridle.terminal("repl", "-m", bridle.script("ok")) as terminal:
        terminal.expect("❯ ")
        terminal.signal(number)
        assert terminal.end()[0] == 130


@pytest.mark.parametrize("face", ["run", "repl"])
def test_a_closed_terminal_ends_the_commands_and_keeps_the_session(bridle: Program, face: str):
    command = Sleeping(bridle)
    prompt = ["sleep"] if face == "run" else []
    with bridle.terminal(face, *prompt, "--yes", "-m", command.model) as terminal:
        if not prompt:
            terminal.expect("❯ ")
            terminal.type("sleep\n")
        command.begun()
        assert terminal.hang_up() == 130
    assert marked(command.mark) == []
    assert ends(bridle) == [("turn_end", "interrupted")]


def test_who_was_told_to_ignore_a_closed_terminal_does(bridle: Program):
    command = Sleeping(bridle)
    line = ["nohup", *bridle.command("run", "sleep", "--yes", "-m", command.model)]
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=bridle.workspace,
        env=bridle.environ,
    ) as process:
        command.begun()
        process.send_signal(signal.SIGHUP)
        os.kill(sleeper(command.mark), signal.SIGKILL)  # the command ends, and the turn goes on
        out, _ = process.communicate()
    assert (process.returncode, out) == (0, b"Awake.\n")


def test_who_presses_ctrl_c_again_and_again_is_out_whatever_is_still_waited_for(
    bridle: Program, tmp_path: Path
):
    """A server's name is looked up in a thread, which nothing can end; at the end it is joined."""
    never = (
        "import socket, sys, threading\n"
        "def getaddrinfo(*_, **__):\n"
        "    print('asked', file=sys.stderr, flush=True)\n"
        "    threading.Event().wait()\n"
        "socket.getaddrinfo = getaddrinfo\n"
    )
    tmp_path.joinpath("sitecustomize.py").write_text(never)
    bridle.environ |= {"PYTHONPATH": str(tmp_path), "BRIDLE_TOKEN": "a" * 40}
    with bridle.start("attach", "--plain", "http://server.invalid", "any") as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "asked\n"
            for _ in range(50):
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.3)
                    break
            assert process.poll() == 130
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


AGENT = """
import asyncio, pathlib, threading
from bridle.agents.base import AgentResponse

class Agent:
    async def execute(self, prompt, session, *, on_text_chunk=None, **callbacks):
        await on_text_chunk("begun\\n")
        await asyncio.Event().wait()

    async def cancel(self, session_id): ...

    async def shutdown(self):
        print("closing", flush=True)
        await asyncio.to_thread(threading.Event().wait)
"""


@pytest.mark.parametrize("second", [signal.SIGINT, *ENDING])
@pytest.mark.parametrize("turn", ["at rest", "while a turn runs"])
def test_a_second_signal_ends_a_repl_that_cannot_close_and_its_log_is_complete(
    bridle: Program, turn: str, second: signal.Signals
):
    bridle.workspace.joinpath("slow_agent.py").write_text(AGENT)
    with bridle.terminal("repl", "--agent", "slow_agent.py:Agent") as terminal:
        terminal.expect("❯ ")
        if turn == "while a turn runs":
            terminal.type("go\n")
            terminal.expect("begun")
        terminal.signal(signal.SIGTERM)
        terminal.expect("closing")
        terminal.signal(second)
        code, rest = terminal.end()
    assert (code, "Traceback" in rest) == (130, False)
    assert ends(bridle) == ([] if turn == "at rest" else [("turn_end", "interrupted")])
