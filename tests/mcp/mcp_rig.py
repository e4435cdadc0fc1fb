"""Sources of tools for tests: real servers, real pipes and sockets, pins of their own."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from bridle.engine.json_schema import compile_schema
from bridle.protocols.tool import ToolContext
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.workspace import Workspace

HERE = Path(__file__).parent
RAW = str(HERE / "raw_server.py")
FRIENDLY = str(HERE / "friendly_server.py")


def raw(mode, folder, name=None, **more):
    """A raw server in that mode; what it hears is noted beside the folder."""
    words = (sys.executable, "-S", RAW, mode, str(notes_of(mode, folder)))
    return ServerSpec(name or mode, words, identity=mode, **more)


def friendly(name="friendly", **more):
    """A server of the official SDK."""
    return ServerSpec(name, (sys.executable, FRIENDLY, "stdio"), identity=name, **more)


def notes_of(mode, folder):
    """Beside the workspace: a file in it that a command names has to stay as it is."""
    return Path(f"{folder}-{mode}.notes")


def notes(mode, folder):
    """What a raw server has noted."""
    path = notes_of(mode, folder)
    return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def serving(folder, *specs, **more):
    """A source of these servers, closed at the end."""
    source = source_of(folder, *specs, **more)
    try:
        yield source
    finally:
        await source.close()


def source_of(folder, *specs, **more):
    pins = str(Path(folder, "pins"))
    servers = [
        Server(one, str(folder), Pins(pins, one.name, one.identity), compile_schema)
        for one in specs
    ]
    return Servers(servers, **more)


def context_of(folder, said=None, **more):
    """What a call is handed; its events go to the list `said`."""
    context = ToolContext(Workspace(folder), "call-1", folder=str(Path(folder, "session")), **more)
    if said is not None:
        context.emit = said.append
    return context


def named(source, name):
    """The tool of that name, as it is offered now."""
    found = {tool.name: tool for tool in source.tools()}
    assert name in found, sorted(found)
    return found[name]


async def look(source, folder, **arguments):
    """Have the tool `mcp` look."""
    return await named(source, "mcp").execute(arguments, context_of(folder))


def is_alive(pid):
    """Does that process run? One that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
