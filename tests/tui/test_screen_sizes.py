"""The screen in windows of any size, in light and dark, without colours, and with long sessions."""

import random

import pytest
from rich.style import Style

from bridle.events import PromptReceived, ResponseCompleted, TextDelta, ToolResultEvent, TurnEnded
from bridle.messages import Message, Text, ToolOutput
from bridle.presentation.fold import Fold
from bridle.protocols.store import Record
from bridle.tui.render.no_color import attributes_only
from bridle.tui.render.palette import DARK, LIGHT
from bridle.tui.render.window import MOST
from rig import run, seeds
from tui.rig import call, own_house
from tui.screen_rig import app_at, say, seen, shows, until


def words(pilot):
    """What is seen, without the scroll bar."""
    return [line[:78].rstrip() for line in seen(pilot).splitlines()]


async def grown(pilot):
    """Make the window large again, and wait until it can be typed into."""
    await pilot.resize_terminal(80, 24)
    await until(pilot, lambda: pilot.app.main.composer.has_focus_within)


def long_fold(turns):
    fold, seq = Fold(), 0
    for turn in range(1, turns + 1):
        for event in (
            PromptReceived(f"prompt {turn}", turn=turn),
            TextDelta(f"answer {turn}"),
            ResponseCompleted("complete", Message("assistant", (Text(f"answer {turn}"),))),
            ToolResultEvent(ToolOutput(f"c{turn}", "a\nb", name="read")),
            TurnEnded(turn, "done"),
        ):
            seq += 1
            fold.apply(Record(seq, "", event))
    return fold


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20), (40, 12), (24, 7)])
def test_everything_that_counts_is_seen_in_windows_of_any_use(tmp_path, size):
    """S10"""

    async def story():
        house = own_house(tmp_path, call("read", path="nothing"), {"text": "Hello there."})
        async with app_at(house, size) as pilot:
            await say(pilot, "hi")
            shown = seen(pilot).splitlines()
            assert any("Hello there." in line for line in shown)
            assert shown[-1].strip().startswith("ask"), "the mode is the last thing to go"
            assert ("context" in seen(pilot)) == (size[0] >= 100)

    run(story())


@pytest.mark.parametrize("size", [(20, 5), (23, 40), (100, 6), (2, 2), (1, 1)])
def test_a_window_that_is_too_small_says_so_and_loses_nothing(tmp_path, size):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello there."}), size) as pilot:
            if size[0] >= 20:
                assert "too small" in " ".join(seen(pilot).split())
            await grown(pilot)
            await say(pilot, "hi")
            await pilot.press(*"draft")
            await pilot.resize_terminal(*size)
            await grown(pilot)
            await shows(pilot, "❯ hi")
            await pilot.press("s")
            assert pilot.app.main.composer.text == "drafts"

    run(story())


def test_a_storm_of_resizes_while_it_streams_ends_in_order(tmp_path):
    chance = random.Random(7)

    async def story():
        house = own_house(tmp_path, {"text": "word " * 300 + "the end", "pause": 0.002})
        async with app_at(house) as pilot:
            await say(pilot, "go", wait=False)
            for _ in seeds(200):
                await pilot.resize_terminal(chance.randint(1, 140), chance.randint(1, 50))
            await pilot.resize_terminal(80, 24)
            await shows(pilot, "the end")
            assert pilot.app.main.conversation.follows

    run(story())


@pytest.mark.parametrize(("chosen", "palette"), [("dark", DARK), ("light", LIGHT)])
def test_themes_change_what_is_drawn(tmp_path, chosen, palette):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello."}), theme=chosen) as pilot:
            await say(pilot, "hi")
            svg = pilot.app.export_screenshot()
            assert palette.background in svg
            other = LIGHT if palette is DARK else DARK
            pilot.app.theme = other.name
            await until(pilot, lambda: other.background in pilot.app.export_screenshot())
            assert pilot.app.main.conversation.window.painter.pen.palette is other

    run(story())


def test_without_colours_no_colour_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello."})) as pilot:
            await say(pilot, "hi")
            assert "Hello." in seen(pilot)
            pilot.app.main.composer.load("typed")
            await shows(pilot, "typed")
            found = styles_of(pilot.app.screen)
            assert not [one for one in found if one.color or one.bgcolor]
            assert any(one.dim for one in found)
            screen = pilot.app.screen
            await until(pilot, lambda: any(one.reverse for one in styles_of(screen)))  # it blinks
            await pilot.press("f1")  # the keys, on a page of their own
            await until(pilot, lambda: pilot.app.screen is not pilot.app.main)
            await pilot.pause()
            assert not [one for one in styles_of(pilot.app.screen) if one.color or one.bgcolor]

    run(story())


def test_an_empty_wish_for_no_colours_is_none_as_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")

    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello."})) as pilot:
            await say(pilot, "hi")
            colours = {
                one.color.get_truecolor() for one in styles_of(pilot.app.screen) if one.color
            }
            assert any(len({one.red, one.green, one.blue}) > 1 for one in colours)  # no greys alone

    run(story())


def styles_of(screen):
    """How every piece of text is drawn."""
    strips = screen._compositor.render_strips()
    return {piece.style for strip in strips for piece in strip if piece.style is not None}


def test_what_stood_out_by_its_ground_is_reversed_and_what_was_faint_is_dim():
    def drawn(style, palette):
        found = attributes_only(Style.parse(style), palette.background, palette.dim)
        assert found.color is None and found.bgcolor is None
        return str(found)

    for palette in (DARK, LIGHT):
        assert drawn(f"{palette.text} on {palette.background}", palette) == "none"
        assert drawn(f"{palette.text} on {palette.panel}", palette) == "none"
        assert drawn(f"bold {palette.bad} on {palette.removed}", palette) == "bold"
        assert drawn(f"{palette.dim} on {palette.surface}", palette) == "dim"
        assert drawn(f"{palette.background} on {palette.text}", palette) == "reverse"
        assert drawn(f"{palette.background} on {palette.accent}", palette) == "reverse"
        assert drawn(f"reverse {palette.text} on {palette.background}", palette) == "reverse"
    assert drawn("black on cyan", DARK) == "reverse"
    assert drawn("red on default", DARK) == "none"


def test_a_light_terminal_gets_the_light_theme(tmp_path, monkeypatch):
    monkeypatch.setenv("COLORFGBG", "0;15")

    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello."})) as pilot:
            assert pilot.app.theme == LIGHT.name

    run(story())


def test_of_a_long_session_only_the_end_is_drawn_and_the_rest_comes_by_scrolling(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            view = pilot.app.main.conversation
            fold = long_fold(2000)
            view.show(fold)
            await shows(pilot, "answer 2000")
            assert len(fold.blocks) - view.window.first < 200
            first = view.window.first
            await pilot.press("pageup", "pageup", "pageup")
            before = words(pilot)
            for _ in range(12):
                await pilot.press("pageup")
            await until(pilot, lambda: view.window.first < first)
            assert not view.follows
            for _ in range(12):
                await pilot.press("pagedown")
            await until(pilot, lambda: words(pilot) == before)
            await pilot.press("ctrl+end")
            await shows(pilot, "answer 2000")
            assert view.follows

    run(story())


def test_ctrl_home_goes_to_the_very_first_block_at_once(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            view = pilot.app.main.conversation
            view.show(long_fold(1200))
            await pilot.press("ctrl+home")
            await until(pilot, lambda: "❯ prompt 1\n" in seen(pilot).replace(" \n", "\n"))

    run(story())


def test_what_is_drawn_stays_bounded_however_long_it_goes_on(tmp_path):
    """Memory is flat: what went by is not kept drawn."""

    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            view = pilot.app.main.conversation
            fold = Fold()
            view.show(fold)
            for seq, block in enumerate(long_fold(1000).blocks):
                fold.add(block)
                if not seq % 25:
                    view.refresh_blocks()
            view.refresh_blocks()
            await pilot.pause()
            assert len(fold.blocks) - view.window.first <= MOST + 40
            assert len(view.window.painter._growths) <= MOST + 40

    run(story())


def test_what_comes_at_once_in_great_number_is_drawn_from_its_end(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            view = pilot.app.main.conversation
            fold = long_fold(3)
            view.show(fold)
            for block in long_fold(500).blocks:
                fold.add(block)
            view.refresh_blocks()
            await shows(pilot, "answer 500")
            assert len(fold.blocks) - view.window.first < 200
            await pilot.press("pageup", "pageup")
            assert "answer 49" in seen(pilot)

    run(story())


def test_who_has_scrolled_up_is_left_there_while_more_comes(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            view = pilot.app.main.conversation
            fold = long_fold(60)
            view.show(fold)
            await pilot.press("pageup", "pageup")
            before = words(pilot)
            fold.add(long_fold(1).blocks[0])
            view.refresh_blocks()
            await pilot.pause()
            assert words(pilot) == before

    run(story())
