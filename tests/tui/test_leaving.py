"""Who is told to go, and told again while going, still settles the session."""

import os
import signal
import time
from contextlib import suppress

import pytest

from tui.rig import call, script
from tui.test_opening import Terminal


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_second_signal_does_not_cut_off_what_the_first_began(tmp_path, number):
    """S8: the turn ends in the log, however often a closed terminal says that it is closed."""
    model = script(tmp_path, call("shell", command="echo begun; sleep 100"), "done")
    terminal = Terminal(tmp_path, "-m", model, "--yes")
    try:
        terminal.until("sandbox")
        terminal.type("go\r")
        terminal.until("begun", 2)
        with suppress(ProcessLookupError):
            while os.waitpid(terminal.pid, os.WNOHANG) == (0, 0):
                os.kill(terminal.pid, number)
                terminal.read(0)
                time.sleep(0.002)
        terminal.code = 0
        (log,) = (tmp_path / "state/sessions").rglob("*.jsonl")
        assert '"turn_end"' in log.read_text().splitlines()[-1]
    finally:
        terminal.close()
