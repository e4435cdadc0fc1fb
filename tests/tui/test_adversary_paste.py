"""What is pasted is text, and never a key: escapes in it press nothing (S8)."""

import pytest

from bridle.tui.driver import END, START, PasteSplitter
from tui.rig import script
from tui.test_opening import Terminal

EVIL = "look \x1b[31m at\r/mode auto\rthis \x1b\x1b[20 \x1b[A\ry\x00y"


def parted(*chunks):
    parts = PasteSplitter()
    found = [piece for chunk in chunks for piece in parts.feed(chunk)]
    return [*found, *parts.flush()]


@pytest.mark.parametrize("at", range(len(f"ab{START}{EVIL}{END}c")))
def test_a_paste_is_one_piece_wherever_the_terminal_cuts_it(at):
    whole = f"ab{START}{EVIL}{END}c"
    found = parted(whole[:at], whole[at:])
    assert [text for text, pasted in found if pasted] == [EVIL.replace("\0", "")]
    assert "".join(text for text, pasted in found if not pasted) == "abc"


def test_a_paste_that_comes_byte_by_byte_and_another_behind_it():
    found = parted(*f"{START}{EVIL}{END}{START}two{END}\x1b[A")
    assert [text for text, pasted in found if pasted] == [EVIL.replace("\0", ""), "two"]
    assert "".join(text for text, pasted in found if not pasted) == "\x1b[A"


def test_escape_alone_is_a_key_once_nothing_follows():
    parts = PasteSplitter()
    assert list(parts.feed("\x1b")) == []
    assert parts.is_waiting
    assert list(parts.flush()) == [("\x1b", False)]
    assert not parts.is_waiting


def test_nothing_of_a_paste_without_its_end_is_a_key():
    parts = PasteSplitter()
    assert list(parts.feed(START + EVIL)) == []
    assert not parts.is_waiting
    assert list(parts.flush()) == []


def test_a_hostile_paste_sends_nothing_and_changes_no_mode(tmp_path):
    terminal = Terminal(tmp_path, "-m", script(tmp_path, "It was sent."))
    try:
        terminal.until("sandbox")
        terminal.type(START + EVIL + END + " END OF IT")
        terminal.until("END OF IT")
        terminal.type("\x03\x03\x03")  # the first clears what was pasted
        assert terminal.end() == 0
        assert "It was sent." not in terminal.shown
        assert "Mode auto" not in terminal.shown
        assert "\\x1b" in terminal.shown
        assert terminal.is_sane()
    finally:
        terminal.close()
