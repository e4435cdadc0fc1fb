"""Plans and the model's own questions by their keys; the words a panel is made of (P4, A9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from bridle.presentation.approvals import Sheet, approval_lines
from bridle.protocols.session import Answer
from bridle.tui.model.key_guard import KeyGuard
from bridle.tui.widgets.approval_sheet import columns
from bridle.workspace.text import neutral
from tui.question_rig import asked, drawn, now, play, press_at, put, screen_text, until

PLAN = """# Tidy up

1. Move `a.py` to the place where everything else that is like it has been for years now
2. Run the tests <!-- rm -rf ~ -->

```
make check
```
See [the docs](https://evil.example/x)."""


def plan(session="here"):
    return asked(name="exit_plan_mode", arguments={"plan": PLAN}, session=session)


def question(**more):
    arguments = {"question": "Which database?", **more}
    return asked(name="ask_user", arguments=arguments)


def shown_of(app):
    return "\n".join(screen_text(app))


@pytest.mark.parametrize(
    ("keys", "answer", "mode"),
    [
        (("y",), Answer(True), None),
        (("e",), Answer(True), "edits"),
        (("c", *"no tests", "enter"), Answer(True, word="no tests"), None),
        (("n",), Answer(False), None),
        (("w", *"too big", "enter"), Answer(False, word="too big"), None),
    ],
)
def test_a_plan_is_agreed_to_or_sent_back(keys, answer, mode):
    """P4"""

    async def story(app, pilot):
        await put(pilot, plan())
        await pilot.press(*keys)
        assert app.given == [("here", "one", answer, mode)]

    play(story, size=(80, 40))


def test_nothing_of_a_plan_hides():
    """P4: a comment and the address behind a link are read as well."""

    async def story(app, pilot):
        await put(pilot, plan())
        text = shown_of(app)
        for piece in ("rm -rf ~", "https://evil.example/x", "make check", "# Tidy up"):
            assert piece in text

    play(story, size=(80, 40))


def test_a_plan_has_to_be_seen_to_its_end():
    async def story(app, pilot):
        await put(pilot, plan())
        await pilot.press("y", "e", "c")
        assert app.given == []
        await pilot.press("end")
        await until(pilot, lambda: app.panel.sheet.seen)
        await pilot.press("y")
        assert len(app.given) == 1

    play(story, size=(60, 14))


def test_another_sessions_mode_is_not_changed_from_here():
    async def story(app, pilot):
        await put(pilot, plan(session="there"))
        assert "allow edits" not in shown_of(app)
        await pilot.press("e")
        assert app.given == []

    play(story, size=(80, 40))


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        (("enter",), "SQLite"),
        (("2", "enter"), "PostgreSQL"),
        (("down", "down", "enter"), "none"),
        (("up", "enter"), "none"),
        (("space", "down", "space", "enter"), "SQLite; PostgreSQL"),
        (("w", *"DuckDB", "enter"), "DuckDB"),
        (("9", "enter"), None),
    ],
)
def test_a_question_of_the_model_is_answered(keys, word):
    """S10"""

    async def story(app, pilot):
        await put(pilot, question(options=["SQLite", "PostgreSQL", "none"]))
        await pilot.press(*keys)
        said = [] if word is None else [Answer(True, word=word)]
        assert [one[2] for one in app.given][: len(said)] == said

    play(story)


def test_one_option_alone_where_the_model_takes_no_other_words():
    async def story(app, pilot):
        await put(pilot, question(options=["a", "b"], free_text=False))
        assert "Type an answer" not in shown_of(app)
        await pilot.press("space", "down", "enter")
        assert [one[2] for one in app.given] == [Answer(True, word="b")]

    play(story)


def test_a_question_without_options_is_written_and_can_be_left_unanswered():
    async def story(app, pilot):
        await put(pilot, question())
        await pilot.press("enter", *"any", "enter")
        app.panel.show([asked("two", name="ask_user", arguments={"question": "And?"})])
        await drawn(pilot)
        await pilot.press("n")
        assert [one[2] for one in app.given] == [Answer(True, word="any"), Answer(False)]

    play(story)


def test_words_that_were_pasted_come_in_as_one_visible_line():
    async def story(app, pilot):
        from textual import events

        await put(pilot, question())
        await pilot.press("w")
        app.panel.note.post_message(events.Paste("a\nb\x1b]52;c;x\x07\u202ec"))
        await pilot.pause()
        await pilot.press("enter")
        (one,) = app.given
        assert one[2].word == r"a b\x1b]52;c;x\x07\u202ec"

    play(story)


@given(st.text(max_size=300), st.integers(12, 90))
def test_lines_fit_and_hold_every_character(text, width):
    sheet = Sheet(width, columns, least=4)
    lines = approval_lines(asked(arguments={"command": f"x{text}"}).asked, sheet)
    assert all(cell_len(line.whole) <= width for line in lines)
    barred = "".join(line.text for line in lines if line.mark.startswith("│"))
    whole = "".join(
        neutral(f"$ {line}", keep="\t").expandtabs(4) for line in f"x{text}".split("\n")
    )
    assert barred == whole


@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from("yn x")), max_size=30))
def test_no_key_counts_within_the_quiet_time_after_the_drawing(keys):
    guard, at = KeyGuard(0.5), 10.0
    guard.set_drawn(at)
    last = at
    opened = False
    for wait, letter in keys:
        at += wait
        lets = guard.accepts(at, letter)
        assert lets == (opened or at - last >= 0.5)
        opened = opened or lets
        last = at


def test_a_guard_that_was_hidden_lets_nothing_through():
    guard = KeyGuard()
    assert not guard.accepts(100.0, "y")
    guard.set_drawn(200.0)
    assert not guard.accepts(199.0, "y")
    guard.hide()
    assert not guard.accepts(300.0, "y")


def test_an_answer_is_not_sent_by_a_key_held_down():
    async def story(app, pilot):
        await put(pilot, question(options=["a", "b"]))
        at = now()
        for step in range(20):
            await press_at(pilot, "enter", at + 0.03 * step)
        assert app.given == []

    play(story, quiet=0.5)
