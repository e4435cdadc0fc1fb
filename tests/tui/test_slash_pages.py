"""The other `/` commands on the screen: pages, budget, export, theme, copy, editor, own (A9)."""

import pytest

from bridle.tui.dialogs import ChoiceDialog, ConfirmDialog, TextDialog
from tui.rig import call
from tui.screen_rig import say, seen, shows, until
from tui.slash_rig import closes, obey, opens, play, press


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/tools", "shell"),
        ("/mcp", "No MCP server is set up here"),
        ("/policy", "Policy"),
        ("/budget", "money, this session"),
        ("/cost", "tokens out"),
        ("/doctor", "This session uses scripted"),
    ],
)
def test_what_only_shows_something_is_a_page(tmp_path, line, words):
    async def story(pilot, house):
        await obey(pilot, line)
        await opens(pilot, TextDialog)
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
            (name, used.replace("cost unknown", "$0.00"), most)
            for name, used, most in await house.budget()
        ]
        await obey(pilot, "/budget lots")
        await shows(pilot, "lots is not an amount of money")

    play(tmp_path, story, "Hello.")


def test_approvals_says_so_where_nobody_waits(tmp_path):
    async def story(pilot, house):
        await obey(pilot, "/approvals")
        await shows(pilot, "No session needs approval.")

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
        await opens(pilot, ConfirmDialog)
        await press(pilot, "n")
        await shows(pilot, "Nothing was written.")
        assert path.read_text() == "mine"
        await obey(pilot, "/export talk.md")
        await opens(pilot, ConfirmDialog)
        await press(pilot, "y")
        await until(pilot, lambda: "Hello." in path.read_text())

    play(tmp_path, story, "Hello.")


def test_theme_changes_the_colours_and_is_saved_only_when_asked(tmp_path, monkeypatch):
    config = tmp_path / "config.yaml"
    config.write_text("# mine\nmode: ask\n")
    monkeypatch.setenv("BRIDLE_CONFIG", str(config))

    async def story(pilot, house):
        await obey(pilot, "/theme light")
        await opens(pilot, ConfirmDialog)
        assert pilot.app.theme == "bridle-light"
        await press(pilot, "n")
        await shows(pilot, "Theme light, for now.")
        assert config.read_text() == "# mine\nmode: ask\n"
        await obey(pilot, "/theme")
        await opens(pilot, ChoiceDialog)
        await pilot.press(*"dark")
        await press(pilot, "enter")
        await opens(pilot, ConfirmDialog)
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
        await opens(pilot, ChoiceDialog)
        await press(pilot, "enter")
        await closes(pilot)
        await obey(pilot, "/new")
        await until(pilot, lambda: house.session.id != first)
        await obey(pilot, "/search needle")
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "A fine title")
        await press(pilot, "enter")
        await until(pilot, lambda: house.session.id == first)

    play(tmp_path, story, "In the haystack.")


def test_search_goes_to_the_very_place_in_this_session_too(tmp_path):
    async def story(pilot, house):
        await say(pilot, "tell me")
        await say(pilot, "at length")
        await shows(pilot, "line 79")
        assert "A needle." not in seen(pilot)
        await obey(pilot, "/search needle")
        await opens(pilot, ChoiceDialog)
        await press(pilot, "enter")
        await closes(pilot)
        await shows(pilot, "A needle.")
        assert "already" not in seen(pilot)

    long = "\n".join(f"- line {number}" for number in range(80))
    play(tmp_path, story, "A needle.", long)


def test_the_editor_writes_the_prompt_and_its_text_is_neutral(tmp_path, monkeypatch):
    editor = tmp_path / "ed.sh"
    editor.write_text("#!/bin/sh\nprintf 'from the editor \\033[2J' > \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)

    async def story(pilot, house):
        monkeypatch.setenv("EDITOR", str(editor))
        await pilot.press(*"half", "ctrl+g")
        composer = pilot.app.main.composer
        await until(pilot, lambda: composer.text == "from the editor \\x1b[2J")
        monkeypatch.setenv("EDITOR", "/no/such/editor")
        await obey(pilot, "/editor")
        await shows(pilot, "/no/such/editor, which was not found")

    play(tmp_path, story)


def test_earlier_prompts_are_searched(tmp_path):
    async def story(pilot, house):
        await say(pilot, "one thing")
        await say(pilot, "two things")
        await pilot.press("ctrl+r")
        await opens(pilot, ChoiceDialog)
        await pilot.press(*"one")
        await press(pilot, "enter")
        await closes(pilot)
        await until(pilot, lambda: pilot.app.main.composer.text == "one thing")

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
        await opens(pilot, TextDialog)
        await pilot.press("escape")
        await closes(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not house.session.is_busy)

    play(tmp_path, story, call("shell", command="sleep 30"), "Done.", mode="auto")
