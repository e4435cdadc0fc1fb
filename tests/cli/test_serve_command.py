"""`bridle serve`: what it says, what it keeps private, how it stops (A10)."""

import json
import os
import re
import stat
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from cli_program import Program
from serve_program import served

SLEEP = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}


def test_one_calm_block_then_sessions_over_http_then_an_orderly_end(bridle: Program):
    """(A10)"""
    with served(bridle, "-m", bridle.script("Hello.")) as server:
        lines = [line.split(maxsplit=1) for line in server.said.splitlines()]
        assert lines[0][:1] == ["bridle"]
        named = {line[0]: line[1] for line in lines[1:] if len(line) == 2}
        assert named["folders"] == str(bridle.workspace)
        assert named["model"] == "scripted/scripted"
        assert named["mode"].startswith("ask · sandbox ")
        session = server.ask("POST", "/api/sessions", {})
        assert (session["workspace"], session["holder"]) == (str(bridle.workspace), "here")
        sent = server.ask("POST", f"/api/sessions/{session['id']}/chat", {"prompt": "hi"})
        assert sent == {"sessionId": session["id"], "turn": 1}
        assert server.stop() == (0, "")
    [log] = bridle.logs()
    types = [json.loads(line)["data"]["type"] for line in log.read_text().splitlines()]
    assert types[0] == "session_start" and "turn_end" in types


def test_nothing_secret_is_said_or_logged_and_what_is_kept_is_private(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        code = server.link.partition("#code=")[2]
        server.ask("GET", "/api/me")
        assert server.token not in server.said
        server.stop()
    folder = bridle.state / "server"
    log = (folder / "log").read_text()
    assert "started" in log and "stopped" in log
    assert server.token not in log and code not in log
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}
    assert modes == {"token": 0o600, "log": 0o600, "ports": 0o700}
    assert list((folder / "ports").iterdir()) == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert bridle.run("serve", "--show-token").stdout == f"{server.token}\n"


def test_the_printed_address_signs_in_once(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        code = server.link.partition("#code=")[2]
        first = sign_in(server.url, code)
        assert (first.status, "HttpOnly" in first.headers["Set-Cookie"]) == (200, True)
        with pytest.raises(urllib.error.HTTPError) as again:
            sign_in(server.url, code)
        assert again.value.code == 401
        again.value.close()
        first.close()


def test_the_printed_addresses_are_those_under_which_it_answers(bridle: Program):
    others = bridle.workspace / "tokens"
    others.touch(0o600)
    flags = ("--host", "0.0.0.0", "--token-file", str(others), "--allow-host", "bridle.example")
    with served(bridle, "-m", "offline", *flags) as server:
        assert server.url.startswith("http://127.0.0.1:")
        code = server.link.partition("#code=")[2]
        assert f"https://bridle.example/#code={code}" in server.said
        assert sign_in(server.url, code).status == 200


def test_the_browser_is_opened_without_the_code_among_its_arguments(bridle: Program, tmp_path):
    told = tmp_path / "told"
    os.mkfifo(told)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\n')
    browser.chmod(0o700)
    bridle.environ["BROWSER"] = str(browser)
    with served(bridle, "-m", "offline", "--open-browser") as server:
        [argument] = told.read_text().splitlines()
        file = Path(unquote(urlsplit(argument).path))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        code = re.search(r'url=[^"#]+#code=([\w-]+)', file.read_text())[1]
        assert code not in argument and code not in server.said
        sign_in(server.url, code).close()
        assert server.stop() == (0, "")
    assert not file.exists()


def sign_in(url: str, code: str):
    body = json.dumps({"code": code}).encode()
    headers = {"Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(f"{url}/api/login", body, headers))


def test_tokens_of_others_count_at_once_and_end_at_once(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        made = bridle.run("serve", "token", "add", "ann", "--role", "watch")
        token = made.stdout.strip()
        assert server.ask("GET", "/api/me", token=token)["name"] == "ann"
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.ask("POST", "/api/sessions", {}, token=token)
        assert json.loads(refused.value.read())["code"] == "forbidden_role"
        listed = bridle.run("serve", "token", "list", "--json")
        assert json.loads(listed.stdout) == [{"name": "ann", "role": "watch"}]
        assert bridle.run("serve", "token", "revoke", "ann").returncode == 0
        with pytest.raises(urllib.error.HTTPError) as gone:
            server.ask("GET", "/api/me", token=token)
        assert gone.value.code == 401
        gone.value.close()
        assert token not in (bridle.state / "server" / "tokens.jsonl").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        (["--mode", "auto"], "could run anything"),
        (["--token", "short"], "too short"),
        (["--token-file", "nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["--workspace", "nowhere"], "does not exist"),
        (["tokens"], "there is no command 'tokens'"),
        (["--agent", "nobody"], "there is no agent 'nobody'"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_listens(bridle: Program, arguments, said):
    done = bridle.run("serve", "-m", "offline", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "→" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said(bridle: Program):
    with served(bridle, "-m", "offline") as server:
        port = server.url.rpartition(":")[2]
        done = bridle.run("serve", "-m", "offline", "--port", port)
        assert done.returncode == 2
        assert f"port {port} cannot be used" in done.stderr


def test_a_stop_interrupts_the_turn_that_runs_and_leaves_no_process(bridle: Program):
    with served(bridle, "-m", bridle.script(SLEEP), "--rule", "allow: shell(sleep *)") as server:
        session = server.ask("POST", "/api/sessions", {})["id"]
        server.ask("POST", f"/api/sessions/{session}/chat", {"prompt": "sleep"})
        path = f"/api/sessions/{session}/records"
        while '"intent"' not in json.dumps(server.ask("GET", path)):
            pass
        assert server.stop() == (0, "")
    ends = [line for line in bridle.logs()[0].read_text().splitlines() if '"turn_end"' in line]
    assert [json.loads(line)["data"]["reason"] for line in ends] == ["interrupted"]
