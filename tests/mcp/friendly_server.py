"""A well-meaning MCP server, written with the official SDK: `friendly_server.py stdio|PORT`."""

import base64
import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
)
server = MCPServer("friendly")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and says how far it is."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


@server.tool()
def long(lines: int) -> str:
    """A long text."""
    return "\n".join(f"line {number}" for number in range(lines))


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=PIXEL, format="png")


@server.tool()
def variable(name: str) -> str:
    """What a variable of its environment holds."""
    return os.environ.get(name, "not set")


@server.resource("note://today")
def today() -> str:
    """The note of the day."""
    return "water the plants"


@server.prompt()
def greet(who: str) -> str:
    """A greeting."""
    return f"Say hello to {who}."


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(transport="stdio")
    else:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
