"""Keys that were pressed for something else answer nothing, and are not lost (A9)."""

from textual.screen import ModalScreen

from bridle.protocols.session import Answer
from tui.question_rig import asked, drawn, now, play, press_at, put, screen_text


def shown_of(app):
    return "\n".join(screen_text(app))


def test_a_key_that_was_typed_ahead_answers_nothing():
    """A9: judged by when it was pressed, not by when it came."""

    async def story(app, pilot):
        start = now()
        await put(pilot, asked())
        await press_at(pilot, "y", start - 1)  # before it was there
        await press_at(pilot, "y", now() + 0.1)
        assert app.given == []
        assert "too early. Press it again" in shown_of(app)
        await press_at(pilot, "y", now() + 0.3)  # the wait began anew
        assert app.given == []
        await press_at(pilot, "y", now() + 60)
        assert app.given == [("here", "one", Answer(True), None)]

    play(story, quiet=0.5)


def test_a_question_that_was_not_drawn_takes_no_key():
    async def story(app, pilot):
        app.panel.show([asked()], here="here")
        app.panel._pressed("y", now() + 100, "y")
        assert app.given == []

    play(story, quiet=0.5)


def test_the_next_question_waits_for_itself():
    async def story(app, pilot):
        await put(pilot, asked(), asked("two"))
        await press_at(pilot, "y", now() + 10)
        await drawn(pilot)
        await press_at(pilot, "y", now() + 0.1)
        assert [one[1] for one in app.given] == ["one"]

    play(story, quiet=0.5)


def test_who_goes_on_writing_writes_and_answers_nothing():
    async def story(app, pilot):
        start = now()
        await put(pilot, asked())
        for number, letter in enumerate("yes please"):
            await press_at(pilot, letter, start + number / 10)
        assert app.given == []
        assert "".join(app.strays) == "yes pleas"  # in threes; the last one may still be a key

    play(story, quiet=0.5)


def test_a_letter_without_meaning_starts_the_wait_anew():
    async def story(app, pilot):
        await put(pilot, asked())
        at = now() + 10
        await press_at(pilot, "x", at)
        await press_at(pilot, "y", at + 0.1)
        assert app.given == []
        await press_at(pilot, "y", at + 5)
        assert [one[1] for one in app.given] == ["one"]

    play(story, quiet=0.5)


def test_who_is_writing_keeps_the_keyboard():
    async def story(app, pilot):
        await pilot.press(*"my next")
        app.panel.show([asked()], here="here")
        await pilot.pause()
        await pilot.press("y", "n", "s")
        assert app.query_one("#composer").value == "my nextyns"
        assert app.given == []
        assert "F4 to answer" in shown_of(app)
        app.panel.focus()
        await drawn(pilot)
        await pilot.press("y")
        assert [one[1] for one in app.given] == ["one"]

    play(story)


def test_what_was_pressed_for_a_page_above_answers_nothing_below():
    """A9: a question that came up behind another page waits until it was seen."""

    async def story(app, pilot):
        app.push_screen(ModalScreen())
        await pilot.pause()
        app.panel.show([asked()], here="here")
        await pilot.pause()
        assert not app.panel.is_armed
        app.pop_screen()
        await pilot.pause()
        app.panel._pressed("y", now() + 100, "y")
        assert app.given == []
        app.panel.draw()  # as the main screen does when it is back
        await drawn(pilot)
        await pilot.press("y")
        assert len(app.given) == 1

    play(story)
