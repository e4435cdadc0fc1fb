"""Every `/` command on the screen, in a real house with a scripted model (A9, S10)."""

from time import monotonic

import pytest
from textual import events

from bridle.tui.commands import TABLE
from bridle.tui.dialogs import Choose, Confirm, TextPage
from bridle.tui.obeying import ACTS
from bridle.tui.picker import Picker
from rig import run
from tui.rig import call, own_house
from tui.screen_rig import app_at, blocks, say, seen, shows, until


def play(tmp_path, story, *replies, size=(100, 30), **flags):
    """Tell a story on the whole screen."""

    async def whole():
        async with app_at(own_house(tmp_path, *replies, **flags), size) as pilot:
            await story(pilot, pilot.app.house)

    run(whole())


async def obey(pilot, line):
    """Type a command and press Enter."""
    pilot.app.chat.composer.load(line)
    await pilot.press("enter")


async def press(pilot, key):
    """A key that the guard of a dialog believes: pressed a while after it was drawn."""
    await until(pilot, lambda: pilot.app.screen.guard.is_drawn)
    event = events.Key(key, key if len(key) == 1 else None)
    event.time = monotonic() + 1
    pilot.app.post_message(event)
    await pilot.pause()


async def opens(pilot, kind):
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    return pilot.app.screen


async def closes(pilot):
    await until(pilot, lambda: pilot.app.screen is pilot.app.chat)


def test_every_command_of_the_table_has_an_act_and_no_act_is_without_one():
    assert set(ACTS) == {one.name for one in TABLE}


def test_help_lists_every_command_and_one_alone_in_a_line(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/help")
        page = await opens(pilot, TextPage)
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
        assert pilot.app.chat.composer.text == "/modle x"
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
        await shows(pilot, "Mode plan: looks and plans; changes nothing.")
        assert house.mode == "plan"
        await say(pilot, "hi")
        assert house.session.mode == "plan"
        await obey(pilot, "/mode fast")
        await shows(pilot, "there is no mode fast. There are plan, ask, edits, auto.")

    play(tmp_path, story, "Hello.")


def test_mode_alone_offers_the_modes(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/mode")
        await opens(pilot, Choose)
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
        await opens(pilot, Picker)
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
        await shows(pilot, "nothing was said in this session yet")
        await say(pilot, "hi")
        first = house.session.id
        await obey(pilot, "/fork")
        await shows(pilot, "forked from")
        assert house.session.id != first
        await shows(pilot, "Hello.")
        await obey(pilot, "/fork x")
        await shows(pilot, "/fork takes a whole number from 1 on, and not x")

    play(tmp_path, story, "Hello.")


def test_rewind_takes_turns_back(tmp_path):
    async def story(pilot, house):
        await say(pilot, "hi")
        await say(pilot, "and?")
        await obey(pilot, "/rewind")
        await shows(pilot, "taken back to")
        assert "and?" not in await house.preview(house.session.id)
        await obey(pilot, "/rewind 0")
        await shows(pilot, "/rewind takes a whole number")

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
        await opens(pilot, Confirm)
        await shows(pilot, "a.txt  changes back")
        await press(pilot, "n")
        await shows(pilot, "Nothing was put back.")
        assert path.read_text() == "after\n"
        await obey(pilot, "/undo")
        await opens(pilot, Confirm)
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
        await opens(pilot, Choose)
        await shows(pilot, "offline")
        await pilot.press("escape")
        await closes(pilot)
        await obey(pilot, "/agent")
        await opens(pilot, Choose)
        await shows(pilot, "loop")
        await pilot.press("escape")
        await closes(pilot)
        await obey(pilot, "/agent loop")
        await shows(pilot, "Agent: loop")

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/tools", "shell"),
        ("/mcp", "No MCP server is set up here"),
        ("/policy", "Policy"),
        ("/budget", "money, this session"),
        ("/cost", "tokens out"),
        ("/doctor", "Doctor"),
    ],
)
def test_what_only_shows_something_is_a_page(tmp_path, line, words):
    async def story(pilot, house):
        await obey(pilot, line)
        await opens(pilot, TextPage)
        await shows(pilot, words)
        await pilot.press("escape")
        await closes(pilot)

    play(tmp_path, story)


def test_a_budget_is_set_and_nonsense_is_refused(tmp_path):
    async def story(pilot, house):
        await say(pilot, "hi")
        await obey(pilot, "/budget 2,50")
        await shows(pilot, "may spend $2.50 in all")
        assert ("money, this session", "$0.00", "$2.50") in [
            (name, used.replace("unknown", "$0.00"), most)
            for name, used, most in await house.budget()
        ]
        await obey(pilot, "/budget lots")
        await shows(pilot, "lots is no sum of money")

    play(tmp_path, story, "Hello.")


def test_approvals_says_so_where_nobody_waits(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/approvals")
        await shows(pilot, "No session waits for an answer.")

    play(tmp_path, story)


def test_compact_says_what_came_of_it(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/compact")
        await shows(pilot, "There is nothing to shorten.")

    play(tmp_path, story)


def test_export_writes_a_file_and_asks_before_it_writes_over_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def story(pilot, house):
        await obey(pilot, "/export")
        await shows(pilot, "/export needs FILE. For example: /export talk.md")
        await say(pilot, "hi")
        await obey(pilot, "/export talk.md")
        await shows(pilot, "written to")
        path = tmp_path / "talk.md"
        assert "Hello." in path.read_text()
        path.write_text("mine")
        await obey(pilot, "/export talk.md")
        await opens(pilot, Confirm)
        await press(pilot, "n")
        await shows(pilot, "Nothing was written.")
        assert path.read_text() == "mine"
        await obey(pilot, "/export talk.md")
        await opens(pilot, Confirm)
        await press(pilot, "y")
        await until(pilot, lambda: "Hello." in path.read_text())

    play(tmp_path, story, "Hello.")


def test_theme_changes_the_colours_and_is_saved_only_when_asked(tmp_path, monkeypatch):
    config = tmp_path / "config.yaml"
    config.write_text("# mine\nmode: ask\n")
    monkeypatch.setenv("BRIDLE_CONFIG", str(config))

    async def story(pilot, house):
        await obey(pilot, "/theme light")
        await opens(pilot, Confirm)
        assert pilot.app.theme == "bridle-light"
        await press(pilot, "n")
        await shows(pilot, "Theme light, for this time.")
        assert config.read_text() == "# mine\nmode: ask\n"
        await obey(pilot, "/theme")
        await opens(pilot, Choose)
        await pilot.press(*"dark")
        await press(pilot, "enter")
        await opens(pilot, Confirm)
        await press(pilot, "y")
        await shows(pilot, "Theme dark, written to")
        assert config.read_text() == "# mine\nmode: ask\ntheme: dark\n"
        await obey(pilot, "/theme pink")
        await shows(pilot, "there is no theme pink")

    play(tmp_path, story)


def test_copy_copies_neutral_text(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/copy")
        await shows(pilot, "there is nothing to copy yet")
        await say(pilot, "hi")
        await obey(pilot, "/copy code")
        await shows(pilot, "Copied: 15 characters")
        assert pilot.app.clipboard == "print(1)\\x1b[1m"
        await obey(pilot, "/copy")
        await until(pilot, lambda: pilot.app.clipboard.startswith("See:"))
        await obey(pilot, "/copy all")
        await shows(pilot, "/copy does not know all")

    play(tmp_path, story, "See:\n\n```python\nprint(1)\x1b[1m\n```\n")


def test_rename_search_and_find(tmp_path):
    async def story(pilot, house):
        await say(pilot, "where is the needle")
        first = house.session.id
        await obey(pilot, "/rename A fine title")
        await shows(pilot, "Renamed: A fine title")
        assert house.session.title == "A fine title"
        await obey(pilot, "/find needle")
        await opens(pilot, Choose)
        await press(pilot, "enter")
        await closes(pilot)
        await obey(pilot, "/new")
        await until(pilot, lambda: house.session.id != first)
        await obey(pilot, "/search needle")
        await opens(pilot, Choose)
        await shows(pilot, "A fine title")
        await press(pilot, "enter")
        await until(pilot, lambda: house.session.id == first)

    play(tmp_path, story, "In the haystack.")


def test_the_editor_writes_the_prompt_and_its_text_is_neutral(tmp_path, monkeypatch):
    editor = tmp_path / "ed.sh"
    editor.write_text("#!/bin/sh\nprintf 'from the editor \\033[2J' > \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)

    async def story(pilot, house):
        monkeypatch.setenv("EDITOR", str(editor))
        await pilot.press(*"half", "ctrl+g")
        composer = pilot.app.chat.composer
        await until(pilot, lambda: composer.text == "from the editor \\x1b[2J")
        monkeypatch.setenv("EDITOR", "/no/such/editor")
        await obey(pilot, "/editor")
        await shows(pilot, "/no/such/editor cannot be started")

    play(tmp_path, story)


def test_earlier_prompts_are_searched(tmp_path):
    async def story(pilot, house):
        await say(pilot, "one thing")
        await say(pilot, "two things")
        await pilot.press("ctrl+r")
        await opens(pilot, Choose)
        await pilot.press(*"one")
        await press(pilot, "enter")
        await closes(pilot)
        await until(pilot, lambda: pilot.app.chat.composer.text == "one thing")

    play(tmp_path, story, "Hello.", "Hello.")


def test_a_users_own_command_is_a_prompt(tmp_path, monkeypatch):
    folder = tmp_path / "config" / "bridle" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("# Look at it\n\nReview $ARGUMENTS please.")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def story(pilot, house):
        await obey(pilot, "/review the plan")
        await shows(pilot, "Looks good.")
        assert "Review the plan please." in seen(pilot)

    play(tmp_path, story, "Looks good.")


def test_quit_leaves_and_keeps_what_was_typed(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/quit")
        await until(pilot, lambda: pilot.app.return_code is not None or not pilot.app.is_running)

    play(tmp_path, story)


def test_commands_typed_while_a_turn_runs_are_obeyed_at_once(tmp_path):
    async def story(pilot, house):
        await say(pilot, "wait", wait=False)
        await until(pilot, lambda: house.session.is_busy)
        await obey(pilot, "/cost")
        await opens(pilot, TextPage)
        await pilot.press("escape")
        await closes(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not house.session.is_busy)

    play(tmp_path, story, call("shell", command="sleep 30"), "Done.", mode="auto")
