"""The main screen on a real house: what streams in is seen, and what a person does counts (S10)."""

import asyncio

import pytest

from bridle.errors import SessionError
from bridle.presentation.blocks import Call, Notice, Prompt, Reply
from rig import run
from tui.rig import call, own_house
from tui.screen_rig import app_at, blocks, say, seen, shows, state, until

SLOW = {"text": "word " * 2000, "pause": 0.02}


def test_a_prompt_streams_its_answer_and_the_bar_says_what_holds(tmp_path):
    """S10"""

    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello **there**."})) as pilot:
            assert "F1 shows the keys" in seen(pilot)
            await say(pilot, "hi")
            shown = seen(pilot)
            assert "❯ hi" in shown
            assert "Hello there." in shown
            assert "scripted" in shown.splitlines()[-1]
            assert shown.splitlines()[-1].strip().startswith("ask")

    run(story())


def test_text_is_seen_while_it_streams(tmp_path):
    """S10: not only once the answer is whole."""

    async def story():
        async with app_at(own_house(tmp_path, SLOW)) as pilot:
            await say(pilot, "go", wait=False)
            await shows(pilot, "word word")
            assert state(pilot).busy
            assert "Esc to stop" in seen(pilot)
            await pilot.press("escape")
            await shows(pilot, "stopped")

    run(story())


def test_tools_results_errors_and_todos_are_seen(tmp_path):
    """S10: tools running, results, errors, and the activity and todo panel."""

    async def story():
        todos = [
            {"content": "read it", "status": "completed"},
            {"content": "mend it", "status": "pending"},
        ]
        replies = (
            call("todo_write", todos=todos),
            call("write", path="a.txt", content="one\n"),
            call("shell", command="echo out; exit 3"),
            {"text": "Ready."},
        )
        async with app_at(own_house(tmp_path, *replies, mode="auto"), (120, 40)) as pilot:
            await say(pilot, "go")
            shown = seen(pilot)
            for words in ("✓ write a.txt", "✗ shell echo out; exit 3", "exit code 3", "Ready."):
                assert words in shown
            for words in ("todo  1 of 2", "mend it", "1 file changed", "a.txt", "context", "cost"):
                assert words in shown

    run(story())


def test_a_call_unfolds_by_key_and_by_click_and_live_output_is_seen(tmp_path):
    """S10"""

    async def story():
        slow = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over"
        house = own_house(tmp_path, call("shell", command=slow), {"text": "Ready."}, mode="auto")
        async with app_at(house) as pilot:
            await say(pilot, "go", wait=False)
            await shows(pilot, "│ begun")
            (tmp_path / "workspace/go").write_text("")
            await until(pilot, lambda: state(pilot).turn and not state(pilot).busy)
            await until(pilot, lambda: "│ begun" not in seen(pilot))
            await pilot.press("ctrl+o")
            await shows(pilot, "│ over")
            await pilot.press("ctrl+o")
            await until(pilot, lambda: "│ over" not in seen(pilot))
            line = next(at for at, one in enumerate(seen(pilot).splitlines()) if "✓ shell" in one)
            await pilot.click("#conversation", offset=(4, line))
            await shows(pilot, "│ over")

    run(story())


def test_thoughts_are_folded_until_asked_for(tmp_path):
    """S10"""

    async def story():
        thought = "First I look.\n\nThen I leap."
        house = own_house(tmp_path, {"thinking": thought, "text": "Yes."})
        async with app_at(house) as pilot:
            await say(pilot, "go")
            assert "thought: First I look. Then I leap." in seen(pilot)
            await pilot.press("ctrl+t")
            await shows(pilot, "  Then I leap.")
            await pilot.press("ctrl+t")
            await shows(pilot, "thought:")

    run(story())


def test_blocks_are_chosen_and_unfolded_by_keys(tmp_path):
    async def story():
        (tmp_path / "workspace").mkdir()
        (tmp_path / "workspace/a").write_text("aaa\nAAA\n")
        (tmp_path / "workspace/b").write_text("bbb\nBBB\n")
        replies = call("read", path="a"), call("read", path="b"), {"text": "Ready."}
        async with app_at(own_house(tmp_path, *replies)) as pilot:
            await say(pilot, "go")
            await pilot.press("ctrl+up", "ctrl+up", "ctrl+o")
            await shows(pilot, "AAA")
            assert "BBB" not in seen(pilot)
            await pilot.press("ctrl+down", "ctrl+o")
            await shows(pilot, "BBB")
            await pilot.press("ctrl+down")
            assert pilot.app.main.conversation.window.chosen is None

    run(story())


def test_escape_stops_the_turn_and_holds_what_was_queued(tmp_path):
    """What waited does not begin by itself; it can be taken back or sent."""

    async def story():
        house = own_house(tmp_path, SLOW, {"text": "second"}, {"text": "third"})
        async with app_at(house) as pilot:
            await say(pilot, "one", wait=False)
            await shows(pilot, "word word")
            await say(pilot, "two", wait=False)
            await say(pilot, "three", wait=False)
            await shows(pilot, "queued: three")
            await pilot.press("escape")
            await shows(pilot, "on hold: three")
            await until(pilot, lambda: not state(pilot).busy)
            assert [one.text for one in blocks(pilot) if isinstance(one, Prompt)] == ["one"]
            notices = [one.text for one in blocks(pilot) if isinstance(one, Notice)]
            assert not [one for one in notices if "taken back" in one]  # they are held
            await pilot.press("alt+up")
            await until(pilot, lambda: pilot.app.main.composer.text == "three")
            await pilot.press("alt+down")
            await shows(pilot, "second")
            assert pilot.app.main.session.prompt_queue.held == []

    run(story())


def test_a_queued_prompt_can_be_taken_back_while_the_turn_runs(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, SLOW)) as pilot:
            await say(pilot, "one", wait=False)
            await shows(pilot, "word word")
            await say(pilot, "two", wait=False)
            await shows(pilot, "queued: two")
            await pilot.press("alt+up")
            await until(pilot, lambda: pilot.app.main.composer.text == "two")
            assert state(pilot).busy
            await until(pilot, lambda: not state(pilot).waiting)

    run(story())


def test_a_prompt_steers_the_running_turn(tmp_path):
    async def story():
        wait = "while [ ! -e go ]; do sleep 0.02; done"
        house = own_house(tmp_path, call("shell", command=wait), {"text": "Ready."}, mode="auto")
        async with app_at(house) as pilot:
            await say(pilot, "one", wait=False)
            await shows(pilot, "● shell")
            pilot.app.main.composer.load("to the left")
            await pilot.press("ctrl+s")
            await shows(pilot, "sent at the next step: to the left")
            await say(pilot, "to the right", wait=False)
            await shows(pilot, "queued: to the right")
            assert "next step: to the right" not in seen(pilot)
            (tmp_path / "workspace/go").write_text("")
            await shows(pilot, "Ready.")
            assert Prompt("to the left", steers=True) in blocks(pilot)

    run(story())


def test_the_mode_is_seen_and_the_person_leaves_a_plan(tmp_path):
    """P4: plan is shown, also before the first prompt; only the person's own key leaves it."""

    async def story():
        write = call("write", path="a.txt", content="x")
        house = own_house(tmp_path, write, {"text": "A plan."}, mode="plan")
        async with app_at(house) as pilot:
            assert "plan (read-only)" in seen(pilot).splitlines()[-1]
            await say(pilot, "go")
            assert not (tmp_path / "workspace/a.txt").exists()
            assert house.mode == "plan"
            await pilot.press("shift+tab")
            await until(pilot, lambda: house.mode == "ask")
            await pilot.press("shift+tab")
            await shows(pilot, "edits allowed")
            await pilot.press("shift+tab")
            await shows(pilot, "plan (read-only)")

    run(story())


def test_what_cannot_be_sent_comes_back_into_the_composer(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:

            async def refuse(text, *, when):
                raise SessionError("it is full", hint="Make room.")

            pilot.app.backend.session.send = refuse
            await say(pilot, "keep me", wait=False)
            await shows(pilot, "it is full → Make room.")
            assert pilot.app.main.composer.text == "keep me"
            assert isinstance(blocks(pilot)[-1], Notice)

    run(story())


@pytest.mark.parametrize("keys", [("ctrl+c", "ctrl+c"), ("ctrl+d",)])
def test_it_is_left_by_keys_and_a_draft_is_kept(tmp_path, keys):
    async def story():
        house = own_house(tmp_path, {"text": "x"})
        async with app_at(house) as pilot:
            await say(pilot, "hi")
            await pilot.press(*keys[:1])
            if len(keys) > 1:
                await shows(pilot, "Ctrl+C again to quit")
                assert pilot.app.is_running
                await pilot.press(*keys[1:])
            await until(pilot, lambda: pilot.app.return_code == 0)

    run(story())


def test_ctrl_d_on_a_text_deletes_and_does_not_leave(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            await pilot.press(*"abc", "home", "ctrl+d")
            await until(pilot, lambda: pilot.app.main.composer.text == "bc")

    run(story())


def test_f1_shows_the_keys_and_f2_the_side_panel(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            await pilot.press("f1")
            await shows(pilot, "send; queue while a turn runs")
            await asyncio.sleep(0)
            await until(pilot, lambda: pilot.app.screen is not pilot.app.main)
            pilot.app.pop_screen()
            assert "context" not in seen(pilot)
            for _ in range(3):
                await pilot.press("f2")
                await shows(pilot, "context")
                await pilot.press("f2")
                await until(pilot, lambda: "context" not in seen(pilot))

    run(story())


def test_a_side_panel_hidden_and_shown_again_still_goes_when_the_window_gets_narrow(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"}), size=(120, 40)) as pilot:
            await shows(pilot, "context")
            await pilot.press("f2")
            await until(pilot, lambda: "context" not in seen(pilot))
            await pilot.press("f2")
            await shows(pilot, "context")
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: "context" not in seen(pilot))

    run(story())


def test_a_house_that_cannot_be_opened_ends_the_screen_with_the_reason(tmp_path):
    async def story():
        house = own_house(tmp_path, {"text": "x"})

        async def broken():
            raise SessionError("the log is broken", hint="Look at it.")

        house.enter = broken
        async with app_at(house) as pilot:
            assert str(pilot.app.failure) == "the log is broken"
            assert pilot.app.backend is None

    run(story())


def test_keys_that_are_typed_before_the_composer_is_there_are_in_it(tmp_path):
    async def story():
        from textual import events

        from bridle.tui.app import BridleApp

        house = own_house(tmp_path, {"text": "x"})
        app = BridleApp(lambda: house)
        for letter in "early":
            app.post_message(events.Key(letter, letter))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.main.composer.text == "early")
            await until(pilot, lambda: app.main.is_ready)
            assert app.main.composer.text == "early"
        await house.leave()

    run(story())


def test_said_and_calls_are_in_the_order_of_the_log(tmp_path):
    async def story():
        replies = {"text": "Look.", **call("read", path="nothing")}, {"text": "No."}
        async with app_at(own_house(tmp_path, *replies)) as pilot:
            await say(pilot, "go")
            kinds = [type(one) for one in blocks(pilot)][:4]
            assert kinds == [Prompt, Reply, Call, Reply]

    run(story())
