"""Calls to a person who looks elsewhere, and the title; nothing in them is obeyed (S10)."""

import pytest

from bridle.tui.terminal import (
    BELL,
    RESTORE,
    SAVE,
    WindowTitle,
    has_osc9,
    notification,
    window_title,
)

EVIL = "4;x\x07\x1b]52;c;x\x1b\\\u202e\n\x9c\ud800"


@pytest.mark.parametrize(
    ("how", "environ", "begins"),
    [
        ("off", {"TERM_PROGRAM": "WezTerm"}, ""),
        ("bell", {"TERM_PROGRAM": "WezTerm"}, BELL),
        ("osc9", {}, "\x1b]9;bridle: "),
        ("auto", {}, BELL),
        ("auto", {"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;bridle: "),
        ("auto", {"TERM": "xterm-ghostty"}, "\x1b]9;bridle: "),
        ("auto", {"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/x"}, BELL),
    ],
)
def test_how_a_person_is_called(how, environ, begins):
    said = notification(how, "shell: an answer is needed", environ)
    assert said.startswith(begins)
    assert bool(said) == (how != "off")


def test_a_call_holds_nothing_that_a_terminal_would_obey():
    said = notification("osc9", EVIL, {})
    assert said.startswith("\x1b]9;bridle: 4;x\\x07")
    inner = said[len("\x1b]9;") : -1]
    assert inner.isprintable()
    assert said.endswith("\x07")


def test_the_title_says_the_state_and_holds_nothing_that_would_be_obeyed():
    assert window_title("working", "Mend it") == "\x1b]2;* Mend it · bridle\x07"
    assert window_title("waiting for your answer", "Mend it") == "\x1b]2;? Mend it · bridle\x07"
    assert window_title("", "") == "\x1b]2;bridle\x07"
    assert window_title("", EVIL)[len("\x1b]2;") : -1].isprintable()


def test_the_title_is_put_aside_written_when_it_changes_and_put_back():
    title = WindowTitle()
    assert title.restore() == ""
    assert title.change("working", "x") == SAVE + window_title("working", "x")
    assert title.change("working", "x") == ""
    assert title.change("", "x") == window_title("", "x")
    assert title.restore() == RESTORE
    assert title.restore() == ""


def test_tmux_and_screen_stand_between():
    assert not has_osc9({"TERM_PROGRAM": "WezTerm", "STY": "1"})
