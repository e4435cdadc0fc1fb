"""Runs `python -m bridle` as a person would: in a process of its own, in a pipe or a terminal.

The process is forked from one that has read the libraries, where that changes nothing; `command` is
what starts one from nothing.
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import ConfigError
from bridle.workspace.sandbox import probe
from nursery import Forked, may_fork
from nursery import run as run_forked

_PATIENCE = 240.0  # seconds until a test that waits in vain gives up


# What a login shell's parent does: make the terminal the one that sends Ctrl-C.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Program:
    """The program, with a home, a state folder and a workspace that nobody else has."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.state = folder / "state"
        self.workspace = folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "BRIDLE_STATE": str(self.state),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONWARNINGS": "error",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bridle", *arguments]

    def run(
        self, *arguments: str | bytes, stdin: bytes | None = None, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run to the end in pipes; without stdin there is none to read."""
        environ = self.environ | environ
        rest = {"cwd": self.workspace, "timeout": _PATIENCE}
        if may_fork(environ):
            words = ("bridle", *arguments)
            done = run_forked(words, environ, stdin=stdin, big=_is_big(words), **rest)
        else:
            none = subprocess.DEVNULL if stdin is None else None
            words = [*self.command(), *arguments]
            done = subprocess.run(
                words, input=stdin, stdin=none, capture_output=True, env=environ, **rest
            )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start it in pipes, for those who send signals."""
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        streams = {"stdin": none, "stdout": pipe, "stderr": pipe, "text": True}
        return self._process(arguments, cwd=self.workspace, **streams)

    def _process(
        self, arguments: tuple[str, ...], *, terminal: bool = False, **rest: Any
    ) -> "subprocess.Popen[Any]":
        if may_fork(self.environ):
            words = ("bridle", *arguments)
            return Forked(words, self.environ, terminal=terminal, big=_is_big(words), **rest)
        words = self.command(*arguments)
        if terminal:
            words = [sys.executable, "-SIc", _TAKE_TERMINAL, *words]
            rest["start_new_session"] = True
        return subprocess.Popen(words, env=self.environ, **rest)

    @contextmanager
    def terminal(self, *arguments: str, columns: int = 100) -> Iterator["Terminal"]:
        """Start it in a terminal of its own."""
        handle, inside = pty.openpty()
        fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        streams = {"stdin": inside, "stdout": inside, "stderr": inside}
        process = self._process(arguments, terminal=True, cwd=self.workspace, **streams)
        os.close(inside)
        terminal = Terminal(process, handle)
        try:
            yield terminal
        finally:
            terminal.close()

    def script(self, *replies: dict[str, Any] | str, name: str = "script", **more: Any) -> str:
        """A scripted model with these replies; its name for `--model`."""
        path = self.home / f"{name}.json"
        path.write_text(json.dumps({"replies": list(replies), **more}))
        return f"scripted:{path}"

    def logs(self) -> list[Path]:
        """Every session's log, in the order in which they began: ids tell only the second."""
        return sorted(self.state.glob("sessions/*/log.jsonl"), key=_beginning)

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        """The records of that type in the newest session's log."""
        return [one for one in records(self.logs()[-1]) if one["type"] == kind]

    def results(self) -> list[dict[str, Any]]:
        """The results of the newest session's tool calls."""
        return [one["result"] for one in self.recorded("message") if one["role"] == "tool"]

    def use_sandbox(self, level: str) -> str:
        """Run commands at that level; skip the test if this machine does not have it."""
        try:
            probe(level)
        except ConfigError as error:
            pytest.skip(error.message)
        self.environ["BRIDLE_SANDBOX"] = level
        return level


def _is_big(words: tuple[str | bytes, ...]) -> bool:
    """Does it need what takes long to read: servers, and the protocols of others?"""
    return any(one in words for one in ("serve", "mcp", "acp", "--agent"))


def _beginning(log: Path) -> tuple[bytes, Path]:
    with log.open("rb") as file:
        found = re.search(rb'"timestamp":"([^"]+)"', file.read(200))
    return (found[1] if found else b"", log)


def records(log: Path) -> list[dict[str, Any]]:
    """What a log says that somebody may be writing to: its whole lines."""
    whole, _, _ = log.read_bytes().rpartition(b"\n")
    return [json.loads(line)["data"] for line in whole.splitlines()]


class Terminal:
    """A program in a terminal: what it shows is read, what is typed is sent."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int) -> None:
        self._process = process
        self._handle = handle
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.seen = ""
        self.everything = ""

    def type(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def expect(self, text: str) -> str:
        """Read until the text has been shown; everything that was shown before it."""
        deadline = time.monotonic() + _PATIENCE
        while text not in self.seen:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was never shown, but:\n{self.seen}")
        before, _, self.seen = self.seen.partition(text)
        return before

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Read until the program is over; its exit code and the rest of what it showed."""
        deadline = time.monotonic() + _PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(_PATIENCE), self.seen

    def hang_up(self) -> int:
        """Close the terminal, as a window is closed; the program's exit code."""
        os.close(self._handle)
        self._handle = -1
        return self._process.wait(_PATIENCE)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._handle >= 0:
            os.close(self._handle)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._handle], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"nothing more was shown after:\n{self.seen}")
        try:
            data = os.read(self._handle, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            return False
        text = self._decode(data).replace("\r", "")
        self.seen += text
        self.everything += text
        return bool(data)
