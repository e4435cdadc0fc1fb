"""`bridle chat-tools` as a program: what it needs to start, and what it says where that lacks."""

import asyncio
import json
import socket

import mcp.client.stdio  # noqa: F401 - it keeps the stderr of the time at which it is imported
import pytest
from chat_tools_rig import PATIENCE, PROGRAM, SECRET, Served, environ

from bridle.chat import Binding, RemoteTools
from bridle.cli import main

MODULE = '''
from bridle.chat import Call, Toolbox

box = Toolbox("greetings")


@box.tool(reads=True)
def greet(call: Call, name: str) -> str:
    """Say hello."""
    return f"Hello {name}, it is {call.now:%Z}"
'''


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.delenv("BRIDLE_CHAT_SECRET", raising=False)
    monkeypatch.setenv("BRIDLE_CHAT_DATABASE", str(tmp_path / "chat.db"))


def refused(capsys, *words):
    code = main(["chat-tools", *words])
    said = capsys.readouterr().err
    assert code != 0
    assert "Traceback" not in said
    return said


def test_without_a_secret_nobody_could_vouch_for_a_call(capsys):
    said = refused(capsys)
    assert "there is no secret" in said
    assert "--user" in said


def test_a_secret_that_others_can_read_or_that_is_short_is_refused(capsys, tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o644)
    assert "chmod 600" in refused(capsys, "--secret-file", str(path))
    assert "cannot be read" in refused(capsys, "--secret-file", str(tmp_path / "none"))
    monkeypatch.setenv("BRIDLE_CHAT_SECRET", "short")
    assert "16 characters" in refused(capsys)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--user", "ana", "--timezone", "Mars/Base"), "no time zone"),
        (("--user", "ana", "--tools", "no_such_module:box"), "no module"),
        (("--user", "ana", "--tools", "json:loads"), "not a toolbox"),
        (("--user", "ana", "--database", "mysql://x/y"), "SQLite or PostgreSQL"),
        (("--http", "99999"), "99999"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(capsys, words, wanted):
    assert wanted in refused(capsys, *words)


def test_a_toolbox_of_one_s_own_is_served_by_name(tmp_path, sqlite_url):
    (tmp_path / "greetings.py").write_text(MODULE)
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    words = [*PROGRAM, "--tools", "greetings:box", "--secret-file", str(path)]

    async def work():
        found = environ(sqlite_url, PYTHONPATH=str(tmp_path))
        tools = RemoteTools(words, SECRET, environ=found, timeout=PATIENCE)
        listed = await tools.list()
        found = await tools.call("greet", {"name": "Ana"}, Binding("ana", timezone="Asia/Tokyo"))
        await tools.close()
        return [one.name for one in listed], found

    names, found = asyncio.run(work())
    assert names == ["greet"]
    assert json.dumps(found) == '{"success": true, "data": "Hello Ana, it is JST"}'


def test_half_a_head_is_408_after_ten_seconds_as_everywhere(tmp_path):
    with Served(str(tmp_path / "chat.db"), "--user", "ana") as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as client:
            client.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127")
            assert client.recv(100).startswith(b"HTTP/1.1 408 ")
        assert served.end() == (0, "")
