"""Tools of another process: over pipes and HTTP, signed, and what happens when it dies."""

import asyncio
import logging
import os
import shutil
import signal
from pathlib import Path

import pytest
from chat_tools_rig import PATIENCE, PROGRAM, SECRET, Served, environ

from bridle.chat.db import Database
from bridle.chat.errors import TROUBLE
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import BINDING_KEY, Binding, Signer
from bridle.chat.tools.remote import RemoteTools
from bridle.errors import ConfigError, ToolError

ANA = Binding("ana", "talk")
pytestmark = pytest.mark.timeout(300)  # most of them start a program or two


@pytest.fixture(scope="module")
def served(sqlite_template, tmp_path_factory):
    """One server for the tests that leave it alive; each has users of its own."""
    path = tmp_path_factory.mktemp("served") / "chat.db"
    shutil.copy(sqlite_template, path)
    with Served(f"sqlite:///{path}") as found:
        yield found


@pytest.fixture
def mortal(sqlite_url):
    """One that may be killed."""
    with Served(sqlite_url) as found:
        yield found


def bound(operation, user="ana"):
    return Binding(user, "talk", operation)


def trouble(found):
    return found["error"] == {"code": "processing_error", "message": TROUBLE}


def in_process(url, user="ana"):
    """The titles of a user's tasks, as this process sees them."""

    async def work():
        database = Database(url)
        server = MCPToolServer(database.session_factory)
        found = await server.call("list_tasks", {}, Binding(user))
        await server.close()
        database.close()
        return [one["title"] for one in found["data"]["tasks"]]

    return asyncio.run(work())


def story(tools):
    """One user's short day, and another one beside."""

    async def work():
        try:
            listed = await tools.list()
            added = await tools.call("add_task", {"title": "Milk"}, bound("turn:1"))
            again = await tools.call("add_task", {"title": "Milk"}, bound("turn:1"))
            number = added["data"]["id"]
            foreign = await tools.call("complete_task", {"task_id": number}, Binding("bob"))
            done = await tools.call("complete_task", {"task_id": number}, bound("turn:2"))
            bad = await tools.call("add_task", {"title": "x", "userId": "bob"}, bound("turn:3"))
            odd = await tools.call("no_such_tool", {}, ANA)
            return listed, added, again, foreign, done, bad, odd
        finally:
            await tools.close()

    return asyncio.run(work())


def check(told):
    listed, added, again, foreign, done, bad, odd = told
    assert "add_task" in {one.name for one in listed}
    assert {one.name for one in listed if one.reads} == {"list_tasks", "search_tasks"}
    assert added["success"]
    assert again == added
    assert foreign["error"]["code"] == "not_found"
    assert done["data"]["completed"] is True
    assert bad["error"]["code"] == "invalid_input"
    assert odd["error"]["code"] == "invalid_input"


def test_T2_T3_the_same_story_over_http(served):
    check(story(RemoteTools(served.url, SECRET)))
    assert in_process(served.database) == ["Milk"]


def test_T2_T3_the_same_story_over_pipes(database_url):
    check(story(RemoteTools(PROGRAM, environ=environ(database_url), timeout=PATIENCE)))
    assert in_process(database_url) == ["Milk"]


def test_a_server_that_was_killed_is_reached_again_and_nothing_is_repeated(mortal, sqlite_url):
    hostile = {"title": "x", "owner": "bob"}

    async def work():
        tools = RemoteTools(mortal.url, SECRET, timeout=PATIENCE)
        first = await tools.call("add_task", {"title": "One"}, bound("turn:1"))
        await tools.call("add_task", hostile, Binding("ana-the-user"))
        _, said = await asyncio.to_thread(mortal.end, signal.SIGKILL)
        away = await tools.call("add_task", {"title": "Two"}, bound("turn:2"))
        with pytest.raises(ToolError, match="cannot be reached"):
            await tools.list()
        await asyncio.to_thread(mortal.start)
        back = await tools.call("add_task", {"title": "Two"}, bound("turn:2"))
        again = await tools.call("add_task", {"title": "One"}, bound("turn:1"))
        listed = await tools.list()
        await tools.close()
        return said, first, away, back, again, listed

    said, first, away, back, again, listed = asyncio.run(work())
    assert trouble(away)
    assert back["success"]
    assert again == first
    assert len(listed) == 11
    assert in_process(sqlite_url) == ["One", "Two"]
    assert "tried to set owner and was refused" in said
    assert "ana-the-user" not in said  # T3: nobody is named in a log


def children():
    """The processes that this one started and that live."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(one) for one in found]


def test_a_program_that_was_killed_is_started_again(sqlite_url):
    async def work():
        tools = RemoteTools(PROGRAM, environ=environ(sqlite_url), timeout=PATIENCE)
        before = set(children())
        first = await tools.call("add_task", {"title": "One"}, bound("turn:1"))
        (program,) = set(children()) - before
        os.kill(program, signal.SIGKILL)
        back = await tools.call("add_task", {"title": "Two"}, bound("turn:2"))
        again = await tools.call("add_task", {"title": "One"}, bound("turn:1"))
        await tools.close()
        return first, back, again, set(children()) - before

    first, back, again, left = asyncio.run(work())
    assert back["success"]
    assert again == first
    assert left == set()
    assert in_process(sqlite_url) == ["One", "Two"]


def test_a_change_without_an_operation_is_not_asked_again(sqlite_url):
    async def work():
        tools = RemoteTools(PROGRAM, environ=environ(sqlite_url), timeout=PATIENCE)
        before = set(children())
        await tools.call("list_tasks", {}, ANA)
        (program,) = set(children()) - before
        os.kill(program, signal.SIGKILL)
        lost = await tools.call("add_task", {"title": "One"}, ANA)
        then = await tools.call("add_task", {"title": "Two"}, ANA)
        await tools.close()
        return lost, then

    lost, then = asyncio.run(work())
    assert trouble(lost)
    assert then["success"]
    assert in_process(sqlite_url) == ["Two"]


def test_a_program_that_is_not_there_is_a_friendly_sentence():
    async def work():
        tools = RemoteTools(["/no/such/program"])
        await tools.warm()
        found = await tools.call("add_task", {"title": "One"}, bound("turn:1"))
        with pytest.raises(ToolError, match="cannot be reached"):
            await tools.list()
        await tools.close()
        return found

    assert trouble(asyncio.run(work()))


def test_T3_the_wrong_secret_opens_nothing(served):
    async def work():
        tools = RemoteTools(served.url, "another secret, just as long")
        found = await tools.call("add_task", {"title": "One"}, bound("turn:1", "eve"))
        await tools.close()
        return found

    assert trouble(asyncio.run(work()))
    assert in_process(served.database, "eve") == []


def test_tools_at_an_address_need_a_secret():
    with pytest.raises(ConfigError, match="secret"):
        RemoteTools("http://127.0.0.1:1/mcp")


async def raw(url, token, meta):
    """The official client, with the right token, and a `_meta` of its own making."""
    from mcp import Client, MCPError

    from bridle.chat.tools.mcp_wire import connect_http

    client = connect_http(url, token)
    assert isinstance(client, Client)
    async with client:
        try:
            found = await client.call_tool("add_task", {"title": "x"}, meta=meta)
        except MCPError as error:
            return error.message
        return found.structured_content


def test_T3_a_call_that_is_not_signed_for_itself_is_refused(served):
    seal, bound = Signer(SECRET), Binding("cid")
    good = seal.sign(bound, "add_task", {"title": "x"})
    metas = [
        {},
        {BINDING_KEY: bound.to_wire()},
        {BINDING_KEY: good | {"user_id": "bob"}},
        {BINDING_KEY: seal.sign(bound, "add_task", {"title": "y"})},
        {BINDING_KEY: seal.sign(bound, "list_tasks", {"title": "x"})},
        {BINDING_KEY: Signer(SECRET + "!").sign(bound, "add_task", {"title": "x"})},
        {"user_id": "cid", "bridle/user": "ana"},
    ]

    async def work():
        refused = [await raw(served.url, seal.token, meta) for meta in metas]
        first = await raw(served.url, seal.token, {BINDING_KEY: good})
        return refused, first, await raw(served.url, seal.token, {BINDING_KEY: good})

    refused, first, replayed = asyncio.run(work())
    assert all(said.startswith("refused: ") for said in refused), refused
    assert first["success"]
    assert replayed == "refused: the binding of the call was used before"
    assert in_process(served.database, "cid") == ["x"]


def test_over_http_the_door_has_a_token(served):
    async def work():
        with pytest.raises(BaseException) as raised:
            await raw(served.url, "not-the-token", {})
        return raised.value

    assert isinstance(asyncio.run(work()), Exception | BaseExceptionGroup)


def test_T3_nobody_is_named_in_any_log_of_this_side(served, caplog):
    async def work():
        tools = RemoteTools(served.url, SECRET)
        found = await tools.call("add_task", {"title": "quiet"}, Binding("ana-the-user"))
        await tools.close()
        return found

    with caplog.at_level(logging.DEBUG):
        assert asyncio.run(work())["success"]
    assert "ana-the-user" not in caplog.text


@pytest.mark.parametrize(
    "given",
    [{"title": "\ud800"}, {"title": float("nan")}, {"title": "x" * 300_000}, {"title": {1}}],
)
def test_what_cannot_be_sent_does_not_cost_the_connection(served, given):
    async def work():
        tools = RemoteTools(served.url, SECRET)
        connection = tools._connector.connection()
        found = await tools.call("add_task", given, bound("turn:1", "dan"))
        same = tools._connector.connection() is connection
        await tools.close()
        return found, same

    found, same = asyncio.run(work())
    assert found["error"]["code"] == "invalid_input"
    assert same
