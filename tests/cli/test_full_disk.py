"""A disk that takes nothing more: said in a line of its own, by name, and never as a traceback."""

import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_program import Program

from bridle.cli.server_log import logged


@pytest.fixture(autouse=True)
def level():
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


def without_room(bridle: Program, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it where files cannot grow; the system only words that otherwise."""
    command = f"ulimit -f 0; exec {shlex.join(map(os.fsdecode, bridle.command(*arguments)))}"
    return subprocess.run(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=bridle.environ,
        cwd=bridle.workspace,
    )


def test_a_log_that_cannot_be_written_is_said_once_and_the_server_goes_on(capsys):
    with logged(Path("/dev/full")):
        for number in range(3):
            logging.getLogger("bridle.x").info("line %d", number)
    said = capsys.readouterr().err
    assert said == (
        "bridle: the log /dev/full cannot be written: No space left on device\n"
        "  → The server keeps running, and tries again with every line.\n"
    )


def test_a_log_holds_what_was_said_between_its_start_and_its_end(tmp_path, monkeypatch):
    path = tmp_path / "server" / "log"
    with monkeypatch.context() as alone:
        # Not into pytest's report: a worker cannot send half a pair, and ends.
        alone.setattr(logging.getLogger(), "handlers", [])
        with logged(path):
            logging.getLogger("bridle.x").info("half a pair: %s", "\ud800")
        logging.getLogger("bridle.x").info("too late")
    lines = path.read_text().splitlines()
    assert [line.partition(": ")[2] for line in lines][1:] == ["half a pair: ?", "stopped"]
    assert "started, process" in lines[0]


def test_who_waits_to_write_when_the_log_is_closed_writes_into_no_other_file(tmp_path):
    """A thread that has found the log in its last moment: the file's number is another's by then"""
    with logged(tmp_path / "server.log"):
        writer = logging.getLogger().handlers[-1]
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_WRONLY)
    try:
        writer.handle(logging.makeLogRecord({"msg": "late", "levelno": logging.INFO}))
    finally:
        os.close(other)
    assert (tmp_path / "other").read_bytes() == b""


def test_a_server_without_room_names_the_file_that_it_could_not_write(bridle: Program):
    done = without_room(bridle, "serve", "-m", "offline", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"bridle: {bridle.state / 'server' / 'token'}: ")
    assert [one.name for one in (bridle.state / "server").iterdir()] == []


def test_the_doctor_writes_something_before_it_says_that_it_can(bridle: Program):
    bridle.state.mkdir(parents=True, exist_ok=True)
    [line] = [
        line for line in without_room(bridle, "doctor").stdout.splitlines() if "state f" in line
    ]
    assert f"{bridle.state}: " in line and "is writable" not in line


def test_undo_that_cannot_keep_anything_is_said_in_a_line_and_never_as_a_traceback(bridle: Program):
    bridle.state.mkdir(parents=True)
    (bridle.state / "undo").touch()  # a folder that cannot be made, as on a disk that is read-only
    call = {"calls": [{"name": "shell", "arguments": {"command": "echo a > b"}}]}
    done = bridle.run("run", "go", "-m", bridle.script(call, "Made."), "--yes")
    assert (done.returncode, done.stdout) == (0, "Made.\n"), done.stderr
    assert "undo does not cover it: nothing was kept for undo: File exists" in done.stderr
    assert "Traceback" not in done.stderr and "Errno" not in done.stderr


def test_what_the_program_logs_is_a_line_and_its_traceback_is_for_those_who_ask(bridle: Program):
    """Whatever of the engine says a warning with where it happened: a person is spared that."""
    code = (
        "import logging, sys\n"
        "from bridle.cli.signals import run_async\n"
        "async def work():\n"
        "    try:\n"
        "        1 / 0\n"
        "    except ZeroDivisionError:\n"
        "        logging.getLogger('bridle.x').warning('it %s\\nbroke', 'all', exc_info=True)\n"
        "    return 0\n"
        "sys.exit(run_async(work()))\n"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=bridle.environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "bridle: it all broke\n")
    environ = bridle.environ | {"BRIDLE_DEBUG": "1"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert "ZeroDivisionError" in done.stderr
