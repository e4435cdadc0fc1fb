"""Our MCP client, for the official conformance suite: run with a server's address as last word.

The suite says in MCP_CONFORMANCE_SCENARIO what it wants to see. A scenario without a line of its
own gets what a session would do: connect, look at the tools, call each of them once.
"""

import asyncio
import json
import os
import sys
import tempfile

from bridle.engine.json_schema import compile_schema
from bridle.protocols.tool import ToolContext
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.workspace import Workspace

ARGUMENTS = {
    "add_numbers": {"a": 5, "b": 3},
    "test_reconnection": {},
    "test_client_elicitation_defaults": {},
}


async def accept(question):
    """The person says yes to whatever a server asks, with its own defaults."""
    return "yes"


def guess(schema):
    """Arguments that fit a simple schema."""
    samples = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": []}
    fields = schema.get("properties", {})
    return {
        name: one.get("default", samples.get(one.get("type"), {}))
        for name, one in fields.items()
        if name in schema.get("required", ())
    }


async def visit(url, root):
    """What a session would do with a server."""
    spec = ServerSpec("suite", url=url, identity=url, timeout=240)
    server = Server(spec, root, Pins("", "suite", url), compile_schema)
    source = Servers([server], elicits=True)
    context = ToolContext(Workspace(root), "call-1", ask=accept)
    try:
        await server.connect()
        for tool in source.usable_tools(server):
            arguments = ARGUMENTS.get(tool.definition.name)
            if arguments is None:
                arguments = guess(tool.parameters)
            found = await tool.execute(arguments, context)
            said = {"tool": tool.name, "ok": found.ok, "text": found.text[:500]}
            sys.stdout.write(f"{json.dumps(said)}\n")
    finally:
        await source.close()


def main():
    sys.stderr.write(f"{os.environ.get('MCP_CONFORMANCE_SCENARIO', '')} {sys.argv[-1]}\n")
    with tempfile.TemporaryDirectory() as root:
        asyncio.run(visit(sys.argv[-1], root))


if __name__ == "__main__":
    main()
