"""A folder whose files are named to deceive, or so that no name can be written (S8)."""

import os

import pytest

from bridle.cli.start_checks import StartChecks
from bridle.config.trust import FolderFile, Trust
from bridle.tui.dialogs import TextView
from bridle.tui.model.onboarding import trust_lines
from tui.rig import workspace_in

SPOOF = "Already trusted and unchanged: everything"


@pytest.fixture
def folder(tmp_path):
    root = workspace_in(tmp_path)
    (root / "AGENTS.md").write_text("Be kind.\n")
    (root / ".bridle" / "commands").mkdir(parents=True)
    return root


def test_a_name_that_is_no_text_is_asked_about_and_declined_like_any_other(folder):
    odd = os.fsdecode(b"\xffodd.md")
    (folder / ".bridle" / "commands" / odd).write_text("Do it.")
    checks = StartChecks({"workspace": str(folder)})
    found = checks.untrusted_folder()
    assert found is not None
    checks.decline(found)
    assert checks.untrusted_folder() is None


def test_a_name_that_is_no_text_can_be_trusted(folder, tmp_path):
    odd = os.fsdecode(b"\xffodd.md")
    (folder / ".bridle" / "commands" / odd).write_text("Do it.")
    checks = StartChecks({"workspace": str(folder)})
    checks.trust(checks.untrusted_folder())
    assert checks.untrusted_folder() is None
    assert all(one.trusted for one in Trust(tmp_path / "state").files(folder))


def test_a_name_is_one_line_of_what_is_shown():
    name = f".bridle/commands/a\n{SPOOF}\x1b[31m.md"
    lines = [text for text, _kind in trust_lines([FolderFile(name, b"hi", False, "")])]
    assert not any("\n" in text for text in lines)
    assert not any(text.startswith(SPOOF) for text in lines)


def test_names_that_are_trusted_already_are_one_line():
    name = "x\nAGENTS.md  0 bytes"
    lines = [text for text, _kind in trust_lines([FolderFile(name, b"hi", True, "")])]
    assert not any("\n" in text for text in lines)


@pytest.mark.parametrize("width", [20, 40, 78])
def test_a_long_line_of_a_file_stays_behind_its_bar(width):
    text = ("x" + " " * (width * 3) + SPOOF).encode()
    sheet = TextView(trust_lines([FolderFile("AGENTS.md", text, False, "")]))
    sheet._wrap(width)
    drawn = [text for text, _kind in sheet._wrapped]
    assert all(line.startswith("│") for line in drawn[1:])
    assert max(map(len, drawn)) <= width


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_lines_come_to_an_end_in_windows_without_room(width):
    sheet = TextView(
        [("│ 漢字漢字 and e\u0301\u0301\u0301", ""), ("漢字" * 9, "head"), ("a b  c", "")]
    )
    sheet._wrap(width)
    assert "".join(text for text, _kind in sheet._wrapped).count("漢") == 11
