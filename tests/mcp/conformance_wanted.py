"""Our MCP client, for scenarios of the conformance suite that say which calls they want to see.

Those of MCP_CONFORMANCE_CONTEXT, or the schema of one tool as we know it, handed to another.
"""

import asyncio
import json
import os
import sys
import tempfile

from conformance_client import accept

from bridle.engine.json_schema import compile_schema
from bridle.protocols.tool import ToolContext
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.workspace import Workspace


def wanted(tools):
    """The calls: (tool, arguments) each."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if calls := context.get("toolCalls"):
        return [(tools[one["name"]], one["arguments"]) for one in calls]
    rich, echo = tools.values()
    return [(echo, {"schema": rich.parameters})]


async def visit(url, root):
    """Connect, and make the calls."""
    server = Server(
        ServerSpec("suite", url=url, identity=url), root, Pins("", "suite", url), compile_schema
    )
    source = Servers([server], elicits=True)
    try:
        await server.connect()
        tools = {tool.definition.name: tool for tool in source.usable_tools(server)}
        for tool, arguments in wanted(tools):
            await tool.execute(arguments, ToolContext(Workspace(root), "call-1", ask=accept))
    finally:
        await source.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(visit(sys.argv[-1], folder))
