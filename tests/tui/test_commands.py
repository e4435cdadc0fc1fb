"""The table of commands, and the user's own: pure reading, with bounds (A9)."""

import os

import pytest

from bridle.config.user_commands import load_user_commands
from bridle.presentation.commands import (
    TABLE,
    Command,
    command_line,
    command_of,
    command_prompt,
    matching,
    nearest,
    split,
)


def test_the_table_has_every_command_that_was_promised_and_none_twice():
    names = [name for one in TABLE for name in (one.name, *one.also)]
    assert len(names) == len(set(names))
    promised = "help new sessions resume fork rewind undo model agent mode plan tools mcp policy"
    promised += " approvals budget cost compact export theme doctor quit"
    assert set(promised.split()) <= set(names)
    assert all(one.meaning and len(one.meaning) <= 80 for one in TABLE)


def test_the_exact_name_comes_before_a_longer_one():
    assert command_of("/mode").name == "mode"
    assert [one.name for one in matching("/mode")][:2] == ["mode", "model"]
    assert [one.name for one in matching("/mod")] == ["model", "mode"]
    assert command_of("/mod") is None and command_of("exit").name == "quit"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/mode auto", ("mode", "auto")),
        ("  /plan  look at it ", ("plan", "look at it")),
        ("/new", ("new", "")),
        ("/plan\nlook\nat it", ("plan", "look\nat it")),
        ("/plan\tlook at it", ("plan", "look at it")),
        ("/", ("", "")),
        ("  ", ("", "")),
    ],
)
def test_a_line_is_a_name_and_the_rest(line, found):
    assert split(line) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/mode auto", "/mode auto"),
        ("/modee auto", "/modee auto"),  # a mistake, and told as one
        ("/etc/hosts is broken", ""),
        ("/tmp is full", ""),
        ("/tmp", ""),
        ("/home/ann/a file that was dragged here.png", ""),
        ("look at /etc/hosts", ""),
        ("exit", "/quit"),
        (" quit\n", "/quit"),
        ("quit smoking", ""),
        ("exit code 3, why?", ""),
        ("", ""),
    ],
)
def test_a_path_is_no_command_and_exit_leaves(text, line):
    assert command_line(text) == line


def test_commands_have_the_names_that_people_know_from_elsewhere():
    assert command_of("permissions").name == "policy"
    assert command_of("usage").name == "cost"


def test_a_name_that_is_nearly_one_is_known():
    assert nearest("/sesions") == "sessions"
    assert nearest("zzzzzz") == ""
    assert nearest("reveiw", [Command(name="review", meaning="x")]) == "review"


def test_files_are_commands_and_what_is_none_is_left_out(tmp_path):
    (tmp_path / "review.md").write_text("# Review\n\nLook at $ARGUMENTS and $ARGUMENTS.\n")
    head = "---\ndescription: 'Says\x1b[2J it'\nargument-hint: [who]\n---\nGreet.\n"
    (tmp_path / "greet.md").write_text(head)
    for name, data in {
        "quit.md": b"never",
        "Strange Name.md": b"x",
        "-x.md": b"x",
        "binary.md": b"\xff\xfe",
        "large.md": b"x" * 100_001,
        "other.txt": b"x",
        "empty.md": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link.md").symlink_to(tmp_path / "review.md")
    os.mkfifo(tmp_path / "pipe.md")
    found = load_user_commands(
        tmp_path, [("/w/review.md", b"theirs"), ("/w/deploy.md", b"Deploy.")]
    )
    assert [one.name for one in found] == ["deploy", "greet", "review"]
    named = {one.name: one for one in found}
    assert (named["review"].argument, named["review"].meaning) == ("[WORDS]", "Review")
    assert command_prompt(named["review"], "a\\1") == "# Review\n\nLook at a\\1 and a\\1."
    assert named["greet"].spelled == "/greet [who]" and "\x1b" not in named["greet"].meaning
    assert command_prompt(named["greet"], "Ann") == "Greet.\n\nAnn"
    assert command_prompt(named["deploy"], "") == "Deploy."
    assert load_user_commands(tmp_path / "nowhere") == ()
