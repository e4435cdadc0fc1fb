"""MCP over HTTP before clients that say little, or leave in the middle: as before any server."""

import asyncio
import contextlib
import logging

import pytest
from serve_rig import Served

from bridle.chat.db import Database
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding
from bridle.server.mcp.http import PATH, HttpTransport, application, bind, with_token_check
from bridle.server.middleware import Limits
from rig import run

TOKEN = "a-token-that-only-this-test-knows"
QUICK = Limits(head_seconds=0.3, body_seconds=0.3)


@contextlib.asynccontextmanager
async def serving(kind, folder, limits=None):
    """A server of that kind on a port of its own."""
    database = Database(str(folder / "chat.db"))
    tools = MCPToolServer(database.session_factory)
    with bind(0) as listening:
        port = listening.getsockname()[1]
        if kind == "bridle mcp serve":
            app = application(Served(folder).server, port, TOKEN)
        else:
            made = tools.sdk_server(binding=Binding("ana")).streamable_http_app(
                streamable_http_path=PATH, stateless_http=True, json_response=True
            )
            app = with_token_check(made, port, TOKEN)
        web = HttpTransport(app, listening, limits=limits)
        serves = asyncio.ensure_future(web.serve())
        try:
            yield port
        finally:
            web.stop()
            await serves
            await tools.close()
            database.close()


def head(port, *more):
    lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {TOKEN}"]
    lines += ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


async def answer(port, said):
    """What comes back to a client that says this and then nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("kind", ["bridle mcp serve", "bridle chat-tools"])
def test_half_a_head_and_an_endless_body_are_408(tmp_path, caplog, kind):
    async def work():
        async with serving(kind, tmp_path, QUICK) as port:
            for said in (b"POST /mcp HTTP/1.1\r\nHost: 127", body(port), b""):
                found = await answer(port, said)
                assert found.startswith(b"HTTP/1.1 408 "), said

    run(work())
    assert noise(caplog) == []


@pytest.mark.parametrize("kind", ["bridle mcp serve", "bridle chat-tools"])
def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_no_traceback(tmp_path, caplog, kind):
    async def work():
        async with serving(kind, tmp_path) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(body(port))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            found = await answer(port, head(port, "Content-Length: 2", "Connection: close") + b"{}")
            assert found.startswith(b"HTTP/1.1 4")  # it goes on answering

    run(work())
    assert noise(caplog) == []


def body(port):
    return head(port, "Transfer-Encoding: chunked") + b'5\r\n{"a":\r\n'


def noise(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
