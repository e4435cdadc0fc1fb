"""`bridle` at a real terminal: the first picture, what is typed ahead, and every way out."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pytest

from tui.rig import call, script, workspace_in

SECONDS = 240.0
_MOVES = re.compile(r"\x1b\[[0-9;?<>=$]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07")


class Terminal:
    """A terminal of 90 columns and 24 rows in which `bridle` runs."""

    def __init__(self, tmp_path, *arguments, environ=None, size=(90, 24)):
        self.said = b""
        self.code = None
        program = [sys.executable, "-m", "bridle", *arguments]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(workspace_in(tmp_path))
            os.execve(
                program[0], program, {**os.environ, "TERM": "xterm-256color"} | (environ or {})
            )
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    @property
    def shown(self):
        return _MOVES.sub(" ", self.said.decode("utf-8", "replace"))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                more = os.read(self.fd, 65536)
            except OSError:  # it has left
                return False
            self.said += more
            return bool(more)
        return True

    def until(self, words, times=1):
        end = time.monotonic() + SECONDS
        while self.shown.count(words) < times:
            assert time.monotonic() < end, f"{words!r} is not in:\n{self.shown}"
            assert self.read(0.2), f"it left, and {words!r} is not in:\n{self.shown}"

    def end(self):
        """Wait until it has left; the exit code."""
        end = time.monotonic() + SECONDS
        while self.code is None:
            assert time.monotonic() < end, f"it does not leave:\n{self.shown}"
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        while self.read(0) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.code

    def is_sane(self):
        """Echo and lines as before, the usual screen, pastes as they come, the mouse let go."""
        flags = termios.tcgetattr(self.fd)[3]
        last = dict(re.findall(rb"\x1b\[\?(\d+)([hl])", self.said))
        modes = (b"1049", b"2004", b"1000", b"1003", b"1006")
        off = all(last.get(mode, b"l") == b"l" for mode in modes)
        return bool(flags & termios.ECHO and flags & termios.ICANON) and off

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Held:
    """A start that goes no further than to the import of that module, until `go` is there."""

    def __init__(self, tmp_path, module):
        slow, self._reached, self.go = (tmp_path / name for name in ("slow", "reached", "go"))
        slow.mkdir()
        self.environ = {"PYTHONPATH": str(slow)}
        (slow / "sitecustomize.py").write_text(
            "import sys, time, pathlib\n"
            "class Late:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {module!r}:\n"
            f"            pathlib.Path({str(self._reached)!r}).touch()\n"
            f"            while not pathlib.Path({str(self.go)!r}).exists():\n"
            "                time.sleep(0.01)\n"
            "sys.meta_path.insert(0, Late())\n"
        )

    def wait(self, terminal):
        """Until it is there."""
        while not self._reached.exists():
            assert terminal.read(0.05), f"it left:\n{terminal.shown}"


@pytest.fixture
def at(tmp_path):
    """Opens `bridle` with a scripted model; whatever is left running is ended."""
    opened = []

    def open_it(*replies, arguments=(), **more):
        model = script(tmp_path, *(replies or ({"text": "Hello."},)))
        terminal = Terminal(tmp_path, "-m", model, *arguments, **more)
        opened.append(terminal)
        return terminal

    yield open_it
    for terminal in opened:
        terminal.close()


def test_the_first_picture_is_one_whole_also_where_the_terminal_answers_no_question(at):
    terminal = at()
    terminal.until("F1 shows the keys")
    begun, drawn = terminal.said.find(b"\x1b[?2026h"), terminal.said.find(b"F1 shows the keys")
    assert 0 < begun < drawn


def test_what_is_typed_ahead_is_in_the_composer_and_leaving_says_how_to_go_on(at):
    """S10"""
    terminal = at({"text": "Hello to you."})
    terminal.until("opening")  # the curtain: nothing heavy is imported yet
    terminal.type("early bird\r")
    terminal.until("Hello to you.")
    terminal.until("early bird")
    terminal.type("\x03")
    terminal.until("again to quit")
    terminal.type("\x03")
    assert terminal.end() == 0
    assert re.search(r"To continue: bridle --resume \S+", terminal.shown)
    assert terminal.is_sane()


def test_ctrl_c_behind_the_curtain_gives_the_terminal_back(at, tmp_path):
    held = Held(tmp_path, "bridle.cli.full_screen")
    terminal = at(environ=held.environ)
    held.wait(terminal)
    terminal.until("opening")
    terminal.type("\x03")
    terminal.type("\x03")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert terminal.is_sane()
    assert "Traceback" not in terminal.shown


def test_an_end_that_is_asked_for_behind_the_curtain_gives_the_terminal_back(at, tmp_path):
    held = Held(tmp_path, "bridle.cli.full_screen")
    terminal = at(environ=held.environ)
    held.wait(terminal)
    terminal.until("opening")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.end() == 130
    assert terminal.is_sane()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_settles_what_runs_and_says_how_to_go_on(at, tmp_path, number):
    slow = call("shell", command="echo begun; sleep 100")
    terminal = at(slow, {"text": "never"}, arguments=("--yes",))
    terminal.until("scripted")
    terminal.type("go\r")
    terminal.until("begun", 2)
    os.kill(terminal.pid, number)
    assert terminal.end() == 130
    assert "To continue: bridle --resume" in terminal.shown
    assert terminal.is_sane()
    (log,) = (tmp_path / "state/sessions").rglob("*.jsonl")
    assert '"turn_end"' in log.read_text().splitlines()[-1]


def test_a_terminal_that_is_closed_leaves_a_settled_session(at, tmp_path):
    terminal = at(call("shell", command="echo begun; sleep 100"), arguments=("--yes",))
    terminal.until("scripted")
    terminal.type("go\r")
    terminal.until("begun", 2)
    pid = terminal.pid
    os.close(terminal.fd)
    os.waitpid(pid, 0)
    terminal.code, terminal.fd = 0, os.open(os.devnull, os.O_RDONLY)
    (log,) = (tmp_path / "state/sessions").rglob("*.jsonl")
    assert '"turn_end"' in log.read_text().splitlines()[-1]


def test_a_screen_that_breaks_gives_the_terminal_back_and_says_how_to_go_on(at, tmp_path):
    breaks = tmp_path / "breaks"
    breaks.mkdir()
    (breaks / "sitecustomize.py").write_text(
        "import sys\n"
        "class Late:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pygments.lexers.python':\n"
        "            raise RuntimeError('the painter is ill')\n"
        "sys.meta_path.insert(0, Late())\n"
    )
    terminal = at({"text": "```python\nx = 1\n```"}, environ={"PYTHONPATH": str(breaks)})
    terminal.until("scripted")
    terminal.type("go\r")
    assert terminal.end() == 1
    assert "internal error" in terminal.shown
    assert "the painter is ill" in terminal.shown
    assert "To continue: bridle --resume" in terminal.shown
    assert "Traceback" not in terminal.shown
    assert terminal.is_sane()


def test_a_session_is_taken_up_again_where_it_was(at):
    first = at({"text": "Hello once."})
    first.until("scripted")
    first.type("hi\r")
    first.until("Hello once.")
    first.type("\x04")
    assert first.end() == 0
    session = re.search(r"--resume (\S+)", first.shown)[1]
    second = at(arguments=("--resume", session))
    second.until("Hello once.")
    second.type("\x04")
    assert second.end() == 0


def test_who_leaves_before_the_session_is_open_is_told_how_to_go_on_all_the_same(at, tmp_path):
    first = at({"text": "Hello once."})
    first.until("scripted")
    first.type("hi\r")
    first.until("Hello once.")
    first.type("\x04")
    assert first.end() == 0
    session = re.search(r"--resume (\S+)", first.shown)[1]
    held = Held(tmp_path, "bridle.cli.local_backend")
    second = at(arguments=("--resume", session), environ=held.environ)
    held.wait(second)
    second.type("\x03")
    second.until("again to quit")
    second.type("\x03")
    held.go.touch()
    assert second.end() == 0
    assert f"To continue: bridle --resume {session}" in second.shown
    assert second.is_sane()


def test_what_cannot_be_opened_is_said_on_the_usual_screen(at):
    terminal = at(arguments=("--resume", "nothing-like-that"))
    assert terminal.end() == 2
    assert "nothing-like-that" in terminal.shown
    assert terminal.is_sane()


def test_a_plain_terminal_is_sent_to_the_repl(at):
    terminal = at(environ={"TERM": "dumb"})
    assert terminal.end() == 2
    assert "bridle repl" in terminal.shown
