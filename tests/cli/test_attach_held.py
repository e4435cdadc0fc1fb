"""`bridle attach ID` where another process holds the session: watched and answered there (A12)."""

import json

from cli_program import Program
from serve_program import served

MAKE = "$(echo echo) made > made.txt"  # what runs is not understood, so that it is asked about
SHELL = {"calls": [{"name": "shell", "arguments": {"command": MAKE}}]}


def test_it_is_talked_to_and_answered_in_the_process_that_holds_it(bridle: Program):
    """(A12) Nobody is told that it is in use, and its mode is the one that holds there."""
    model = bridle.script("Ready.", SHELL, "Made.", "Again.")
    with bridle.terminal("repl", "--mode", "edits", "-m", model) as holder:
        holder.expect("❯ ")
        holder.type("hello\n")
        holder.expect("Ready.")
        holder.expect("❯ ")
        session = bridle.logs()[0].parent.name
        bridle.environ["USER"] = "ada"
        with bridle.terminal("attach", "--plain", session) as terminal:
            terminal.expect("mode edits")
            terminal.expect("Ready.")  # its newest turn is shown
            terminal.expect("❯ ")
            holder.type("make it\n")
            holder.expect("[y/s/N] ")
            terminal.expect("[y/s/N] ")
            terminal.type("y\n")
            terminal.expect("Made.")
            holder.expect("allowed by ada")
            holder.expect("Made.")
            holder.expect("❯ ")
            terminal.expect("❯ ")
            terminal.type("more\n")
            terminal.expect("Again.")
            holder.expect("more")
            holder.expect("(ada)")
            terminal.expect("❯ ")
            terminal.type("\x04")
            assert terminal.end()[0] == 0
        holder.expect("Again.")
    assert (bridle.workspace / "made.txt").read_text() == "made\n"


def test_it_can_be_only_watched(bridle: Program):
    with bridle.terminal("repl", "-m", bridle.script("Ready.", "More.")) as holder:
        holder.expect("❯ ")
        holder.type("hello\n")
        holder.expect("Ready.")
        holder.expect("❯ ")
        session = bridle.logs()[0].parent.name
        with bridle.terminal("attach", "--watch", session) as terminal:
            terminal.expect("watching; Ctrl-C quits")
            terminal.expect("Ready.")
            holder.type("go on\n")
            terminal.expect("More.")
            terminal.type("\x03")
            assert terminal.end()[0] == 0


def test_the_mode_of_a_flag_is_told_and_ends_with_its_process(bridle: Program):
    """P4: whoever takes the session up is bound by a mode that was chosen for it, and by no flag"""
    model = bridle.script("Ready.", "Again.")
    done = bridle.run("repl", "--mode", "edits", "-m", model, stdin=b"hello\n")
    assert done.returncode == 0
    log = bridle.logs()[0]
    found = [json.loads(line)["data"] for line in log.read_text().splitlines()]
    [told] = [one for one in found if one.get("kind") == "gate"]
    assert told["detail"] == {"mode": "edits"}
    assert not [one for one in found if one["type"] == "mode"]
    again = bridle.run("repl", "--resume", log.parent.name, "-m", model, stdin=b"/mode\n")
    assert again.stderr.splitlines()[-1] == "ask"


def test_the_mode_of_a_server_is_shown_to_who_attaches(bridle: Program):
    with served(bridle, "--mode", "edits", "-m", bridle.script("Ready.")) as server:
        folder = {"workspacePath": str(bridle.workspace)}
        session = server.ask("POST", "/api/sessions", folder)["id"]
        server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "hello"})
        with bridle.terminal("attach", "--plain", session) as terminal:
            terminal.expect("mode edits")
            terminal.expect("Ready.")
            terminal.type("\x04")
            assert terminal.end()[0] == 0
