"""A run of the tests ends by itself, whatever its tests and its terminal do, and leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HANGS = """
import asyncio, os, subprocess, time


def test_that_sleeps():
    time.sleep(1000)


def test_that_waits_in_a_loop():
    asyncio.run(asyncio.Event().wait())


def test_that_swallows_the_first_failure():
    async def keep_trying():
        while True:
            try:
                await asyncio.sleep(1000)
            except BaseException:
                if not seen:
                    seen.append(1)
                    continue
                raise

    seen = []
    asyncio.run(keep_trying())


def test_that_passes():
    pass
"""
DAEMON = """
import os, signal, subprocess, sys


def test_daemon():
    with open("daemon.pid", "w") as file:
        words = ["setsid", "--fork", "sh", "-c", "echo $$; exec sleep 1000"]
        subprocess.run(words, stdout=file, check=True)


def test_dispositions():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
    ignored = int(next(x for x in status.splitlines() if x.startswith("SigIgn")).split()[1], 16)
    assert not ignored & (1 << signal.SIGHUP - 1 | 1 << signal.SIGINT - 1)
"""
STOPPED = """
import os, signal


def test_that_is_stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
"""
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def start(folder, source, *options, **rest):
    """Start a run of these tests with our configuration, as `make test` does."""
    (folder / "test_sample.py").write_text(source)
    words = [ROOT / "scripts/run-tests", "-p", "conftest", "-c", ROOT / "pyproject.toml"]
    words = [sys.executable, *map(str, words), f"--rootdir={folder}", *options, "test_sample.py"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "tests")}
    out = subprocess.PIPE
    return subprocess.Popen(
        words, cwd=folder, env=environ, stdout=out, stderr=subprocess.STDOUT, text=True, **rest
    )


def ignore_signals():
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def is_running(folder):
    """Is the daemon of the sample still there?"""
    try:
        os.kill(int((folder / "daemon.pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_time_limit_fails_one_test_and_the_others_run(tmp_path, workers):
    said, _ = start(tmp_path, HANGS, "--timeout=1", *workers).communicate(timeout=240)
    assert "3 failed, 1 passed" in said
    assert "crashed" not in said


@needs_linux
def test_a_run_that_ignores_signals_gives_its_tests_the_usual_ones_and_leaves_nothing(tmp_path):
    run = start(tmp_path, DAEMON, "-n", "1", preexec_fn=ignore_signals)
    said, _ = run.communicate(timeout=240)
    assert "2 passed" in said
    assert "left behind: sleep 1000" in said
    assert not is_running(tmp_path)


@needs_linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing_behind(tmp_path, number):
    hang = "\n\ndef test_hang():\n    os.mkfifo('ready')\n    open('ready', 'w').close()\n"
    hang += "    signal.pause()\n"
    run = start(tmp_path, DAEMON + hang, "-n", "1")
    while not (tmp_path / "ready").exists():
        assert run.poll() is None, run.stdout.read()
    (tmp_path / "ready").read_text()  # until the test has opened the other end
    run.send_signal(number)
    said, _ = run.communicate(timeout=240)
    assert run.returncode == 128 + number
    assert not is_running(tmp_path), said


@needs_linux
def test_a_run_that_makes_no_progress_ends_and_names_what_was_running(tmp_path):
    run = start(tmp_path, STOPPED, "-n", "1", "--stalled-after=3")
    said, _ = run.communicate(timeout=240)
    assert "no test has started or ended for 3 seconds" in said
    assert "test_sample.py::test_that_is_stopped" in said
