"""What outlives a terminal, told in real ones: kill -9, a closed window, a second window (A12)."""

import os
import signal
import time

import pytest
from terminal_rig import PATIENCE, needs_tmux, shell

pytestmark = needs_tmux


def begun(screen, words):
    """The screen is open, and this prompt is on its way."""
    screen.until("Describe a task and press")
    screen.say(words)


def ends(place, session):
    """How the turns of a session ended, by its log."""
    found = [one["data"] for one in place.records(session)]
    return [one["reason"] for one in found if one["type"] == "turn_end"]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_killed_in_the_middle_it_says_what_is_known_and_goes_on(place, open_terminal):
    """kill -9 while a command runs: nothing is repeated, what came of it is unknown and said so."""
    command = "echo once >> ran.txt; sleep 300"
    model = place.script({"text": "It begins.", "calls": [shell(command)]}, {"text": "Never."})
    screen = open_terminal("bridle", "--model", model, "--mode", "auto")
    begun(screen, "do something long")
    ran = place.workspace / "ran.txt"
    screen.when(lambda _: ran.exists() and ran.read_text() == "once\n", "the effect")
    screen.until("sleep 300")
    os.kill(screen.pid, signal.SIGKILL)
    screen.until_over(137)
    [session] = place.sessions()
    again = open_terminal(
        "bridle", "--resume", session, "--model", place.script({"text": "I see."}, name="after")
    )
    again.until("do something long", "It begins.", "sleep 300")
    known = ("unknown", "cut off", "may have")
    again.when(lambda seen: any(word in seen for word in known), "what became of it")
    again.say("what happened")
    again.until("I see.")
    assert (place.workspace / "ran.txt").read_text() == "once\n"
    again.leave()
    assert place.sessions() == [session]


def test_a_terminal_that_is_closed_leaves_nothing_running_and_nothing_lost(place, open_terminal):
    model = place.script({"text": "It begins.", "calls": [shell("echo $$ > pid; exec sleep 300")]})
    screen = open_terminal("bridle", "--model", model, "--mode", "auto")
    begun(screen, "do something long")
    screen.until("It begins.", "sleep 300")
    program = screen.pid
    screen.close()
    end = time.monotonic() + PATIENCE
    while is_alive(program):
        assert time.monotonic() < end, "the program is still there"
        time.sleep(0.05)
    [session] = place.sessions()
    assert ends(place, session) == ["interrupted"]


@pytest.mark.parametrize("words", [("--resume",), ("attach",)], ids=["resumed", "attached"])
def test_a_second_window_sees_and_answers_the_same_session(place, open_terminal, words):
    """Opened twice: the second window watches, answers and steers what the first one runs."""
    model = place.script(
        {"text": "I ask first.", "calls": [shell("touch made.txt")]},
        {"text": "Made by the second window."},
        {"text": "And steered by it."},
    )
    first = open_terminal("bridle", "--model", model)
    begun(first, "make a file")
    first.until("Run this command?")
    [session] = place.sessions()
    second = open_terminal("bridle", *words, session)
    second.until("make a file", "I ask first.", "Run this command?")
    second.answer("y", "Run this command?")
    for window in (first, second):
        window.until("Made by the second window.")
        window.until_gone("Run this command?")
        window.rests()
    assert (place.workspace / "made.txt").exists()
    second.say("go on from here")
    for window in (first, second):
        window.until("go on from here", "And steered by it.")
        window.rests()
    second.leave()
    first.until("And steered by it.")
    first.leave()
    assert ends(place, session) == ["done", "done"]


def test_what_runs_in_the_background_is_watched_in_two_windows(place, open_terminal):
    gate = place.workspace / "go"
    model = place.script(
        {"text": "Working on it.", "calls": [shell("until [ -e go ]; do sleep 0.05; done")]},
        {"text": "Done in the background."},
    )
    words = ("bridle", "run", "--detach", "--model", model, "--mode", "auto", "work for a while")
    open_terminal(*words).until_over()
    [session] = place.sessions()
    try:
        windows = [open_terminal("bridle", "attach", session) for _ in range(2)]
        for window in windows:
            window.until("work for a while", "Working on it.")
        gate.touch()
        for window in windows:
            window.until("Done in the background.")
            window.rests()
        for window in windows:
            window.leave()
        assert ends(place, session) == ["done"]
    finally:
        open_terminal("bridle", "stop", "--all").until("left with")


def test_without_a_screen_it_says_what_to_use(place, open_terminal):
    place.environ["TERM"] = "dumb"
    plain = open_terminal("env", "TERM=dumb", "bridle", "chat")
    assert "bridle repl" in plain.until_over(2)
    piped = open_terminal("bash", "-c", "bridle chat | cat; exit ${PIPESTATUS[0]}")
    assert "bridle repl" in piped.until_over(2)


def test_resume_without_an_id_lets_one_choose(place, open_terminal):
    model = place.script("about apples", "about pears", name="first")
    sessions = []
    for words in ("apples please", "pears please"):
        screen = open_terminal("bridle", "--model", model)
        begun(screen, words)
        screen.until("about")
        screen.rests()
        screen.leave()
        sessions += set(place.sessions()) - set(sessions)
    apples, _ = sessions
    again = open_terminal("bridle", "--resume", "--model", model)
    again.until("Sessions", "apples please", "pears please", "Esc to quit bridle")
    again.type("apples")
    again.until_gone("pears please")
    again.answer("Enter", "Esc to quit bridle")
    again.until("❯ apples please", "about apples")
    assert f"bridle --resume {apples}" in again.leave()
    none = open_terminal("bridle", "--resume")  # the list needs no model
    none.until("apples please", "pears please")
    none.press("C-c")
    none.until_over()
    assert len(place.sessions()) == 2
