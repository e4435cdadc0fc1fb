"""What is loaded before the first picture, and what Ctrl-C does while it is."""

import subprocess
import sys
from pathlib import Path

LOADED = """
import sys
from bridle.tui.lean import import_textual
assert import_textual(), "Textual wants more of its palette than is known"
import bridle.cli.full_screen, bridle.tui.driver
assert not import_textual()
print(*sorted(sys.modules))
"""
LATER = (
    "msgspec",
    "json",
    "_ssl",
    "tree_sitter",
    "bridle.events",
    "bridle.presentation.blocks",
    "bridle.tui.widgets.completion",
)
NEVER = ("textual.command", "textual.widgets._select", "textual.widgets._input", "rich.markdown")


def said(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_picture_loads_nothing_that_it_does_not_show():
    loaded = set(said(LOADED).split())
    assert "textual.app" in loaded
    assert not loaded.intersection(LATER + NEVER)


def test_whoever_asks_for_the_palette_of_commands_later_gets_the_real_one():
    found = said(
        "from bridle.tui.lean import import_textual; import_textual(); import textual.command;"
        "print(textual.command.CommandPalette.__mro__[1].__name__)"
    )
    assert "Screen" in found


def test_a_textual_that_is_there_already_is_left_as_it_is():
    found = said(
        "import textual.app; from bridle.tui.lean import import_textual;"
        "print(import_textual(), textual.app.CommandPalette.__module__)"
    )
    assert found.split() == ["False", "textual.command"]


def test_a_textual_that_wants_more_is_imported_whole(tmp_path):
    package = tmp_path / "textual"
    package.mkdir()
    package.joinpath("__init__.py").write_text("")
    package.joinpath("command.py").write_text("Newer = 1\n")
    package.joinpath("app.py").write_text("from textual.command import Newer\n")
    found = said(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "from bridle.tui.lean import import_textual; print(import_textual());"
        "import textual.app; print(textual.app.Newer)"
    )
    assert found.split() == ["False", "1"]


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


def test_the_parser_that_reads_commands_is_there_although_the_text_area_goes_without_it():
    found = said(
        "import sys; from bridle.tui.lean import import_textual; import_textual();"
        "print('tree_sitter' in sys.modules); "
        "import tree_sitter; print(tree_sitter.Parser.__name__)"
    )
    assert found.split() == ["False", "Parser"]
