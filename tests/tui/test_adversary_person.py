"""An unlucky person: keys that come too fast, an editor that fails, a terminal that goes (S8)."""

import asyncio
import os
from collections.abc import Callable

import pytest
from textual import events

from bridle.cli.local_backend import LocalBackend
from bridle.cli.setup import Setup
from bridle.presentation.blocks import Prompt
from bridle.tui.app import BridleApp
from bridle.tui.widgets.composer import Composer
from bridle.tui.widgets.history import Drafts
from rig import run
from tui.rig import own_house, script, workspace_in
from tui.screen_rig import app_at, say, shows, until
from tui.test_opening import Terminal


class Slow(LocalBackend):
    """A house whose verbs take their time."""

    gate: asyncio.Event

    async def renew(self):
        await self.gate.wait()
        await super().renew()

    async def change_mode(self, mode):
        await self.gate.wait()
        await super().change_mode(mode)


def slow_house(tmp_path, *replies):
    folder = workspace_in(tmp_path)
    given = {"workspace": str(folder), "model": script(tmp_path, *replies)}
    house = Slow(Setup(given), given, told=[])
    house.gate = asyncio.Event()
    return house


async def typed(pilot, *lines):
    """Each sent with Enter, one right after the other."""
    for line in lines:
        pilot.app.main.composer.load(line)
        await pilot.press("enter")


class Opening(LocalBackend):
    """A house that opens when `gate` is set, and says so to `entered` in the same instant."""

    gate: asyncio.Event
    entered: Callable[[], None] | None

    async def enter(self):
        await self.gate.wait()
        await super().enter()

    @property
    def me(self):
        """What the screen asks for in the loop iteration in which it opens the session."""
        entered, self.entered = self.entered, None
        if entered is not None:
            entered()
        return super().me


def test_a_prompt_that_is_sent_as_the_session_opens_comes_after_those_that_waited_for_it(tmp_path):
    async def story():
        folder = workspace_in(tmp_path)
        given = {"workspace": str(folder), "model": script(tmp_path, *["done"] * 4)}
        house = Opening(Setup(given), given, told=[])
        house.gate = asyncio.Event()
        app = BridleApp(lambda: house)
        submit = app.main.on_composer_submitted
        house.entered = lambda: submit(Composer.Submitted("four", "idle"))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.main.session)
            await typed(pilot, "one", "two", "three")
            house.gate.set()
            await until(pilot, lambda: len(prompts_of(app)) == 4)
            assert prompts_of(app) == ["one", "two", "three", "four"]
        await house.leave()

    run(story())


def test_the_cursor_stays_where_it_is_when_the_session_opens(tmp_path):
    async def story():
        folder = workspace_in(tmp_path)
        given = {"workspace": str(folder), "model": script(tmp_path, "done")}
        house = Opening(Setup(given), given, told=[])
        house.gate, house.entered = asyncio.Event(), None
        app = BridleApp(lambda: house)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.main.session)
            await pilot.press(*"hello", "ctrl+a")
            house.gate.set()
            await until(pilot, lambda: app.main.is_ready)
            await pilot.press(*"XY")
            assert app.main.composer.text == "XYhello"
        await house.leave()

    run(story())


def prompts_of(app):
    """The prompts of the conversation, in their order."""
    return [one.text for one in app.main.conversation.fold.blocks if isinstance(one, Prompt)]


def test_a_prompt_that_follows_new_is_for_the_new_session(tmp_path):
    async def story():
        house = slow_house(tmp_path, "one", "two")
        async with app_at(house) as pilot:
            await say(pilot, "first")
            old = house.session
            count = old.seq
            await typed(pilot, "/new", "second")
            for _ in range(20):
                await pilot.pause(0.005)
            house.gate.set()
            await shows(pilot, "two")
            assert house.session.id != old.id
            assert old.seq == count

    run(story())


def test_a_prompt_that_follows_a_mode_is_sent_in_that_mode(tmp_path):
    async def story():
        house = slow_house(tmp_path, "one")
        async with app_at(house) as pilot:
            await typed(pilot, "/mode plan", "look around")
            for _ in range(20):
                await pilot.pause(0.005)
            assert house.session.seq == 0
            house.gate.set()
            await shows(pilot, "one")
            assert house.mode == "plan"

    run(story())


def test_what_is_typed_is_kept_when_a_signal_ends_it(tmp_path):
    async def story():
        house = own_house(tmp_path, "one")
        async with app_at(house) as pilot:
            await say(pilot, "first")
            pilot.app.main.composer.load("half a thought")
            pilot.app.main.session.prompt_queue.held.append("held back")
            pilot.app.terminate()
            await pilot.pause()
        kept = Drafts(tmp_path / "state").of(house.session.id)
        assert "half a thought" in kept
        assert "held back" in kept

    run(story())


def test_what_is_typed_is_kept_when_the_screen_breaks(tmp_path):
    async def story():
        house = own_house(tmp_path, "one")
        with pytest.raises(ZeroDivisionError):
            async with app_at(house) as pilot:
                await say(pilot, "first")
                pilot.app.main.composer.load("half a thought")
                pilot.app.main.call_later(lambda: 1 // 0)
                await pilot.pause(0.05)
        assert Drafts(tmp_path / "state").of(house.session.id) == "half a thought"

    run(story())


def test_an_editor_without_room_for_its_file_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    async def story():
        async with app_at(own_house(tmp_path, "one")) as pilot:
            pilot.app.main.composer.load("a prompt")
            await pilot.press("ctrl+g")
            await shows(pilot, "is unchanged")
            assert pilot.app.main.composer.full_text == "a prompt"

    run(story())


@pytest.mark.parametrize(
    "editor", ["false", "/nowhere/ed", "'unclosed", "rm -rf", "sh -c 'kill $$'"]
)
def test_an_editor_that_fails_changes_nothing(tmp_path, monkeypatch, editor):
    monkeypatch.setenv("EDITOR", editor)

    async def story():
        async with app_at(own_house(tmp_path, "one")) as pilot:
            pilot.app.main.composer.load("a prompt")
            await pilot.press("ctrl+g")
            await until(pilot, lambda: len(pilot.app.main.conversation.fold.blocks) > 0)
            assert pilot.app.main.composer.full_text == "a prompt"
            assert pilot.app.failure is None

    run(story())


def test_an_editor_that_writes_rubbish_gives_harmless_text(tmp_path, monkeypatch):
    program = tmp_path / "ed.py"
    program.write_text(
        "import sys; open(sys.argv[1], 'wb').write(b'a\\xff\\x1b[31m\\0\\r\\n\\x85b' * 99)"
    )
    monkeypatch.setenv("EDITOR", f"{os.sys.executable} {program}")

    async def story():
        async with app_at(own_house(tmp_path, "one")) as pilot:
            await pilot.press("ctrl+g")
            await until(pilot, lambda: pilot.app.main.composer.full_text)
            assert "\x1b" not in pilot.app.main.composer.full_text
            assert "\0" not in pilot.app.main.composer.full_text

    run(story())


def test_ctrl_c_in_the_editor_is_the_editor_s(tmp_path):
    program = tmp_path / "ed.sh"
    program.write_text(
        "trap 'echo INTERRUPTED' INT\necho EDITING\nuntil read word; do :; done\n"
        'echo "$word from the editor" > "$1"\n'
    )
    model = script(tmp_path, "one")
    terminal = Terminal(tmp_path, "-m", model, environ={"EDITOR": f"sh {program}"})
    try:
        terminal.until("sandbox")
        terminal.type("\x07")
        terminal.until("EDITING")
        terminal.type("\x03\x03")
        terminal.until("INTERRUPTED")
        terminal.type("words\r")
        terminal.until("words from the editor")
        terminal.type("\x03\x03\x03")
        assert terminal.end() == 0
        assert terminal.is_sane()
    finally:
        terminal.close()


def test_what_is_typed_behind_enter_is_no_part_of_what_was_sent(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, "one", "two")) as pilot:
            lines = pilot.app.main.composer._input
            for character in "first\rsecond\ryyy":
                key = "enter" if character == "\r" else character
                lines.post_message(events.Key(key, character))
            await shows(pilot, "two")
            sent = [
                one.text for one in pilot.app.main.conversation.fold.blocks if type(one) is Prompt
            ]
            assert sent == ["first", "second"]
            assert pilot.app.main.composer.full_text == "yyy"

    run(story())


def test_a_command_typed_in_one_go_is_not_completed_to_another(tmp_path):
    async def story():
        house = own_house(tmp_path, "one")
        async with app_at(house) as pilot:
            await pilot.press("/", "m", "o")
            await until(pilot, lambda: pilot.app.main.composer.is_listing)
            lines = pilot.app.main.composer._input
            for character in "de edits\r":
                key = {"\r": "enter", " ": "space"}.get(character, character)
                lines.post_message(events.Key(key, character))
            await until(pilot, lambda: house.mode == "edits")

    run(story())
