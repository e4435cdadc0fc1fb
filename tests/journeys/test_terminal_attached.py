"""`bridle attach URL` in a real terminal: a session of a server on the same screen (A12)."""

import re

from terminal_rig import needs_tmux, shell

pytestmark = needs_tmux


def ends(place, session):
    """How the turns of a session ended, by its log."""
    found = [one["data"] for one in place.records(session)]
    return [one["reason"] for one in found if one["type"] == "turn_end"]


def test_a_session_on_a_server_is_begun_answered_and_gone_on_with(place, open_terminal):
    """A12: creates and resumes sessions, answers approvals; two windows see the same."""
    model = place.script(
        {"text": "I ask first.", "calls": [shell("touch made.txt")]},
        {"text": "Made over there."},
        {"text": "Still **here**."},
    )
    server = open_terminal("bridle", "serve", "--port", "0", "--model", model, size=(200, 30))
    url = re.search(r"serves (http://\S+)", server.until("serves http://"))[1]
    first = open_terminal("bridle", "attach", url)
    first.until("Describe a task and press", f"at {url}")
    first.say("make a file")
    first.until("I ask first.", "Run this command?")
    [session] = place.sessions()
    second = open_terminal("bridle", "attach", url, session)
    second.until("make a file", "Run this command?")
    second.answer("y", "Run this command?")
    for window in (first, second):
        window.until("Made over there.")
        window.rests()
    assert (place.workspace / "made.txt").exists()
    assert f"bridle attach {url} {session}" in first.leave()
    second.say("are you there")
    second.until("Still here.")
    second.rests()
    second.leave()
    assert ends(place, session) == ["done", "done"]


def test_a_server_that_is_not_there_is_said_and_the_terminal_is_given_back(place, open_terminal):
    place.environ["BRIDLE_TOKEN"] = "none"
    window = open_terminal("bridle", "attach", "http://127.0.0.1:9")
    seen = window.until_over(1)
    assert "127.0.0.1:9" in seen and "Traceback" not in seen
