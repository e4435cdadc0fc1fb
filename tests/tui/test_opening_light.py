"""What is loaded before the first picture, and what Ctrl-C does while it is."""

import subprocess
import sys
from pathlib import Path

LOADED = """
import sys
import bridle.cli.full_screen, bridle.tui.driver
print(*sorted(sys.modules))
"""
LATER = ("msgspec", "bridle.events", "bridle.tui.screens.session", "bridle.tui.widgets.completion")


def said(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_picture_loads_nothing_that_it_does_not_show():
    loaded = set(said(LOADED).split())
    assert "textual.app" in loaded
    assert not loaded.intersection(LATER)


def test_ctrl_c_while_it_is_being_loaded_ends_it_without_a_word(tmp_path):
    """The library that is loaded first presses it."""
    press = "import os, signal, sys\nos.kill(os.getpid(), signal.SIGINT)\nsys.exit(7)\n"
    tmp_path.joinpath("click.py").write_text(press)
    program = Path(sys.executable).parent / "bridle"
    done = subprocess.run(
        [program, "--version"], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_whoever_imports_the_package_keeps_their_ctrl_c(tmp_path):
    found = said(
        "import signal, bridle.cli;"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    assert found.split() == ["True"]
