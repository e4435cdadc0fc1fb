"""What is copied: the answer, or a block of code, as it may be pasted anywhere (S10)."""

import os
import stat

import pytest
from textual.app import App

from bridle.tui.clipboard import (
    LARGEST,
    code_blocks,
    copy,
    copy_answer,
    copy_choices,
    copy_with_program,
    neutral_text,
    write_copy,
)
from rig import run

ANSWER = """Do this:

```bash
make check
git push
```
then
~~~
plain ``` inside
~~~
"""


def test_the_whole_answer_and_each_block_of_code_can_be_chosen():
    assert code_blocks(ANSWER) == [("bash", "make check\ngit push"), ("", "plain ``` inside")]
    labels = [piece.label for piece in copy_choices(ANSWER)]
    assert labels == ["the whole answer", "code 1 (bash): make check", "code 2: plain ``` inside"]
    assert copy_choices("  \n") == []


@pytest.mark.parametrize(
    ("markdown", "blocks"),
    [
        ("```\nnever closed", [("", "never closed")]),
        ("````\n```\nx\n```\n````", [("", "```\nx\n```")]),
        ("```py title=x\r\na\r\n```\r\n", [("py", "a\r")]),
        ("no code `here`", []),
    ],
)
def test_fences_are_read_as_they_are_written(markdown, blocks):
    assert code_blocks(markdown) == blocks


def test_what_is_copied_is_neutral():
    evil = "ls\x1b]52;c;eA==\x07\r\n\trm\u202e\u200b\ud800\x00"
    assert neutral_text(evil) == "ls\\x1b]52;c;eA==\\x07\n\trm\\u202e\\u200b\\ud800\\x00"


def test_the_file_is_private_and_no_link_is_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "copied.txt").symlink_to(other)
    place = write_copy("secret", tmp_path / "state")
    assert place.read_text() == "secret"
    assert other.read_text() == "mine"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [one.name for one in (tmp_path / "state").iterdir()] == ["copied.txt"]


def test_a_program_of_the_desktop_is_used_where_there_is_one(tmp_path):
    program = tmp_path / "xclip"
    program.write_text(f"#!/bin/sh\nexec cat > {tmp_path}/got\n")
    program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert not copy_with_program("x", environ)  # there is no display
    assert copy_with_program("a\nb", {**environ, "DISPLAY": ":0"})
    assert (tmp_path / "got").read_text() == "a\nb"
    program.write_text("#!/bin/sh\nexit 1\n")
    assert not copy_with_program("x", {**environ, "DISPLAY": ":0"})


def play(story):
    async def whole():
        app = App()
        async with app.run_test(size=(80, 24)) as pilot:
            await story(app, pilot)

    run(whole())


def test_the_terminal_is_told_and_a_file_holds_it_where_nobody_else_does(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)

    async def story(app, pilot):
        said = await copy(app, "a\x1b[2J")
        assert app.clipboard == "a\\x1b[2J"
        assert (
            said == f"8 characters, if the terminal allows it; also saved to {tmp_path}/copied.txt"
        )
        said = await copy(app, "x" * (LARGEST + 1))
        assert app.clipboard == "a\\x1b[2J"
        assert (
            said
            == f"74,001 characters are too many for the terminal; saved to {tmp_path}/copied.txt"
        )

    play(story)


def test_a_piece_is_chosen_with_the_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))

    async def story(app, pilot):
        said = []

        async def choose():
            said.append(await copy_answer(app, ANSWER))

        app.run_worker(choose())
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("down")
        while len(app.screen_stack) == 2:  # keys of somebody who types ahead take nothing
            await pilot.press("enter")
            await pilot.pause(0.6)
        await until(pilot, lambda: said)
        assert app.clipboard == "make check\ngit push"
        assert said[0].startswith("copied: 19 characters")

    play(story)


async def until(pilot, true):
    while not true():
        await pilot.pause()
