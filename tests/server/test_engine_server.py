"""An engine of a program's own, served over HTTP beside the program's own work."""

import asyncio
import json
import subprocess
import sys
import urllib.request

import pytest

import bridle
import bridle.server
from bridle.client import Client
from bridle.errors import ConfigError, MissingExtra
from bridle.events import ApprovalAsked
from bridle.stores.memory_store import MemoryStore
from bridle.testing import Scripted
from rig import call, run, until


@bridle.tool
def order(item: str) -> str:
    """Order something."""
    return f"ordered {item}"


def engine_of(tmp_path, *replies, **options):
    given = {"tools": [order], "state": tmp_path, "on_ask": "wait", **options}
    return bridle.build_engine(Scripted(replies), **given)


def test_a_program_serves_its_engine_and_a_client_answers_what_it_asks(tmp_path):
    async def story():
        async with (
            engine_of(tmp_path, call("order", item="a saddle"), "It is ordered.") as engine,
            bridle.server.open_server(engine) as server,
            Client(server.url, server.token) as client,
        ):
            session = await client.session()
            turn = await session.send("order a saddle")
            asked = (await until(session, lambda one: isinstance(one, ApprovalAsked))).event
            await session.answer(asked.call.id, True, shown=asked.shown, by="me")
            result = await session.wait(turn)
            return result, session.id, [one.id for one in engine.sessions()]

    result, session_id, open_here = run(story())
    assert (result.reason, result.text) == ("done", "It is ordered.")
    assert open_here == [session_id]


def test_a_session_of_the_program_is_seen_over_http_and_the_engine_outlives_the_server(tmp_path):
    async def story():
        async with engine_of(tmp_path, "One.", "Two.", "Three.") as engine:
            mine = await engine.session()
            await engine.run("first", session=mine)
            async with (
                bridle.server.open_server(engine) as server,
                Client(server.url, server.token) as client,
            ):
                theirs = await client.open(mine.id)
                second = await theirs.wait(await theirs.send("second"))
                models = await client.models()
            third = await engine.run("third", session=mine)
            return second, third, models

    second, third, models = run(story())
    assert (second.text, third.text) == ("Two.", "Three.")
    assert [one.name for one in models.choices] == ["scripted/scripted"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_ask": "deny"}, "denies calls that need approval"),
        ({"store": MemoryStore()}, "does not keep logs in a folder"),
    ],
)
def test_an_engine_that_cannot_be_served_is_refused_with_what_to_do(tmp_path, options, said):
    async def story():
        async with engine_of(tmp_path, **options) as engine:
            with pytest.raises(ConfigError, match=said) as refused:
                async with bridle.server.open_server(engine):
                    raise AssertionError("it must not be served")
            return refused.value.hint

    assert "build" in run(story()).lower()


def test_beyond_this_machine_it_takes_a_token_of_ones_own(tmp_path):
    async def story():
        async with engine_of(tmp_path) as engine:
            for options in ({"host": "0.0.0.0"}, {"token": "short"}):
                with pytest.raises(ConfigError, match=r"other machines|too short"):
                    await bridle.server.serve(engine, port=0, **options)

    run(story())


PROGRAM = """
import asyncio, sys, bridle, bridle.server
from bridle.testing import Scripted
async def main():
    model = Scripted(["Hello."], loop=True)
    async with bridle.build_engine(model, tools=[], state=sys.argv[1], on_ask="wait") as engine:
        await bridle.server.serve(engine, port=0)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_program_that_only_serves_says_where_and_ends_with_ctrl_c(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path], stdout=subprocess.PIPE, text=True
    )
    with process:
        url = process.stdout.readline().split()[-1]
        assert process.stdout.readline().startswith(f"open {url}/#code=")
        token = (tmp_path / "server" / "token").read_text().strip()
        asked = urllib.request.Request(
            f"{url}/api/me", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.loads(answer.read())["role"] == "admin"
        process.send_signal(2)
        assert process.communicate(timeout=60)[0] == "stopped\n"
        assert process.returncode == 0


def test_what_serves_is_named_if_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.delitem(vars(bridle.server), "serve", raising=False)
    with pytest.raises(MissingExtra, match="starlette") as refused:
        _ = bridle.server.serve
    assert refused.value.hint == "Install it with: pip install 'bridle-agent[server]'"


BARE = """
import sys
sys.modules["starlette"] = None  # as if it were not installed
from bridle.errors import MissingExtra
for line in sys.argv[1:]:
    try:
        exec(line)
    except MissingExtra as error:
        print(error.hint)
"""


def test_every_way_to_the_server_names_the_extra_that_is_missing():
    ways = [
        "import bridle.server.app",
        "from bridle.server import serve",
        "from bridle.server.engine_server import serve",
        "import bridle.server; bridle.server.open_server",
    ]
    done = subprocess.run(
        [sys.executable, "-c", BARE, *ways], capture_output=True, text=True, check=False
    )
    hint = "Install it with: pip install 'bridle-agent[server]'"
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [hint] * len(ways), "")


def test_a_server_that_is_not_entered_leaves_nothing(tmp_path):
    async def story():
        async with engine_of(tmp_path, "Hi.") as engine:
            with pytest.raises(asyncio.CancelledError):
                async with bridle.server.open_server(engine):
                    raise asyncio.CancelledError
            return (await engine.run("still there?")).text

    assert run(story()) == "Hi."
