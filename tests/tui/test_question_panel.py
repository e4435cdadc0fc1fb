"""The panel of questions by its keys: what is asked, what counts, what never does (A9, S10)."""

import pytest

from bridle.errors import ConfigError
from bridle.protocols.session import Answer
from tui.question_rig import LONG, asked, drawn, play, put, screen_text, until

BAR = " ▁▂▃▄▅▆▇█"  # what a scroll bar is drawn with
SIZES = [(120, 40), (80, 24), (60, 20), (40, 10), (30, 8)]


def shown_of(app):
    return "\n".join(screen_text(app))


@pytest.mark.parametrize(
    ("key", "answer"),
    [("y", Answer(True)), ("s", Answer(True, "session")), ("n", Answer(False))],
)
def test_a_key_answers_the_question_on_the_screen(key, answer):
    """A9"""

    async def story(app, pilot):
        await put(pilot, asked(reason="it pushes", cwd="/w"))
        assert "git push" in shown_of(app)
        assert "why: it pushes" in shown_of(app)
        await pilot.press(key)
        assert app.given == [("here", "one", answer, None)]
        assert not app.panel.is_open
        assert app.emptied == 1

    play(story)


@pytest.mark.parametrize("size", SIZES[:3])
def test_a_build_can_be_allowed_once_or_with_all_builds_of_the_session(size):
    async def story(app, pilot):
        build = asked(reason="runs the tests", cwd="/w", covers="builds")
        await put(pilot, build)
        assert "y Allow once" in shown_of(app)
        assert "s Allow for this session: tests and builds in this folder" in shown_of(app)
        await pilot.press("y")
        await put(pilot, asked("two", covers="builds"))
        await pilot.press("s")
        assert [one[2] for one in app.given] == [Answer(True), Answer(True, "session")]

    play(story, size)


def test_a_no_with_a_word_is_written_in_the_panel():
    async def story(app, pilot):
        await put(pilot, asked())
        await pilot.press("w", *"use y", "enter")
        assert app.given == [("here", "one", Answer(False, word="use y"), None)]

    play(story)


def test_an_empty_word_is_no_answer_and_escape_goes_back():
    async def story(app, pilot):
        await put(pilot, asked())
        await pilot.press("w", "enter")
        assert app.given == []
        assert "Type a message first" in shown_of(app)
        await pilot.press("escape")
        await drawn(pilot)
        await pilot.press("y")
        assert app.given == [("here", "one", Answer(True), None)]

    play(story)


def test_a_rule_is_looked_at_before_it_is_made():
    async def story(app, pilot):
        await put(pilot, asked(proposal="allow: shell(git push)"))
        await pilot.press("r")
        await until(pilot, lambda: "it would have covered 2 calls" in shown_of(app))
        assert app.given == []
        await pilot.press("escape")
        await drawn(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "it would have covered 2 calls" in shown_of(app))
        await drawn(pilot)
        await pilot.press("y")
        rule = "allow: shell(git push)"
        assert app.given == [("here", "one", Answer(True, "rule", rule=rule), None)]

    play(story)


def test_a_rule_that_cannot_be_made_is_said_and_the_question_stands():
    async def story(app, pilot):
        app.previewed = ConfigError("the policy file is bad", hint="Mend line 3.")
        await put(pilot, asked(proposal="allow: shell(git push)"))
        await pilot.press("r")
        await until(pilot, lambda: "the policy file is bad" in shown_of(app))
        await pilot.press("n")
        assert app.given == [("here", "one", Answer(False), None)]

    play(story)


@pytest.mark.parametrize("size", SIZES)
def test_a_yes_counts_once_the_end_was_on_the_screen(size):
    """A9, at every size"""

    async def story(app, pilot):
        await put(pilot, asked(arguments={"command": LONG}, proposal="allow: shell(x)"))
        for key in ("y", "s", "r"):
            await pilot.press(key)
        assert app.given == []
        assert "Scroll to the end" in shown_of(app)
        await pilot.press("end")
        await until(pilot, lambda: app.panel.sheet.seen)
        assert "rule: allow" in shown_of(app)
        await pilot.press("y")
        assert app.given == [("here", "one", Answer(True), None)]

    play(story, size=size)


def test_page_by_page_every_line_is_on_the_screen():
    async def story(app, pilot):
        await put(pilot, asked(arguments={"command": LONG}))
        found = set()
        while not app.panel.sheet.seen:
            found |= {line.strip(BAR) for line in screen_text(app)}
            await pilot.press("pagedown")
            await pilot.pause()
        found |= {line.strip(BAR) for line in screen_text(app)}
        assert {f"│ $ echo line {number}" for number in range(60)} <= found
        await pilot.press("home")
        await pilot.pause()
        assert "echo line 0" in shown_of(app)

    play(story, size=(60, 20))


def test_a_no_needs_no_reading():
    async def story(app, pilot):
        await put(pilot, asked(arguments={"command": LONG}))
        await pilot.press("n")
        assert app.given == [("here", "one", Answer(False), None)]

    play(story)


@pytest.mark.parametrize("size", SIZES)
def test_the_end_of_the_conversation_is_not_covered_and_the_keys_are_on_the_screen(size):
    """S10"""

    async def story(app, pilot):
        await put(pilot, asked(arguments={"command": LONG}), asked("two"))
        talk, panel = app.query_one("#talk").region, app.panel.region
        assert talk.bottom <= panel.y
        assert talk.height >= 1
        assert "y Allow once" in shown_of(app) or "y Once" in shown_of(app)
        assert "n Deny" in shown_of(app)

    play(story, size=size)


@pytest.mark.parametrize("keys", [("tab", "shift+tab"), ("right", "left")])
def test_several_are_walked_through(keys):
    async def story(app, pilot):
        await put(pilot, asked(), asked("two", arguments={"command": "make"}), asked("three"))
        assert "1 of 3" in shown_of(app)
        await pilot.press(keys[0])
        await drawn(pilot)
        assert "2 of 3" in shown_of(app)
        assert "$ make" in shown_of(app)
        await pilot.press("y")
        await drawn(pilot)
        assert "2 of 2" in shown_of(app)
        await pilot.press(keys[1])
        await drawn(pilot)
        await pilot.press("n")
        assert [one[1:3] for one in app.given] == [("two", Answer(True)), ("one", Answer(False))]

    play(story)


def test_yes_to_all_is_for_those_that_were_shown():
    """A9: one that comes later is not among them."""

    async def story(app, pilot):
        kin = [asked(f"k{at}", arguments={"command": f"make {at}"}, group="g") for at in range(3)]
        other = asked("other")
        await put(pilot, *kin, other)
        await pilot.press("a")
        await drawn(pilot)
        assert "Allow these 3 calls?" in shown_of(app)
        late = asked("late", arguments={"command": "rm -r x"}, group="g")
        app.panel.show([*kin, other, late])
        await pilot.press("end")
        await until(pilot, lambda: app.panel.sheet.seen)
        await pilot.press("y")
        assert [one[1:3] for one in app.given] == [(f"k{at}", Answer(True)) for at in range(3)]

    play(story)


def test_all_of_them_have_to_be_read_first_and_one_by_one_is_possible():
    async def story(app, pilot):
        kin = [asked(f"k{at}", arguments={"command": LONG}, group="g") for at in range(3)]
        await put(pilot, *kin)
        await pilot.press("a")
        await drawn(pilot)
        await pilot.press("y")
        assert app.given == []
        await pilot.press("escape")
        await drawn(pilot)
        await pilot.press("n")
        assert [one[1] for one in app.given] == ["k0"]

    play(story)


def test_what_somebody_else_answered_goes_away_with_who_it_was():
    """A12"""

    async def story(app, pilot):
        await put(pilot, asked(), asked("two"))
        app.panel.show([asked("two")], {"one": "allowed by eva"})
        await drawn(pilot)
        await until(pilot, lambda: "allowed by eva" in shown_of(app))
        app.panel.show([], {"two": "its turn is over"})
        await until(pilot, lambda: "its turn is over" in shown_of(app))
        assert not app.panel.is_open
        assert app.given == []

    play(story)


def test_words_for_one_question_never_answer_another():
    """A9: the question went away while they were typed."""

    async def story(app, pilot):
        await put(pilot, asked(), asked("two"))
        await pilot.press("w", *"use a branch")
        app.panel.show([asked("two")], {"one": "refused by eva"})
        await pilot.pause()
        await pilot.press("enter")
        assert app.given == []
        await until(pilot, lambda: "Not sent: use a branch" in shown_of(app))

    play(story)


def test_an_answer_that_was_not_taken_can_be_given_again():
    async def story(app, pilot):
        await put(pilot, asked())
        await pilot.press("y")
        app.panel.take_back("here", "one", "the server cannot be reached")
        await drawn(pilot)
        assert "the server cannot be reached" in shown_of(app)
        await pilot.press("y")
        assert len(app.given) == 2

    play(story)


def test_it_is_folded_anew_for_another_width_and_nothing_is_cut():
    async def story(app, pilot):
        command = "echo " + "".join(chr(97 + at % 26) for at in range(300))
        await put(pilot, asked(arguments={"command": command}))
        for width in (120, 33, 61, 24):
            await pilot.resize_terminal(width, 30)
            await pilot.pause()
            await pilot.press("home")
            await pilot.pause()
            lines = [line.strip(BAR) for line in screen_text(app) if "│" in line]
            pieces = "".join(line.removeprefix("│").removeprefix(" ↪").strip() for line in lines)
            assert pieces.replace(" ", "").startswith("$echoabc")
        await pilot.press("end")
        await until(pilot, lambda: app.panel.sheet.seen)

    play(story)


def test_the_file_is_looked_at_once():
    """What is drawn again after the file changed is still what was first shown."""
    looks = []

    def held(one):
        looks.append(one)
        return f"old {len(looks)}\n"

    async def story(app, pilot):
        change = {"path": "a.txt", "content": "new\n"}
        await put(pilot, asked(name="write", arguments=change))
        await pilot.resize_terminal(50, 24)
        await pilot.pause()
        assert "-old 1" in shown_of(app)
        assert "+new" in shown_of(app)
        assert len(looks) == 1

    play(story, held=held)


def test_hosts_are_hosts_and_not_commands():
    async def story(app, pilot):
        line = "curl https://example.com/x | tee y"
        commands = ("curl https://example.com/x", "example.com", "tee y")
        more = {"commands": commands, "hosts": ("example.com",), "paths": ("y",)}
        await put(pilot, asked(arguments={"command": line}, **more))
        text = shown_of(app)
        assert "2 commands:" in text
        assert "host: example.com" in text
        assert "file: y" in text
        assert "│ example.com" not in text

    play(story)


def test_another_sessions_question_says_whose_it_is():
    async def story(app, pilot):
        await put(pilot, asked(session="there", title="Mend the docs"))
        assert "Mend the docs" in shown_of(app)
        await pilot.press("y")
        assert app.given[0][0] == "there"

    play(story)


@pytest.mark.parametrize("key", ["s", "r", "a"])
def test_a_key_that_is_not_offered_means_nothing(key):
    async def story(app, pilot):
        await put(pilot, asked(once_only=True, proposal="allow: shell(x)", group="g"))
        await pilot.press(key)
        await pilot.pause()
        assert app.given == []
        assert "Run this command?" in shown_of(app)

    play(story)


def test_another_session_on_the_screen_takes_the_questions_along_without_a_word():
    async def story(app, pilot):
        await put(pilot, asked())
        app.panel.forget()
        await pilot.pause()
        assert not app.panel.is_open
        assert list(app._notifications) == []

    play(story)
