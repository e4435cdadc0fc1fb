"""A session that lasts: a thousand turns keep the memory of the process flat (S5)."""

import subprocess
from pathlib import Path

import pytest

from rig import PYTHON

PROGRAM = Path(__file__).with_name("long_session.py")
MOST = 5_000  # kilobytes that five hundred turns may take


@pytest.mark.parametrize(("window", "size"), [(8_000, 2_000), (0, 50)])
def test_the_last_five_hundred_of_a_thousand_turns_take_no_memory(tmp_path, window, size):
    """With a small window the conversation is shortened; without one, small messages add up."""
    command = [PYTHON, PROGRAM, tmp_path / "state", str(window), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    grown, left, shortened = map(int, done.stdout.split())
    assert grown < MOST
    if window:
        assert (left < 60, shortened > 50) == (True, True)
    else:
        assert (left, shortened) == (4_000, 0)
