"""Every `/` command on the screen, in a real house with a scripted model (A9, S10)."""

from bridle.presentation.commands import TABLE
from bridle.tui.dialogs import ChoiceDialog, ConfirmDialog, TextDialog
from bridle.tui.screens.sessions import SessionPicker
from bridle.tui.slash.commands import COMMANDS
from bridle.tui.slash.screen import ScreenInteraction
from tui.rig import call
from tui.screen_rig import blocks, say, shows, until
from tui.slash_rig import closes, obey, opens, play, press


def test_every_command_of_the_table_has_an_act_and_no_act_is_without_one():
    on_screen = set(ScreenInteraction(None).screen_commands)
    assert set(COMMANDS) | on_screen == {one.name for one in TABLE}
    assert on_screen == {one.name for one in TABLE if one.where == "screen"}


def test_help_lists_every_command_and_one_alone_in_a_line(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/help")
        page = await opens(pilot, TextDialog)
        text = "\n".join(line for line, _ in page.sheet._given)
        assert all(one.spelled in text for one in TABLE)
        assert "Ctrl+R" in text
        await pilot.press("escape")
        await closes(pilot)
        await obey(pilot, "/help quit")
        await shows(pilot, "/quit: leave; the session is kept. Also: /exit, /q.")

    play(tmp_path, story)


def test_an_unknown_command_is_one_notice_and_the_line_is_there_to_be_mended(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/modle x")
        await shows(pilot, "there is no command /modle. Did you mean /mode")
        assert pilot.app.main.composer.text == "/modle x"
        assert not house.is_begun

    play(tmp_path, story)


def test_new_is_another_session_in_the_mode_of_the_settings(tmp_path):
    async def story(pilot, house):
        await say(pilot, "hi")
        first = house.session.id
        await obey(pilot, "/mode auto")
        await until(pilot, lambda: house.mode == "auto")
        await obey(pilot, "/new")
        await shows(pilot, "A new session, mode ask.")
        assert (house.session.id != first, house.mode) == (True, "ask")
        assert "hi" not in [getattr(one, "text", "") for one in blocks(pilot)]

    play(tmp_path, story, "Hello.")


def test_mode_before_the_first_prompt_holds_for_it(tmp_path):
    """P4"""

    async def story(pilot, house):
        await obey(pilot, "/mode plan")
        await shows(pilot, "Mode plan: reads and plans; changes nothing.")
        assert house.mode == "plan"
        await say(pilot, "hi")
        assert house.session.mode == "plan"
        await obey(pilot, "/mode fast")
        await shows(pilot, "there is no mode fast. There are plan, ask, edits, auto.")

    play(tmp_path, story, "Hello.")


def test_mode_alone_offers_the_modes(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/mode")
        await opens(pilot, ChoiceDialog)
        await pilot.press(*"edits")
        await press(pilot, "enter")
        await closes(pilot)
        await until(pilot, lambda: house.mode == "edits")

    play(tmp_path, story)


def test_plan_with_words_begins_a_turn_in_plan_mode(tmp_path):
    """P4"""

    async def story(pilot, house):
        await obey(pilot, "/plan look around")
        await shows(pilot, "I looked.")
        assert house.mode == "plan"

    play(tmp_path, story, "I looked.")


def test_sessions_opens_the_picker_and_resume_goes_there(tmp_path):
    async def story(pilot, house):
        await say(pilot, "first words")
        first = house.session.id
        await obey(pilot, "/new")
        await until(pilot, lambda: house.session.id != first)
        await obey(pilot, "/sessions")
        await opens(pilot, SessionPicker)
        await shows(pilot, "first words")
        await press(pilot, "enter")
        await closes(pilot)
        await until(pilot, lambda: house.session.id == first)
        await shows(pilot, "Hello.")
        await obey(pilot, f"/resume {first}")
        await shows(pilot, "You are in that session already.")
        await obey(pilot, "/resume nosuch")
        await shows(pilot, "nosuch")
        assert house.session.id == first

    play(tmp_path, story, "Hello.")


def test_fork_goes_on_in_a_copy(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/fork")
        await shows(pilot, "this session is empty")
        await say(pilot, "hi")
        first = house.session.id
        await obey(pilot, "/fork")
        await shows(pilot, "forked from")
        assert house.session.id != first
        await shows(pilot, "Hello.")
        await obey(pilot, "/fork x")
        await shows(pilot, "/fork takes a number from 1 to 999999999, not “x”")

    play(tmp_path, story, "Hello.")


def test_rewind_takes_turns_back(tmp_path):
    async def story(pilot, house):
        await say(pilot, "hi")
        await say(pilot, "and?")
        await obey(pilot, "/rewind")
        await shows(pilot, "taken back")
        assert "and?" not in await house.preview(house.session.id)
        shown = pilot.app.main.conversation.window.copied_text(lambda _: (0, -1))
        assert "Hello." in shown and "Again." not in shown
        assert "taken back: “and?”;" in shown  # and not by whom: that is who reads it
        composer = pilot.app.main.composer
        await until(pilot, lambda: composer.text == "and?")  # to be asked in another way
        await obey(pilot, "/copy")
        await shows(pilot, "Copied")
        assert pilot.app.clipboard == "Hello."
        await obey(pilot, "/rewind 0")
        await shows(pilot, "/rewind takes a number from 1")

    play(tmp_path, story, "Hello.", "Again.")


def test_undo_shows_the_diff_first_and_puts_back_on_yes_alone(tmp_path):
    async def story(pilot, house):
        path = tmp_path / "workspace" / "a.txt"
        path.write_text("before\n")
        await obey(pilot, "/mode edits")
        await say(pilot, "read it")
        await say(pilot, "change it")
        assert path.read_text() == "after\n"
        await obey(pilot, "/undo")
        await opens(pilot, ConfirmDialog)
        await shows(pilot, "a.txt  will be restored")
        await press(pilot, "n")
        await shows(pilot, "Nothing was restored.")
        assert path.read_text() == "after\n"
        await obey(pilot, "/undo")
        await opens(pilot, ConfirmDialog)
        await press(pilot, "y")
        await until(pilot, lambda: path.read_text() == "before\n")
        await shows(pilot, "undone")

    replies = [call("read", path="a.txt"), "Read.", call("write", path="a.txt", content="after\n")]
    play(tmp_path, story, *replies, "Done.")


def test_model_and_agent_are_changed_by_name_or_from_a_list(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/model offline")
        await shows(pilot, "Model: offline")
        await obey(pilot, "/model nosuch/thing")
        await shows(pilot, "nosuch")
        assert house.model.startswith("offline")
        await obey(pilot, "/model")
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "offline")
        await pilot.press("escape")
        await closes(pilot)
        await obey(pilot, "/agent")
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "loop")
        await pilot.press("escape")
        await closes(pilot)
        await obey(pilot, "/agent loop")
        await shows(pilot, "Agent: loop")

    play(tmp_path, story)
