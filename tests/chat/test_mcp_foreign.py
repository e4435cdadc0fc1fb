"""Foreign clients use the task tools: the official SDKs of Python and JavaScript, both ways."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from chat_tools_rig import PROGRAM, Served, environ
from tool_names import ALL

from bridle.chat.db import Database
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding, Signer
from node.rig import node, package

SCRIPT = Path(__file__).with_name("foreign_client.mjs")
USER = ("--user", "ana", "--timezone", "Europe/Berlin")
pytestmark = pytest.mark.timeout(300)  # they start programs, of two languages


def foreign(**where):
    """What the client from npm was told; it comes with the conformance suite."""
    sdk = package("@modelcontextprotocol/sdk")
    words = [node(), str(SCRIPT), str(sdk), json.dumps(where)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(said):
    assert said["server"] == "bridle-tasks"
    assert said["tools"] == ALL
    assert said["added"]["data"]["title"] == "From afar"
    assert [one["title"] for one in said["listed"]["data"]["tasks"]] == ["From afar"]
    assert said["forged"]["error"]["code"] == "invalid_input"
    assert said["forged"]["isError"] is True
    assert "serves a single user" in said["bound"]["refused"]
    assert said["missing"]["error"]["code"] == "not_found"
    assert "no tool" in said["unknown"]["refused"]


@pytest.fixture
def bobs(sqlite_url):
    """Bob has a task, which Ana's clients never see."""
    database = Database(sqlite_url)
    server = MCPToolServer(database.session_factory)

    async def work():
        await server.call("add_task", {"title": "Bob's own"}, Binding("bob"))
        await server.close()

    asyncio.run(work())
    database.close()
    return sqlite_url


def test_T2_T3_a_client_from_npm_over_pipes(bobs):
    check(foreign(command=[*PROGRAM, *USER], env=environ(bobs)))


def test_T2_T3_a_client_from_npm_over_http(bobs):
    with Served(bobs, *USER) as served:
        check(foreign(url=served.url, token=served.token))
        assert served.end()[0] == 0


def test_T2_the_official_python_client_over_pipes_by_both_protocols(bobs):
    from mcp import Client, StdioServerParameters

    async def work(mode):
        started = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], *USER], env=environ(bobs)
        )
        async with Client(started, mode=mode) as client:
            names = [one.name for one in (await client.list_tools()).tools]
            added = await client.call_tool("add_task", {"title": mode})
            found = await client.call_tool("list_tasks", {})
            return names, added, found

    for count, mode in enumerate(("auto", "legacy"), 1):
        names, added, found = asyncio.run(work(mode))
        assert names == ALL
        assert added.structured_content["success"] is True
        assert json.loads(found.content[0].text) == found.structured_content
        assert found.structured_content["data"]["total"] == count


def test_T3_without_a_user_an_unsigned_call_is_refused_in_process_too(sqlite_url):
    from mcp import Client, MCPError

    database = Database(sqlite_url)
    tools = MCPToolServer(database.session_factory)

    async def work():
        async with Client(
            tools.sdk_server(signer=Signer("a secret that is long enough"))
        ) as client:
            listed = await client.list_tools()
            with pytest.raises(MCPError, match="refused: the call is not bound to a user"):
                await client.call_tool("list_tasks", {})
        await tools.close()
        return len(listed.tools)

    assert asyncio.run(work()) == len(ALL)
    database.close()
