"""`bridle new chat-app`: what it writes runs at once, and it overwrites nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from new_rig import environ, tree

from bridle.cli.commands.new import _TEMPLATES
from bridle.cli.main import commands
from bridle.errors import UsageError

FILES = [
    ".gitignore",
    "README.md",
    "my_notes/__init__.py",
    "my_notes/app.py",
    "my_notes/profile.py",
    "my_notes/rules.py",
    "my_notes/tables.py",
    "my_notes/tools.py",
    "pyproject.toml",
    "tests/test_chat.py",
]


def new(*words):
    return CliRunner().invoke(commands, ["new", "chat-app", *map(str, words)])


def said(*words):
    """The exit code and the error, as the program itself shows it."""
    line = [sys.executable, "-m", "bridle", "new", "chat-app", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stderr


@pytest.mark.timeout(300)  # it runs tests in its turn
def test_what_is_written_passes_its_own_tests_and_is_clean(tmp_path):
    place = tmp_path / "my-notes"
    assert new(place).exit_code == 0
    assert tree(place) == FILES
    assert not [one for one in FILES if "{{" in (place / one).read_text("utf-8")]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        pytest_, cwd=place, env=environ(), capture_output=True, text=True, timeout=200, check=False
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    for words in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--no-cache", "."]
        assert subprocess.run(ruff, cwd=place, capture_output=True, check=False).returncode == 0


def test_it_says_what_it_wrote_and_what_to_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = new("my notes").output.splitlines()
    assert lines[0] == "Created 10 files in my notes:"
    assert sorted(line.strip() for line in lines[1:11]) == FILES
    assert lines[12:] == [
        "To run it:",
        "  cd 'my notes'",
        "  pytest",
        "  bridle chat-server --app my_notes.app:app --demo",
    ]


def test_a_folder_that_is_not_empty_is_left_as_it_is(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    code, error = said(tmp_path, "--name", "my_notes")
    assert (code, tree(tmp_path)) == (2, ["README.md"])
    assert (tmp_path / "README.md").read_text() == "mine"
    assert "is not empty, and nothing in it is overwritten" in error
    assert "→ Name a folder that is empty or does not exist." in error


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "notes").write_text("mine")
    result = new(tmp_path / "notes", "--name", "my_notes")
    assert result.exit_code == 2
    assert (tmp_path / "notes").read_text() == "mine"


def test_an_empty_folder_is_taken_and_so_is_one_that_is_not_there(tmp_path):
    (tmp_path / "empty").mkdir()
    assert new(tmp_path / "empty", "--name", "my_notes").exit_code == 0
    assert new(tmp_path / "deep" / "er", "--name", "my_notes").exit_code == 0
    assert tree(tmp_path / "empty") == tree(tmp_path / "deep" / "er") == FILES


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("7up", "cannot be the name of a Python package"),
        ("no/slash", "cannot be the name of a Python package"),
        ("../up", "cannot be the name of a Python package"),
        ("class", "cannot be the name of a Python package"),
        ("größe", "cannot be the name of a Python package"),
        ("a" * 41, "more than 40 characters"),
        ("json", "the name of something else in Python"),
        ("bridle", "the name of something else in Python"),
        ("tests", "the name of something else in Python"),
        ("_hidden", "the name of something else in Python"),
        ("starlette", "there is a Python package 'starlette' already"),
    ],
)
def test_a_name_that_python_would_stumble_over_is_refused(tmp_path, name, why):
    result = new(tmp_path / "here", "--name", name)
    assert isinstance(result.exception, UsageError)
    assert why in result.exception.message
    assert not (tmp_path / "here").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    tmp_path.chmod(0o500)
    code, error = said(tmp_path / "my_notes")
    tmp_path.chmod(0o700)
    assert code == 1
    assert "Permission denied" in error


def test_what_cannot_be_finished_is_taken_away_again(tmp_path):
    """A name that is too long for the disk comes up half-way."""
    place = tmp_path / "here"
    deep = place / ("x" * 300)
    code, error = said(deep, "--name", "my_notes")
    assert code == 1
    assert "too long" in error
    assert not place.exists()


def test_the_templates_are_files_of_the_package():
    """They lie under the package's own folder, all of which is in the wheel."""
    import bridle

    assert Path(bridle.__file__).parent in _TEMPLATES.parents
    assert len(list(_TEMPLATES.rglob("*.template"))) == len(FILES)
