"""Dialogs in a small app of their own: what decides, what does not, and what is shown."""

from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.widgets import OptionList

from bridle.presentation.calls import diff_lines
from bridle.tui.dialogs import (
    ChoiceDialog,
    ConfirmDialog,
    TextDialog,
    TextField,
    TextInputDialog,
    TextView,
    _pieces,
)
from bridle.tui.slash.interaction import Item
from rig import run

HOSTILE = "a\x1b[2Jb\u202ec\U000e0041"
HARMLESS = "a\\x1b[2Jb\\u202ec\\U000e0041"


class Small(App):
    """Nothing but what is pushed."""


def play(dialog, story, size=(80, 24)):
    """Open a dialog, tell the story, and give back what it was dismissed with."""

    async def whole():
        app, given = Small(), []
        async with app.run_test(size=size) as pilot:
            await app.push_screen(dialog, given.append)
            await until(pilot, lambda: dialog.guard.is_drawn)
            await story(app, pilot)
            await pilot.pause()
        return given

    return run(whole())


async def until(pilot, condition):
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came to that")


async def press(app, pilot, key, after=1.0, character=None, start=None):
    """A key that was pressed so long after now (or `start`), as the guard sees it."""
    event = events.Key(key, character or (key if len(key) == 1 else None))
    event.time = (monotonic() if start is None else start) + after
    app.post_message(event)
    await pilot.pause()


@pytest.mark.parametrize(
    "dialog",
    [
        lambda: ConfirmDialog("Q", "really?"),
        lambda: TextDialog("T", [("a", "")]),
        lambda: ChoiceDialog("C", [Item("a", "a")]),
        lambda: TextInputDialog("A", "text"),
    ],
)
def test_ctrl_c_leaves_a_dialog_as_escape_does(dialog):
    left = []
    for key in ("escape", "ctrl+c"):

        async def story(app, pilot, key=key):
            await press(app, pilot, key)
            await until(pilot, lambda: len(app.screen_stack) == 1)

        left.append(play(dialog(), story))
    assert left[0] == left[1]
    assert len(left[0]) == 1


def test_ctrl_c_copies_what_is_marked_in_a_dialog_and_leaves_it_open():
    dialog = ConfirmDialog("Q", "really?")

    async def story(app, pilot):
        dialog.query_one("#said").text_select_all()
        await press(app, pilot, "ctrl+c")
        await until(pilot, lambda: app.clipboard == "really?")
        assert app.screen is dialog

    assert play(dialog, story) == []


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False), ("escape", None)])
def test_a_question_is_answered_by_its_keys(key, answer):
    async def story(app, pilot):
        await press(app, pilot, key)

    assert play(ConfirmDialog("Delete it?", "It goes for good."), story) == [answer]


def test_keys_typed_ahead_answer_nothing_however_many_they_are():
    async def story(app, pilot):
        start = monotonic()
        await press(app, pilot, "y", after=-1, start=start)
        for n in range(10):
            await press(app, pilot, "y", after=0.3 * (n + 1), start=start)

    assert play(ConfirmDialog("Delete it?", "It goes for good."), story) == []


def test_after_a_pause_the_key_counts():
    async def story(app, pilot):
        await press(app, pilot, "y", after=0.1)
        await press(app, pilot, "y", after=0.9)

    assert play(ConfirmDialog("Delete it?", "It goes for good."), story) == [True]


def test_words_written_for_something_else_answer_nothing():
    async def story(app, pilot):
        for n, letter in enumerate("why not yes, any day"):
            await press(app, pilot, "space" if letter == " " else letter, after=0.6 + 0.1 * n)

    dialog = ConfirmDialog("Delete it?", "It goes for good.")
    dialog.guard.reject(monotonic())
    assert play(dialog, story) == []


def test_other_keys_answer_nothing():
    async def story(app, pilot):
        for key in ("enter", "space", "q", "Y", "tab"):
            await press(app, pilot, key, after=2)

    assert play(ConfirmDialog("Delete it?", "It goes for good."), story) == []


def test_what_has_to_be_read_is_read_to_its_end_before_yes_counts():
    lines = [(f"line {n}", "") for n in range(60)]

    async def story(app, pilot):
        await press(app, pilot, "y")
        assert isinstance(app.screen, ConfirmDialog)
        for _ in range(8):
            await pilot.press("pagedown")
        await until(pilot, lambda: app.screen.query_one(TextView).was_read)
        await press(app, pilot, "y", after=3)

    assert play(ConfirmDialog("Trust it?", "Let this count?", lines, read=True), story) == [True]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_a_short_text_is_read_at_once_in_any_window(size):
    async def story(app, pilot):
        await until(pilot, lambda: app.screen.query_one(TextView).was_read)
        await press(app, pilot, "y")

    dialog = ConfirmDialog("Trust it?", "Let this count?", [("one line", "")], read=True)
    assert play(dialog, story, size) == [True]


def test_everything_shown_is_neutral():
    async def story(app, pilot):
        shown = app.export_screenshot()
        for bad in ("\x1b", "\u202e", "\U000e0041"):
            assert bad not in shown
        assert "\\x1b[2Jb" in shown.replace("&#160;", " ")

    play(ConfirmDialog(HOSTILE, HOSTILE, [(HOSTILE, "")]), story)
    play(TextDialog(HOSTILE, [(HOSTILE, "head")]), story)
    play(ChoiceDialog(HOSTILE, [Item(HOSTILE, HOSTILE, HOSTILE)]), story)
    play(TextInputDialog(HOSTILE, HOSTILE), story)


def test_a_field_is_neutral_however_the_text_came_in():
    async def story(app, pilot):
        field = app.screen.query_one(TextField)
        assert field.value == HARMLESS
        field.value = ""
        field.post_message(events.Paste(HOSTILE))
        await pilot.pause()
        assert field.value == HARMLESS
        await press(app, pilot, "enter")

    assert play(TextInputDialog("Title", HOSTILE), story) == [HARMLESS]


ITEMS = [
    Item("a", "anthropic/claude", "large"),
    Item("o", "offline", "needs nobody", chosen=True),
    Item("x", "openai/gpt", why_not="no key was found"),
]


def test_one_is_chosen_by_typing_and_enter():
    async def story(app, pilot):
        await pilot.press(*"claude")
        await press(app, pilot, "enter", after=2)

    assert play(ChoiceDialog("Model", ITEMS), story) == ["a"]


def test_the_chosen_one_is_highlighted_first_and_arrows_go_round():
    async def story(app, pilot):
        assert app.screen.query_one(OptionList).highlighted == 1
        await pilot.press("up", "up", "up")
        await press(app, pilot, "enter", after=2)

    assert play(ChoiceDialog("Model", ITEMS), story) == ["o"]


def test_one_that_cannot_be_had_says_why_and_the_list_stays():
    async def story(app, pilot):
        await pilot.press(*"gpt")
        await press(app, pilot, "enter", after=2)
        assert isinstance(app.screen, ChoiceDialog)

    assert play(ChoiceDialog("Model", ITEMS), story) == []


def test_enter_typed_ahead_chooses_nothing_and_escape_leaves():
    async def story(app, pilot):
        await press(app, pilot, "enter", after=0.1)
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("escape")

    assert play(ChoiceDialog("Model", ITEMS), story) == [None]


def test_nothing_left_is_said():
    async def story(app, pilot):
        await pilot.press(*"zzz")
        await press(app, pilot, "enter", after=2)
        assert "Nothing matches." in app.export_screenshot().replace("&#160;", " ")

    assert play(ChoiceDialog("Model", ITEMS), story) == []


@pytest.mark.parametrize("key", ["escape", "q"])
def test_a_page_is_scrolled_and_closed(key):
    async def story(app, pilot):
        await pilot.press("pagedown", "j", "k", "space", "down")
        assert app.screen.query_one(TextView).scroll_offset.y > 20
        await press(app, pilot, key)

    assert play(TextDialog("Long", [("x\n" * 200, "")]), story) == [None]


def test_a_megabyte_is_wrapped_and_shown_to_its_end():
    async def story(app, pilot):
        await pilot.press("end")
        await until(pilot, lambda: app.screen.query_one(TextView).was_read)
        assert "the&#160;end" in app.export_screenshot()

    play(TextDialog("Long", [("word " * 200_000, ""), ("the end", "")]), story)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_no_character_is_cut_off_at_the_edge(size):
    lines = [("/a/long/path" * 12, ""), *((f"{n}", "") for n in range(100))]

    async def story(app, pilot):
        sheet = app.screen.query_one(TextView)
        width = sheet.scrollable_content_region.width
        assert max(cell_len(line) for line, _ in sheet._wrapped) <= width
        await pilot.resize_terminal(size[0] - 15, size[1])
        await pilot.pause()
        width = sheet.scrollable_content_region.width
        assert max(cell_len(line) for line, _ in sheet._wrapped) <= width

    play(TextDialog("Paths", lines), story, size)


def test_the_lines_of_a_diff_are_told_apart():
    found = diff_lines("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n")
    assert [kind for _, kind in found] == ["muted", "muted", "place", "removed", "added", ""]


@given(st.text(st.sampled_from("ab 中e\u0301é-/"), max_size=80), st.integers(4, 30))
def test_wrapping_loses_no_character_and_no_line_is_too_wide(text, width):
    pieces = [piece for piece, _ in _pieces(text, "", width)]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(piece.rstrip(" ")) <= width for piece in pieces)
