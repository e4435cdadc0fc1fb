"""The journeys of the terminal, told in a real one: talk, answer, stop, undo, leave (S10, A9).

The program is the real one, the terminal is tmux; the model is scripted, everything else is not.
"""

import re

from terminal_rig import needs_tmux, served, shell

from bridle.testing import FakeAnthropic

pytestmark = needs_tmux


def test_a_prompt_streams_asks_and_ends_in_a_result(place, open_terminal):
    """S10: text as it streams, tools as they run, a question in the flow, the result."""
    model = place.script(
        {"text": "I will make the file.", "calls": [shell("printf 'made here\\n' | tee made.txt")]},
        {"text": "There it is:\n\n```python\nprint('made')\n```\n"},
    )
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    screen.say("please make a file")
    screen.until("Run this command?", "tee made.txt", "I will make the file.")
    screen.until("waiting for your answer")
    assert not (place.workspace / "made.txt").exists()
    screen.answer("y", "Run this command?")
    screen.until("There it is:", "print('made')", "1 file changed")
    assert (place.workspace / "made.txt").read_text() == "made here\n"
    left = screen.leave()
    [session] = place.sessions()
    assert f"bridle --resume {session}" in left


def test_a_no_runs_nothing_and_the_model_hears_of_it(place, open_terminal):
    model = place.script({"calls": [shell("touch made.txt")]}, {"text": "Then I leave it."})
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    screen.say("make a file")
    screen.answer("n", "Run this command?")
    screen.until("Then I leave it.")
    assert not (place.workspace / "made.txt").exists()


def test_typed_ahead_keys_answer_nothing(place, open_terminal):
    """What was meant for the composer stays there; the question waits."""
    model = place.script({"calls": [shell("touch made.txt")]}, {"text": "Done."})
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    screen.press("g", "o", "Enter", *"yyyyyyyy")  # all at once: before anything is asked
    screen.until("Run this command?")
    assert not (place.workspace / "made.txt").exists()
    screen.leave()
    assert not (place.workspace / "made.txt").exists()


def test_esc_stops_in_the_middle_and_the_session_is_usable_at_once(place, open_terminal):
    model = place.script(
        {"text": "This takes a while.", "calls": [shell("echo begun; sleep 300")]},
        {"text": "Here I am again."},
    )
    screen = open_terminal("bridle", "--model", model, "--mode", "auto")
    screen.until("Describe a task and press")
    screen.say("run something long")
    screen.until("This takes a while.", "sleep 300", "Esc to stop")
    screen.press("Escape")
    screen.until("■ stopped")
    screen.say("are you there")
    screen.until("Here I am again.")
    screen.rests()
    screen.leave()
    [session] = place.sessions()
    ends = [one["data"] for one in place.records(session) if one["data"]["type"] == "turn_end"]
    assert [one["reason"] for one in ends] == ["interrupted", "done"]


def test_a_prompt_that_is_sent_while_it_works_waits_its_turn(place, open_terminal):
    gate = place.workspace / "go"
    model = place.script(
        {"text": "First.", "calls": [shell("until [ -e go ]; do sleep 0.05; done")]},
        {"text": "First is done."},
        {"text": "Second is done."},
    )
    screen = open_terminal("bridle", "--model", model, "--mode", "auto")
    screen.until("Describe a task and press")
    screen.say("the first thing")
    screen.until("First.", "Esc to stop")
    screen.say("the second thing")
    screen.until("the second thing")
    gate.touch()
    screen.until("First is done.", "Second is done.")


def test_twenty_steps_of_a_plan(place, open_terminal):
    """P4: the plan is put before the person; then twenty steps run, and the list shows them."""
    steps = [f"{number}. write part {number}" for number in range(1, 21)]
    todo = [
        {"content": f"part {number}", "status": "in_progress" if number == 1 else "pending"}
        for number in range(1, 21)
    ]
    replies = [
        {"calls": [{"name": "exit_plan_mode", "arguments": {"plan": "\n".join(steps)}}]},
        {"delay": 0.5, "calls": [{"name": "todo_write", "arguments": {"todos": todo}}]},
    ]
    for number in range(1, 21):
        given = {"path": f"part{number}.txt", "content": f"{number}\n"}
        replies.append({"calls": [{"name": "write", "arguments": given}]})
    screen = open_terminal(
        "bridle", "--model", place.script(*replies, {"text": "All twenty."}), "--mode", "plan",
        size=(110, 50),
    )  # fmt: skip
    screen.until("Describe a task and press", "plan")
    screen.say("write twenty parts")
    screen.until("Go ahead with this plan?", "20. write part 20")
    assert list(place.workspace.iterdir()) == []
    screen.answer("e", "Go ahead with this plan?")
    screen.until("All twenty.", "edits")
    names = sorted(one.name for one in place.workspace.iterdir())
    assert names == sorted(f"part{number}.txt" for number in range(1, 21))


def test_undo_shows_what_it_would_do_and_puts_it_back(place, open_terminal):
    (place.workspace / "a.txt").write_text("as it was\n")
    edit = {"path": "a.txt", "old": "as it was", "new": "changed"}
    model = place.script(
        {"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]},
        {"calls": [{"name": "edit", "arguments": edit}]},
        {"text": "Changed it."},
    )
    screen = open_terminal("bridle", "--model", model, "--mode", "edits")
    screen.until("Describe a task and press")
    screen.say("change it")
    screen.until("Changed it.")
    screen.rests()
    assert (place.workspace / "a.txt").read_text() == "changed\n"
    screen.say("/undo")
    screen.until("Undo turn 1", "+as it was")
    assert (place.workspace / "a.txt").read_text() == "changed\n"
    screen.answer("y", "Undo turn 1")
    screen.until("turn 1 was undone", "1 file put back")
    assert (place.workspace / "a.txt").read_text() == "as it was\n"


def test_what_is_hostile_in_a_result_is_shown_and_not_obeyed(place, open_terminal):
    evil = "printf '\\033]0;owned\\007\\033[2J\\033]52;c;AAAA\\007visible\\n'"
    model = place.script({"calls": [shell(evil)]}, {"text": "bad \x1b[2J \u202e text"})
    screen = open_terminal("bridle", "--model", model, "--mode", "auto")
    screen.until("Describe a task and press")
    screen.say("be evil")
    seen = screen.until("\\x1b[2J", "\\u202e")
    assert "be evil" in seen
    title = screen._do("display-message", "-p", "#{pane_title}")
    assert "owned" not in title


def test_a_storm_of_sizes_and_a_tiny_window_are_survived(place, open_terminal):
    screen = open_terminal("bridle", "--model", place.script({"text": "Still **here**."}))
    screen.until("Describe a task and press")
    screen.say("hello there")
    screen.until("Still here.")
    for size in ((20, 5), (200, 60), (24, 7), (61, 17), (10, 3), (80, 24)) * 3:
        screen.resize(*size)
    screen.until("Still here.", "hello there")
    screen.resize(20, 5)
    screen.until("The window is too")
    screen.resize(80, 24)
    screen.until("Still here.")
    screen.leave()


def test_without_colours_there_are_none(place, open_terminal):
    place.environ["NO_COLOR"] = "1"
    screen = open_terminal("bridle", "--model", place.script({"text": "Plain."}))
    screen.until("Describe a task and press")
    screen.say("hello there")
    screen.until("Plain.")
    colours = r"\x1b\[(?:[\d;]*;)?(?:[34][0-7]|9[0-7]|10[0-7]|[34]8;[25];[\d;]+)(?:;[\d;]*)?m"
    assert re.findall(colours, screen.painted) == []  # no greys either


def test_the_attempts_of_a_request_are_one_row_and_a_broken_reply_is_marked(place, open_terminal):
    """On the full screen and line by line: the row changes in place, its end says how it went."""
    busy = {"error": {"status": 529, "message": "overloaded"}}
    replies = [busy, busy, {"text": "Half a sentence", "cut": True}, busy, "A whole one."]
    with served(FakeAnthropic(replies * 2)) as url:
        place.environ |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "key-" + "a" * 30}
        for words in (["bridle"], ["bridle", "run", "hi"]):
            screen = open_terminal(*words, "-m", "anthropic/x", size=(90, 30))
            if len(words) == 1:
                screen.until("Describe a task and press")
                screen.say("hi")
            screen.until("A whole one.", "discarded")
            rows = screen.seen.splitlines()
            tried = [row.partition("overloaded. ")[2] for row in rows if "overloaded" in row]
            assert tried == ["Attempt 3 got through.", "Attempt 2 got through."]
            assert not [row for row in rows if "Retrying" in row]
            if len(words) == 1:
                (half,) = [row for row in rows if "Half a sentence" in row]
                assert half.strip().startswith("✗")
