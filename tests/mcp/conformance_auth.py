"""Our MCP client before the conformance suite's servers at which one signs in.

The person is played: whatever page they are sent to sends them straight back.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
from conformance_client import guess

from bridle.engine.json_schema import compile_schema
from bridle.protocols.tool import ToolContext
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.workspace import Workspace


class Played:
    """Visits a page, and comes back with what it says."""

    redirect_url = "http://127.0.0.1:9/callback"

    def __init__(self):
        self._came = {}

    async def open(self, url):
        async with httpx2.AsyncClient() as client:
            answer = await client.get(url)
        self._came = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def callback(self):
        return self._came


async def visit(url, root):
    spec = ServerSpec("suite", url=url, identity=url, timeout=240, tokens=str(Path(root, "tokens")))
    server = Server(spec, root, Pins("", "suite", url), compile_schema)
    server.browser = Played()
    source = Servers([server])
    try:
        await server.connect()
        for tool in source.usable_tools(server):
            await tool.execute(guess(tool.parameters), ToolContext(Workspace(root), "call-1"))
    finally:
        await source.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(visit(sys.argv[-1], folder))
