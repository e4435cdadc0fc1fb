"""Questions on the whole screen, with a real engine behind it (A9, S10, A12, P4)."""

from contextlib import aclosing

from textual import events

from bridle.events import ApprovalAsked
from rig import run
from tui.raw_rig import left_over, raw_app
from tui.rig import call, entered, own_house
from tui.screen_rig import app_at, blocks, say, seen, shows, state, until


def panel_of(pilot):
    return pilot.app.main.approvals.panel


def too_soon(panel):
    """Whatever is pressed from now on comes too soon, however long this machine takes for it."""
    assert panel._guard._quiet > 0
    panel._guard._quiet = 3600.0


async def asks(pilot):
    """Until a question stands there, and a key would count."""
    panel = panel_of(pilot)
    panel._guard._quiet = 0.0
    await until(pilot, lambda: panel.is_open and panel.is_armed)


def test_a_command_is_asked_about_in_the_flow_and_runs_after_a_yes(tmp_path):
    """A9, S10"""

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "All done.")
        async with app_at(house) as pilot:
            await say(pilot, "make it", wait=False)
            await asks(pilot)
            text = seen(pilot)
            assert "$ touch made" in text
            assert "make it" in text  # the conversation is still there
            assert pilot.app.main.conversation.region.bottom <= panel_of(pilot).region.y
            assert not (tmp_path / "workspace" / "made").exists()
            await pilot.press("y")
            await shows(pilot, "All done.")
            assert (tmp_path / "workspace" / "made").exists()
            assert not panel_of(pilot).is_open
            assert pilot.app.main.composer.has_pseudo_class("focus-within")

    run(story())


def test_a_key_typed_ahead_of_the_question_runs_nothing(tmp_path):
    """A9"""

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Well.")
        async with app_at(house) as pilot:
            await say(pilot, "make it", wait=False)
            panel = panel_of(pilot)
            too_soon(panel)
            await until(pilot, lambda: panel.is_open)
            await pilot.press("y")
            await pilot.press("y")
            assert house.session.history.pending
            panel._guard._quiet = 0.0
            await pilot.press("n")
            await shows(pilot, "Well.")
            assert not (tmp_path / "workspace" / "made").exists()

    run(story())


def test_escape_stops_the_turn_and_takes_the_question_away(tmp_path):
    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Never said.")
        async with app_at(house) as pilot:
            await say(pilot, "make it", wait=False)
            await asks(pilot)
            await pilot.press("escape")
            await until(pilot, lambda: not panel_of(pilot).is_open and not state(pilot).busy)
            assert not (tmp_path / "workspace" / "made").exists()

    run(story())


def test_what_another_answers_first_goes_away(tmp_path):
    """A12"""

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Fine.")
        async with app_at(house) as pilot:
            await say(pilot, "make it", wait=False)
            await asks(pilot)
            (asked,) = house.session.history.pending.values()
            await house.session.answer(asked.call.id, True, shown=asked.shown, by="eva")
            await until(pilot, lambda: not panel_of(pilot).is_open)
            told = pilot.app._notifications
            await until(pilot, lambda: [one.message for one in told] == ["shell: allowed by eva"])
            await shows(pilot, "Fine.")

    run(story())


def test_a_question_that_comes_up_behind_a_page_is_not_answered_from_there(tmp_path):
    """A9"""

    async def story():
        slow = {**call("shell", command="touch made"), "delay": 0.3}
        house = own_house(tmp_path, slow, "Fine.")
        async with app_at(house) as pilot:
            await say(pilot, "make it", wait=False)
            await pilot.press("f1")
            panel = panel_of(pilot)
            too_soon(panel)
            await until(pilot, lambda: panel.is_open)
            await pilot.press("y", "y", "escape")
            await until(pilot, lambda: pilot.app.screen is pilot.app.main)
            await pilot.press("y")
            assert house.session.history.pending
            await asks(pilot)
            await pilot.press("y")
            await shows(pilot, "Fine.")

    run(story())


def test_a_rule_is_previewed_and_written(tmp_path):
    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Fine.")
        async with app_at(house, size=(120, 40)) as pilot:
            await say(pilot, "make it", wait=False)
            await asks(pilot)
            await pilot.press("r")
            await shows(pilot, "Save this rule?")
            assert house.session.history.pending
            await until(pilot, lambda: panel_of(pilot).is_armed)
            await pilot.press("y")
            await shows(pilot, "Fine.")
            (grant,) = [one for one in await house.rules() if "touch" in one.name]
            assert "touch" in grant.name

    run(story())


def test_a_plan_is_agreed_to_with_edits(tmp_path):
    """P4: leaving plan mode passes through the person, who says in which mode it goes on."""

    async def story():
        replies = (call("exit_plan_mode", plan="# Plan\n\n1. Write a file"), "Going.")
        house = own_house(tmp_path, *replies, mode="plan")
        async with app_at(house, size=(100, 30)) as pilot:
            await say(pilot, "plan it", wait=False)
            await asks(pilot)
            assert "1. Write a file" in seen(pilot)
            assert house.mode == "plan"
            await pilot.press("e")
            await shows(pilot, "Going.")
            await until(pilot, lambda: house.mode == "edits")
            await shows(pilot, "edits allowed")
            await until(pilot, lambda: pilot.app.main.approvals.next_mode is None)

    run(story())


def test_a_plan_that_is_sent_back_stays_in_plan_mode(tmp_path):
    """P4"""

    async def story():
        replies = (call("exit_plan_mode", plan="# Plan"), "Thinking again.")
        house = own_house(tmp_path, *replies, mode="plan")
        async with app_at(house) as pilot:
            await say(pilot, "plan it", wait=False)
            await asks(pilot)
            await pilot.press("w", *"smaller", "enter")
            await shows(pilot, "Thinking again.")
            assert house.mode == "plan"

    run(story())


def test_the_model_asks_and_hears_the_answer(tmp_path):
    """S10"""

    async def story():
        asked = call("ask_user", question="Which one?", options=["red", "blue"])
        house = own_house(tmp_path, asked, "Painted.")
        async with app_at(house) as pilot:
            await say(pilot, "paint", wait=False)
            await asks(pilot)
            await pilot.press("2", "enter")
            await shows(pilot, "Painted.")
            assert any("blue" in getattr(one, "result", "") for one in blocks(pilot))

    run(story())


def test_another_sessions_question_shows_wherever_one_is_and_is_answered_there(tmp_path):
    """A12: a line says so; F3 lists them, and the answer goes to its own session."""

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Made it.")
        async with app_at(house, size=(100, 30)) as pilot:
            await say(pilot, "make it", wait=False)
            await asks(pilot)
            first = house.session.id
            await house.renew()
            await pilot.app.main.session.rejoin()
            await shows(pilot, "1 approval needed in other sessions (F3): make it")
            assert not panel_of(pilot).is_open
            assert list(pilot.app._notifications) == []
            await pilot.press("f3")
            await shows(pilot, "$ touch made")
            page = pilot.app.screen
            page.panel._guard._quiet = 0.0
            await until(pilot, lambda: page.panel.is_armed)
            await pilot.press("y")
            await until(pilot, lambda: (tmp_path / "workspace" / "made").exists())
            await shows(pilot, "No session needs approval.")
            await pilot.press("escape")
            await until(pilot, lambda: "approval needed" not in seen(pilot))
            assert house.session.id != first

    run(story())


def test_who_looks_elsewhere_is_called_and_the_title_says_the_state(tmp_path, monkeypatch):
    """S10: a bell or a notification, only without focus; the title is put back at the end."""
    monkeypatch.setenv("BRIDLE_NOTIFY", "osc9")

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Made it.")
        async with raw_app(house) as (pilot, written):
            pilot.app.post_message(events.AppBlur())
            await until(pilot, lambda: not pilot.app.app_focus)
            pilot.app.main.composer.load("make it")
            pilot.app.main.composer.focus()
            house_session = house.session
            await house_session.send("make it")
            await until(pilot, lambda: "\x1b]9;bridle: shell needs approval" in "".join(written))
            await until(pilot, lambda: "\x1b]2;? make it" in "".join(written))
            (asked,) = house.session.history.pending.values()
            await house.session.answer(asked.call.id, True, shown=asked.shown, by="me")
            await until(pilot, lambda: "bridle: turn ended: done" in "".join(written))
            await until(pilot, lambda: "\x1b]2;make it" in "".join(written))
        assert "".join(written).index("\x1b[22;2t") < "".join(written).rindex("\x1b[23;2t")

    run(story())


def test_nobody_is_called_who_looks_here_or_wants_no_calls(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIDLE_NOTIFY", "off")

    async def story():
        house = own_house(tmp_path, "Done.", "Done again.")
        async with raw_app(house) as (pilot, written):
            await say(pilot, "one")
            pilot.app.post_message(events.AppBlur())
            await until(pilot, lambda: not pilot.app.app_focus)
            await house.session.wait(await house.session.send("two"))
            await shows(pilot, "Done again.")
            told = "".join(written)
        assert "\x1b]9;" not in told
        assert left_over(told) == []  # no bell either

    run(story())


def test_hosts_of_a_command_are_told_apart_by_the_engine(tmp_path):
    async def story():
        line = "curl -s https://example.com/x -o y"
        async with entered(own_house(tmp_path, call("shell", command=line), "No.")) as house:
            await house.session.send("get it")
            async with aclosing(house.session.subscribe(0)) as records:
                async for record in records:
                    if isinstance(record.event, ApprovalAsked):
                        break
            (asked,) = house.session.history.pending.values()
            assert asked.hosts == ("example.com",)
            assert "example.com" in asked.commands
            await house.session.interrupt()

    run(story())
