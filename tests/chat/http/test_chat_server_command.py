"""`bridle chat-server`: real processes, several of them on one port, on both databases."""

import os
import re
import signal
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from chat_program import ended, secret_file, served, workers_of
from rig_chat import SECRET

pytestmark = pytest.mark.timeout(180)  # processes start slowly where ten things run at once


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """A folder with a secret in it."""
    secret_file(tmp_path)
    return tmp_path


def test_several_workers_share_a_port_and_a_killed_one_is_replaced(plain, database_url):
    """(T6) Any process answers the next message; none is lost with a worker that dies."""
    flags = ("--database", database_url, "--workers", 2, "--secret-file", plain / "secret")
    with served(plain, *flags, "--model", "offline", "--messages-a-minute", 0) as server:
        first = server.say("add buy milk", None)
        place = first.body["conversation_id"]
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda n: server.say(f"add item {n}", place), range(16)))
        assert {one.status for one in said} == {200}
        before = workers_of(server.process.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        until(lambda: before[0] not in workers_of(server.process.pid))
        answers = [server.say("show my tasks", place) for _ in range(4)]
        assert {one.status for one in answers} == {200}
        assert server.ask("GET", "/api/ana/tasks").body["open"] == 17
        again = server.say("add once", place, **{"Idempotency-Key": "one"})
        assert server.say("add once", place, **{"Idempotency-Key": "one"}).body == again.body
        assert server.ask("GET", "/api/ana/tasks").body["open"] == 18
        until(lambda: set(workers_of(server.process.pid)) - set(before))
        left = workers_of(server.process.pid)
        code, said = server.stop()
        assert (code, said.strip()) == (0, "")
        assert not any(map(_alive, left))


def test_workers_end_with_whoever_started_them(plain):
    with served(plain, "--workers", 2, "--demo") as server:
        crew = workers_of(server.process.pid)
        server.process.kill()
        server.process.wait()
        until(lambda: not any(map(_alive, crew)))


def until(holds):
    """Wait for it; the test's own time is the limit."""
    while not holds():
        time.sleep(0.02)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def test_the_demo_has_two_users_with_tasks_and_their_links(plain):
    with served(plain, "--demo") as server:
        links = re.findall(r"(\w+) +http\S+/chat#token=(\S+)", server.said)
        assert [name for name, _ in links] == ["ana", "ben"]
        lists = {
            name: server.ask("GET", f"/api/{name}/tasks", bearer=bearer).body["tasks"]
            for name, bearer in links
        }
        assert len(lists["ana"]) == 5 and len(lists["ben"]) == 3
        ana = dict(links)["ana"]
        assert server.ask("GET", "/api/ben/tasks", bearer=ana).status == 403
        assert "rules, no language model" in server.said
        assert server.stop(signal.SIGINT)[0] == 0
    assert not (plain / "state" / "chat.db").exists()


def test_a_token_is_made_for_a_user_and_nothing_secret_is_said(plain):
    with served(plain, "--model", "offline") as server:
        code, minted, err = ended(plain, "chat-server", "token", "ana", "--hours", "1")
        assert code == 0 and "ana · valid for 1 hour\n" in err
        assert server.ask("GET", "/api/chat/me", bearer=minted.strip()).body["user_id"] == "ana"
        assert server.ask("GET", "/api/chat/me", bearer=minted.strip()[:-2]).status == 401
        server.stop()
    folder = plain / "state" / "server"
    secret = (folder / "chat-secret").read_text().strip()
    log = (folder / "chat.log").read_text()
    assert secret not in server.said + log and minted.strip() not in log
    assert stat.S_IMODE((folder / "chat-secret").stat().st_mode) == 0o600
    assert "started" in log and "stopped" in log and "ana" not in log


REFUSED = {
    "beyond this machine": (("--host", "0.0.0.0"), "--secret-file"),
    "no such file": (("--secret-file", "nowhere"), "there is no file nowhere"),
    "no keys": (("--model", "offline", "--jwks", "nowhere"), "cannot be read"),
    "both": (("--jwks", "a", "--secret-file", "secret"), "cannot be combined"),
    "limit": (("--app", "a:b", "--messages-a-minute", "5"), "The app sets its own limits"),
    "no module": (("--app", "nowhere:app"), "there is no module nowhere"),
    "no chat": (("--app", "json:dumps_"), "is not a chat"),
    "no database": (("--model", "offline", "--database", "nonsense://x"), "SQLite or PostgreSQL"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_served_is_said_in_a_line(plain, name):
    flags, said = REFUSED[name]
    code, out, err = ended(plain, "chat-server", "--port", "0", *flags)
    assert (code in (1, 2), out) == (True, ""), err
    assert said in err and "Traceback" not in err and SECRET not in err


FREE = ("--port", "0", "--model", "offline")


def test_a_secret_that_others_can_read_or_guess_is_refused(plain):
    (plain / "secret").chmod(0o644)
    code, _, err = ended(plain, "chat-server", "--secret-file", plain / "secret", *FREE)
    assert code == 2 and "chmod 600" in err
    (plain / "secret").chmod(0o600)
    (plain / "secret").write_text("short")
    code, _, err = ended(plain, "chat-server", "--secret-file", plain / "secret", *FREE)
    assert code == 2 and "could be guessed" in err and "short" not in err


def test_a_database_is_brought_up_to_date_without_serving(plain, empty_urls):
    for url in empty_urls:
        for _ in range(2):
            code, out, err = ended(plain, "chat-server", "migrate", "--database", url)
            assert (code, err) == (0, "") and "up to date" in out


def test_the_chat_stands_beside_the_sessions(plain, sqlite_url):
    """`bridle serve --chat`: one address, two kinds of tokens, and neither opens the other's."""
    flags = ("--chat", "--chat-database", sqlite_url, "--chat-secret-file", plain / "secret")
    with served(plain, *flags, "--model", "offline", command="serve") as server:
        own = (plain / "state" / "server" / "token").read_text().strip()
        assert server.ask("GET", "/api/me", bearer=own).body["name"] == "me"
        assert server.ask("GET", "/api/sessions", bearer=own).status == 200
        assert server.ask("GET", "/api/me").status == 401
        said = server.say("add buy milk")
        assert (said.status, said.body["response"][:7]) == (200, "Got it!")
        assert server.ask("GET", "/api/ana/tasks", bearer=own).status == 401
        assert server.ask("POST", "/api/sessions/chat", {"message": "x"}).status == 401
        assert f"{server.url}/chat" in server.said
        assert server.stop()[0] == 0


def test_a_worker_imports_nothing_from_the_current_folder(plain):
    for name in ("click", "msgspec", "uvicorn"):
        (plain / f"{name}.py").write_text(f"open({str(plain / 'imported')!r}, 'w').close()")
    with served(plain, "--workers", "2", "--database", plain / "chat.db"):
        assert not (plain / "imported").exists()
