"""The picker of sessions on a real house: search, preview, rename, delete, live state."""

import asyncio
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from textual import events

from bridle.presentation.amounts import age
from bridle.protocols.session_values import SessionInfo
from bridle.tui.dialogs import ConfirmDialog, TextInputDialog
from bridle.tui.screens.sessions import SessionPicker, session_facts, session_row
from tui.rig import call
from tui.screen_rig import say, seen, shows, until
from tui.slash_rig import obey, opens, press
from tui.slash_rig import play as play_at

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def play(tmp_path, story, *replies, **flags):
    """On a screen with room for list and preview."""
    play_at(tmp_path, story, *replies, **{"size": (120, 40), **flags})


async def pick(pilot, words=""):
    await obey(pilot, f"/sessions {words}".strip())
    return await opens(pilot, SessionPicker)


async def two_sessions(pilot, house):
    """One about apples, and the one that is open about pears."""
    await say(pilot, "about apples")
    first = house.session.id
    await house.renew()
    await pilot.app.main.session.rejoin()
    await until(pilot, lambda: pilot.app.main.is_ready)
    await say(pilot, "about pears")
    return first


async def press_at(pilot, at, *keys):
    """Keys that were pressed then, however late they come."""
    for key in keys:
        event = events.Key(key, key if len(key) == 1 else None)
        event.time = at
        pilot.app.post_message(event)
        await pilot.pause()


def test_an_empty_picker_says_so(tmp_path):
    async def story(pilot, house):
        await pick(pilot)
        await shows(pilot, "There are no sessions yet.")
        await press(pilot, "enter")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is pilot.app.main)

    play(tmp_path, story)


def test_sessions_are_listed_previewed_and_searched(tmp_path):
    async def story(pilot, house):
        await two_sessions(pilot, house)
        await pick(pilot)
        await shows(pilot, "about apples")
        await shows(pilot, "current · ")
        await pilot.press("down")
        await shows(pilot, "An apple a day.")
        await pilot.press(*"pears")
        await until(pilot, lambda: "about apples" not in seen(pilot))
        await pilot.press(*"zzz")
        await shows(pilot, "No session matches.")

    play(tmp_path, story, "An apple a day.", "A pear a day.")


def test_a_session_is_renamed_in_the_list(tmp_path):
    async def story(pilot, house):
        await two_sessions(pilot, house)
        await pick(pilot)
        await shows(pilot, "about apples")
        await pilot.press("down", "ctrl+r")
        await until(pilot, lambda: isinstance(pilot.app.screen, TextInputDialog))
        await pilot.press("end", *" and more")
        await press(pilot, "enter")
        await shows(pilot, "about apples and more")

    play(tmp_path, story, "An apple a day.", "A pear a day.")


def test_a_session_is_deleted_on_yes_alone_and_typed_ahead_keys_delete_nothing(tmp_path):
    async def story(pilot, house):
        first = await two_sessions(pilot, house)
        await pick(pilot)
        await shows(pilot, "about apples")
        before = monotonic()
        await pilot.press("down", "ctrl+d")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await press_at(pilot, before, "y", "y", "enter")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert len(await house.sessions()) == 2
        await press(pilot, "n")
        await pilot.press("ctrl+d")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await press(pilot, "y")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionPicker))
        await until(pilot, lambda: "about apples" not in seen(pilot))
        assert first not in [one.id for one in await house.sessions()]

    play(tmp_path, story, "An apple a day.", "A pear a day.")


def test_the_session_that_one_is_in_is_not_deleted(tmp_path):
    async def story(pilot, house):
        await say(pilot, "about apples")
        await pick(pilot)
        await shows(pilot, "about apples")
        await pilot.press("ctrl+d")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await press(pilot, "y")
        told = pilot.app._notifications
        await until(pilot, lambda: any("not deleted" in one.message for one in told))
        assert len(await house.sessions()) == 1

    play(tmp_path, story, "An apple a day.")


def test_what_a_session_does_is_shown_as_it_happens(tmp_path):
    async def story(pilot, house):
        await say(pilot, "wait here", wait=False)
        await until(pilot, lambda: house.session.is_busy)
        running = house.session
        await house.renew()
        await pilot.app.main.session.rejoin()
        await pick(pilot)
        await shows(pilot, "● wait here  running")
        await running.interrupt()
        await until(pilot, lambda: "● wait here" not in seen(pilot))

    play(tmp_path, story, call("shell", command="sleep 30"), "Done.", mode="auto")


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (120, 40)])
def test_it_fits_into_any_window(tmp_path, size):
    async def story(pilot, house):
        await say(pilot, "about apples")
        await pick(pilot)
        await until(
            pilot, lambda: pilot.app.screen is not pilot.app.main and pilot.app.screen._found
        )
        if size[0] < 90:
            await pilot.press("tab")
        await shows(pilot, "An apple a day.")
        await pilot.press("tab")
        await shows(pilot, "about apples")

    play(tmp_path, story, "An apple a day.", size=size)


def test_the_preview_comes_and_stays_current_while_a_session_streams(tmp_path):
    """News come several times a second then: a look that is under way goes on all the same."""

    async def story(pilot, house):
        first = await two_sessions(pilot, house)
        picker = await pick(pilot)
        fetched, hold = house.preview, asyncio.Event()

        async def slow(session_id):
            await hold.wait()
            return await fetched(session_id)

        house.preview = slow
        await pilot.press("down" if picker.highlighted.id != first else "up")
        looked_at = picker.highlighted.id
        for _ in range(5):  # each is what happens when something about any session changed
            picker._refresh()
            await until(pilot, lambda: picker._looking_at == looked_at)
        hold.set()
        await shows(pilot, "An apple a day." if looked_at == first else "A pear, too.")

    play(tmp_path, story, "An apple a day.", "A pear, too.")


def test_a_preview_shows_the_end_of_a_long_session(tmp_path):
    async def story(pilot, house):
        await say(pilot, "about apples")
        await pick(pilot)
        await shows(pilot, "line 300")
        assert "line 1 " not in seen(pilot)
        assert house.session.id in seen(pilot)

    play(tmp_path, story, "  \n".join(f"line {number}" for number in range(1, 301)))


def test_a_failed_session_says_so():
    line = session_row(SessionInfo(id="x", state="failed"), NOW)
    assert (line.sign, line.rest) == ("✗", "failed")


def test_a_session_whose_turn_a_person_stopped_did_not_fail():
    stopped = SessionInfo(id="x", state="failed", reason="interrupted")
    line = session_row(stopped, NOW)
    assert (line.sign, line.rest) == ("·", "stopped")
    failed = SessionInfo(id="x", state="failed", reason="budget")
    assert session_row(failed, NOW).rest == "failed"


def test_a_line_says_what_a_session_does_and_whose_it_is():
    one = SessionInfo(
        id="x", title="a\x1b[2Jb", state="waiting", waiting=2, workspace="/w/there", holder="pid 7"
    )
    line = session_row(one, NOW, "/w/here")
    assert line.title == "a\\x1b[2Jb"
    assert line.rest == "needs 2 answers · there · in pid 7"
    assert session_row(SessionInfo(id="x"), NOW).title == "(no title)"
    assert session_row(SessionInfo(id="x", state="strange"), NOW).sign == "·"


def test_money_that_is_not_known_is_said_to_be_unknown():
    told = "\n".join(line for line, _ in session_facts(SessionInfo(id="x", unpriced=2), NOW))
    assert "unknown" in told
    told = "\n".join(line for line, _ in session_facts(SessionInfo(id="x", cost=0.14), NOW))
    assert "$0.14" in told


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=-50), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=40), "40 days ago"),
    ],
)
def test_ages_are_as_people_say_them(ago, words):
    assert age((NOW - ago).isoformat(), NOW) == words


def test_a_moment_that_is_none_has_no_age():
    assert age("soon", NOW) == ""
