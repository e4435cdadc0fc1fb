"""`bridle attach`: the REPL on a session of a server, unchanged (A12)."""

import json
import socket
import threading
from contextlib import suppress

import pytest
from cli_program import Program
from serve_program import PATIENCE, served

SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}


def question(server, session):
    """The one that waits, as the API shows it."""
    while not (found := server.ask("GET", "/api/approvals")["approvals"]):
        pass
    [one] = found
    assert one["sessionId"] == session
    return one


def answer(server, one, token=None):
    path = f"/api/sessions/{one['sessionId']}/approvals/{one['callId']}"
    return server.ask("POST", path, {"allowed": True, "shown": one["shown"]}, token)


def test_prompts_and_questions_work_as_with_a_local_session(bridle: Program):
    """(A12) Works as a REPL, and answers approvals."""
    with served(bridle, "-m", bridle.script("Hello.", SHELL, "Made.")) as server:
        with bridle.terminal("attach", "--plain", server.url) as terminal:
            terminal.expect("scripted/scripted · mode ask")
            terminal.expect("❯ ")
            terminal.type("hi\n")
            terminal.expect("Hello.")
            terminal.expect("❯ ")
            terminal.type("make it\n")
            terminal.expect("$ echo made > made.txt")
            terminal.expect("[y/s/r/N] ")
            terminal.type("y\n")
            terminal.expect("Made.")
            terminal.expect("❯ ")
            terminal.type("/mode edits\n")
            terminal.expect("edits\n")
            terminal.expect("❯ ")
            terminal.type("\x04")
            assert terminal.end()[0] == 0
        assert (bridle.workspace / "made.txt").read_text() == "made\n"
        [line] = server.ask("GET", "/api/sessions")["sessions"]
        assert (line["state"], line["mode"], line["turn"]) == ("done", "edits", 2)


def test_a_question_that_somebody_else_answers_goes_away_with_a_line_that_says_who(bridle: Program):
    """(A12) The first answer wins."""
    with served(bridle, "-m", bridle.script(SHELL, "Made.")) as server:
        token = bridle.run("serve", "token", "add", "ann", "--role", "answer").stdout.strip()
        session = server.ask("POST", "/api/sessions", {})["id"]
        with bridle.terminal("attach", "--plain", server.url, session) as terminal:
            terminal.expect("❯ ")
            terminal.type("make it\n")
            terminal.expect("[y/s/r/N] ")
            assert answer(server, question(server, session), token)["by"] == "ann"
            terminal.expect("allowed by ann")
            terminal.expect("Made.")
            terminal.expect("❯ ")


def test_what_others_do_is_shown_and_their_questions_are_asked_here_too(bridle: Program):
    with served(bridle, "-m", bridle.script(SHELL, "Made.", "Again.")) as server:
        session = server.ask("POST", "/api/sessions", {})["id"]
        with bridle.terminal("attach", "--plain", server.url, session) as terminal:
            terminal.expect("❯ ")
            server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "make it"})
            terminal.expect("make it")
            terminal.expect("[y/s/r/N] ")
            terminal.type("y\n")
            terminal.expect("Made.")
            terminal.expect("❯ ")
            terminal.type("more\n")  # and the line belongs to the prompt again
            terminal.expect("Again.")


def test_one_who_watches_sees_everything_and_is_asked_nothing(bridle: Program):
    with served(bridle, "-m", bridle.script(SHELL, "Made.")) as server:
        session = server.ask("POST", "/api/sessions", {})["id"]
        token = bridle.run("serve", "token", "add", "bob", "--role", "watch").stdout.strip()
        bridle.environ |= {"BRIDLE_TOKEN": token, "USER": "me"}  # who is another one there
        with bridle.terminal("attach", "--plain", server.url, session) as terminal:
            terminal.expect("watching")
            server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "make it"})
            terminal.expect("(me)")  # the owner: it was not bob who said it
            terminal.expect("shell needs approval")
            answer(server, question(server, session))
            terminal.expect("Made.")
            terminal.type("\x03")
            assert terminal.end()[0] == 0
        while (state := server.ask("GET", f"/api/sessions/{session}")["state"]) == "running":
            pass  # what it said last was shown before its turn had ended
        assert state == "done"


def test_in_a_pipe_each_line_is_a_prompt_and_a_question_is_left_to_others(bridle: Program):
    with served(bridle, "-m", bridle.script("One.", SHELL, "Made.")) as server:
        done = bridle.run("attach", server.url, stdin=b"first\nmake it\n")
        assert (done.returncode, done.stdout) == (0, "One.\n")
        assert "the turn needs approval, and no one here can give it" in done.stderr
        [line] = server.ask("GET", "/api/sessions")["sessions"]
        assert (line["state"], line["waiting"]) == ("waiting", 1)
        answer(server, question(server, line["id"]))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["http://127.0.0.1:1", "--token", "a-token-of-mine"], 1, "nobody listens there"),
        (["http://127.0.0.1:1"], 2, "your token was not sent there"),
        (["ftp://127.0.0.1"], 2, "is not the address of a server"),
        (["nothing-like-it"], 2, "there is no session 'nothing-like-it'"),
        (["here", "there"], 2, "only allowed after a server URL"),
        (["http://127.0.0.1:1", "--token-file", "nowhere"], 2, "cannot be read from nowhere"),
    ],
)
def test_what_cannot_be_attached_to_is_said_in_a_sentence(bridle: Program, arguments, code, said):
    done = bridle.run("attach", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_our_token_goes_to_no_port_that_somebody_else_has(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        assert bridle.run("attach", server.url.replace("127.0.0.1", "localhost")).returncode == 0
        server.process.kill()  # what it left behind proves nothing
        server.process.wait()
    heard = []
    with socket.create_server(("127.0.0.1", int(server.url.rpartition(":")[2]))) as listening:
        listening.settimeout(PATIENCE)

        def listen():
            with suppress(OSError), listening.accept()[0] as other:
                heard.append(other.recv(65_536))

        thread = threading.Thread(target=listen)
        thread.start()
        done = bridle.run("attach", server.url)
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert (done.returncode, heard) == (2, [])
    assert "your token was not sent there" in done.stderr


def test_a_wrong_token_and_a_session_that_is_not_there_are_said(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        wrong = bridle.run("attach", server.url, BRIDLE_TOKEN="wrong-wrong-wrong-wrong")
        assert (wrong.returncode, "BRIDLE_TOKEN" in wrong.stderr) == (2, True)
        missing = bridle.run("attach", server.url, "2020")
        assert (missing.returncode, "no session '2020'" in missing.stderr) == (2, True)


def test_the_printed_address_will_do_and_so_does_the_pages_own(bridle: Program):
    with served(bridle, "-m", bridle.script("One.", "Two.", loop=True)) as server:
        done = bridle.run("attach", server.link, stdin=b"hi\n")
        assert (done.returncode, done.stdout) == (0, "One.\n")
        [line] = server.ask("GET", "/api/sessions")["sessions"]
        again = bridle.run("attach", f"{server.url}/#/s/{line['id']}", stdin=b"more\n")
        assert (again.returncode, again.stdout) == (0, "Two.\n")
        data = [json.loads(line)["data"] for line in bridle.logs()[0].read_text().splitlines()]
        said = [
            (one["content"], one.get("by", "me")) for one in data if one["type"] == "user_prompt"
        ]
        assert said == [("hi", "me"), ("more", "me")]
