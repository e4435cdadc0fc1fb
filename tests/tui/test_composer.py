"""The composer in a small app of its own: keys, history, pastes, completion, hostile text."""

import pytest
from textual import events
from textual.app import App

from bridle.presentation.commands import Command
from bridle.tui.widgets.composer import Composer, PromptInput
from bridle.tui.widgets.history import Drafts, PromptHistory
from rig import run

FILES = ("src/app.py", "src/apple.md", "docs/a b.md")


class Small(App):
    """A composer and nothing else; keeps what was submitted."""

    def __init__(self, state=None, files=None):
        super().__init__()
        self.sent, self.wants, self.asked = [], [], []
        prompts, drafts = PromptHistory(state), Drafts(state)
        own = (Command(name="review", meaning="look at it", own="x"),)
        self.composer = Composer(
            files or self.files, self.arguments, lambda: own, prompts=prompts, drafts=drafts
        )

    def compose(self):
        yield self.composer

    def on_mount(self):
        self.composer.focus()

    async def files(self, word):
        self.asked.append(word)
        return [name for name in FILES if word in name]

    async def arguments(self, command):
        return [("anthropic/claude", "large"), ("offline", "needs nobody")]

    def on_composer_submitted(self, event):
        self.sent.append((event.text, event.when))

    def on_composer_editor_requested(self, event):
        self.wants.append("editor")

    def on_composer_search_requested(self, event):
        self.wants.append("search")


def play(story, **rest):
    """Tell a story in the small app."""

    async def whole():
        app = Small(**rest)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            await story(app, pilot)

    run(whole())


async def paste(app, pilot, text):
    app.query_one(PromptInput).post_message(events.Paste(text))
    await pilot.pause()


async def until(pilot, condition):
    """Let the app work until it is so."""
    for _ in range(3000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came to that")


def test_enter_sends_and_empties():
    async def story(app, pilot):
        await pilot.press(*"hello", "enter")
        assert app.sent == [("hello", "idle")]
        assert app.composer.text == ""

    play(story)


def test_nothing_but_space_is_not_sent():
    async def story(app, pilot):
        await pilot.press("space", "enter")
        assert app.sent == []

    play(story)


@pytest.mark.parametrize("keys", [("shift+enter",), ("ctrl+j",), ("backslash", "enter")])
def test_a_new_line_is_made_and_not_sent(keys):
    async def story(app, pilot):
        await pilot.press("a", *keys, "b")
        assert (app.composer.text, app.sent) == ("a\nb", [])
        await pilot.press("enter")
        assert app.sent == [("a\nb", "idle")]

    play(story)


def test_while_a_turn_runs_enter_queues_and_control_s_steers():
    async def story(app, pilot):
        app.composer.is_busy = True
        await pilot.press("a", "enter", "b", "ctrl+s")
        assert app.sent == [("a", "queue"), ("b", "next_step")]

    play(story)


def test_up_and_down_walk_through_what_was_sent_and_keep_the_draft(tmp_path):
    async def story(app, pilot):
        await pilot.press("a", "enter", "b", "enter", "c", "up")
        assert app.composer.text == "b"
        await pilot.press("x", "up")
        assert app.composer.text == "a"
        await pilot.press("up", "down")
        assert app.composer.text == "bx"
        await pilot.press("down")
        assert app.composer.text == "c"

    play(story, state=tmp_path)


def test_up_inside_several_lines_moves_the_cursor_first():
    async def story(app, pilot):
        await pilot.press("a", "enter", "b", "ctrl+j", "c", "up")
        assert app.composer.text == "b\nc"
        await pilot.press("up")
        assert app.composer.text == "a"

    play(story)


def test_history_is_there_in_the_next_run(tmp_path):
    async def first(app, pilot):
        await pilot.press(*"one", "enter")

    async def second(app, pilot):
        await pilot.press("up")
        assert app.composer.text == "one"

    play(first, state=tmp_path)
    play(second, state=tmp_path)


def test_a_draft_belongs_to_its_session_and_outlives_the_app(tmp_path):
    async def first(app, pilot):
        app.composer.enter_session("s1")
        await pilot.press(*"half")
        app.composer.enter_session("s2")
        assert app.composer.text == ""
        await pilot.press(*"other")
        app.composer.enter_session("s1")
        assert app.composer.text == "half"
        app.composer.keep_draft()

    async def second(app, pilot):
        app.composer.enter_session("s2")
        assert app.composer.text == "other"
        app.composer.enter_session("s1")
        assert app.composer.text == "half"

    play(first, state=tmp_path)
    play(second, state=tmp_path)


def test_a_long_paste_is_folded_and_sent_whole():
    text = "\n".join(f"line {n}" for n in range(1204))

    async def story(app, pilot):
        await pilot.press("a", "space")
        await paste(app, pilot, text)
        assert app.composer.text == "a [pasted 1,204 lines]"
        await pilot.press("enter")
        assert app.sent == [(f"a {text}", "idle")]

    play(story)


def test_a_megabyte_pasted_is_one_marker_and_goes_with_one_backspace():
    text = "x" * 1_000_000

    async def story(app, pilot):
        await paste(app, pilot, text)
        assert app.composer.text == "[pasted 1,000,000 characters]"
        assert app.composer.full_text == text
        await pilot.press("backspace")
        assert app.composer.text == ""
        await paste(app, pilot, text)
        await pilot.press("enter")
        assert app.sent == [(text, "idle")]

    play(story)


HOSTILE = "a\x1b]52;c;eHg=\x07b\u202ec\U000e0041d\x9b1me"


def test_what_is_pasted_loaded_or_recalled_is_neutral(tmp_path):
    async def story(app, pilot):
        shown = "a\\x1b]52;c;eHg=\\x07b\\u202ec\\U000e0041d\\x9b1me"
        await paste(app, pilot, HOSTILE)
        assert app.composer.text == shown
        app.composer.load(HOSTILE)
        assert app.composer.text == shown
        app.composer.load("")
        app.composer.insert(HOSTILE)
        assert app.composer.text == shown
        app.composer.prompts.add(HOSTILE)
        app.composer.load("")
        await pilot.press("up")
        assert app.composer.text == shown

    play(story, state=tmp_path)


def test_line_ends_of_other_systems_are_one_kind():
    async def story(app, pilot):
        await paste(app, pilot, "a\r\nb\rc")
        assert app.composer.text == "a\nb\nc"

    play(story)


def test_the_exact_name_of_a_command_is_sent_and_not_what_it_could_become():
    async def story(app, pilot):
        await pilot.press(*"/mode")
        assert app.composer.is_listing
        await pilot.press("enter")
        assert app.sent == [("/mode", "idle")]

    play(story)


def test_enter_completes_a_beginning_and_runs_nothing():
    async def story(app, pilot):
        await pilot.press(*"/exp", "enter")
        assert (app.composer.text, app.sent) == ("/export ", [])

    play(story)


def test_tab_and_arrows_choose_a_command_and_a_users_own_is_there():
    async def story(app, pilot):
        await pilot.press(*"/re", "down", "tab")
        assert app.composer.text == "/rewind "
        app.composer.load("")
        await pilot.press(*"/rev", "tab")
        assert app.composer.text == "/review "

    play(story)


def test_escape_closes_the_list_until_the_word_changes():
    async def story(app, pilot):
        await pilot.press(*"/mo", "escape")
        assert not app.composer.is_listing
        await pilot.press("d")
        assert app.composer.is_listing

    play(story)


def test_arguments_are_completed_from_a_fixed_list_or_from_the_house():
    async def story(app, pilot):
        await pilot.press(*"/mode ", *"au", "tab")
        assert app.composer.text == "/mode auto "
        app.composer.load("")
        await pilot.press(*"/model ", *"off")
        await until(pilot, lambda: app.composer.is_listing)
        await pilot.press("enter")
        assert app.composer.text == "/model offline "

    play(story)


def test_a_file_is_found_once_the_keys_rest_and_put_in_its_place():
    async def story(app, pilot):
        await pilot.press(*"see @app")
        await until(pilot, lambda: app.composer.is_listing and app.asked[-1] == "app")
        await pilot.press("tab")
        assert app.composer.text == "see @src/app.py "
        await pilot.press(*"and @b")
        await until(pilot, lambda: app.composer.is_listing)
        await pilot.press("enter")
        assert app.composer.text == 'see @src/app.py and @"docs/a b.md" '

    play(story)


def test_a_file_whose_name_is_not_what_it_looks_like_is_not_offered():
    async def hostile(word):
        return ["ok.py", "a\u202eb.py", "c\x1b[1m.py", "d\ne"]

    async def story(app, pilot):
        await pilot.press("@")
        await until(pilot, lambda: app.composer.is_listing)
        offered = app.composer._completion.choices
        assert [one.text for one in offered] == ["@ok.py"]

    play(story, files=hostile)


def test_control_g_and_control_r_are_told():
    async def story(app, pilot):
        await pilot.press("ctrl+g", "ctrl+r")
        assert app.wants == ["editor", "search"]

    play(story)


def test_what_could_not_be_sent_comes_back_before_what_was_typed_since():
    async def story(app, pilot):
        await pilot.press(*"later")
        app.composer.give_back("first")
        assert app.composer.text == "first\nlater"

    play(story)
