"""What many tests need: an engine of real parts, and a look into its log."""

import asyncio
import importlib
import os
import random
import secrets
import socket
import sys
from contextlib import aclosing, suppress
from pathlib import Path

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.events import MessageAdded, ResponseCompleted, ToolResultEvent, TurnEnded
from bridle.policy import ToolPolicy
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import as_tool
from bridle.workspace.workspace import Workspace

SOAK = os.environ.get("BRIDLE_SOAK") == "1"


def seeds(full):
    """So many seeds in a soak, a tenth of them otherwise."""
    return range(full if SOAK else max(1, full // 10))


def make_engine(provider, *tools, store=None, root="/", **rest):
    """An engine with a scripted model (a list of replies will do) and these tools."""
    model = provider if hasattr(provider, "stream") else Scripted(provider)
    named = {tool.name: tool for tool in map(as_tool, tools)}
    return Engine(EngineConfig(model, named, store or MemoryStore(), Workspace(root), **rest))


def call(name, **arguments):
    """A scripted reply that asks for one tool."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def calls(*wanted):
    """A scripted reply that asks for several tools: (name, arguments) each."""
    return {"calls": [{"name": name, "arguments": found} for name, found in wanted]}


def run(work):
    """Run a test's coroutine, and see that it leaves no task behind."""

    async def whole():
        result = await asyncio.wait_for(work, 240)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if ending := {task for task in left if task.cancelling()}:
            left -= (await asyncio.wait(ending, timeout=5))[0]  # it was told to end, and did
        assert not left, left
        return result

    return asyncio.run(whole())


def events(engine, session_id, kind=object):
    """The events of that kind in a session's log, in order."""
    found = engine.store.read(session_id)
    return [record.event for record in found if isinstance(record.event, kind)]


def results(engine, session_id):
    """What the calls of a session came to: (call id, text, failed)."""
    found = events(engine, session_id, ToolResultEvent)
    return [(one.output.call_id, one.output.text, one.output.is_error) for one in found]


def endings(engine, session_id):
    """How the turns of a session ended."""
    return [one.reason for one in events(engine, session_id, TurnEnded)]


def is_valid(messages):
    """Is this a conversation that every vendor accepts? Each call answered once, in place."""
    messages = list(messages)
    for index, message in enumerate(messages):
        asked = [one.id for one in message.tool_calls]
        if asked:
            after = messages[index + 1] if index + 1 < len(messages) else None
            if after is None or [one.call_id for one in after.tool_results] != asked:
                return False
        elif message.role == "assistant" and not message.parts:
            return False
        if message.role == "tool":
            before = messages[index - 1] if index else None
            if before is None or not before.tool_calls:
                return False
    return True


async def until(session, wanted, after=0):
    """The first record for which `wanted(event)` holds."""
    seen = []
    try:
        async with asyncio.timeout(240), aclosing(session.subscribe(after)) as records:
            async for record in records:
                seen.append(record.event)
                if wanted(record.event):
                    return record
    except TimeoutError:
        raise AssertionError(f"that was not seen in time, but {seen[-20:]}") from None
    raise AssertionError("the session ended before that was seen")


def conversation(engine, session_id):
    """Roles and words of a session's messages, as the log has them."""
    kinds = (MessageAdded, ResponseCompleted)
    found = [one.message for one in events(engine, session_id, kinds) if one.message]
    return [(message.role, message.content) for message in found]


class Speaking:
    """A provider whose stream is whatever a test writes."""

    info = ProviderInfo("speaking", "m")

    def __init__(self, *streams):
        self.streams = list(streams)
        self.requests = []

    async def stream(self, request):
        self.requests.append(request)
        async with aclosing(self.streams.pop(0)()) as found:
            async for event in found:
                yield event

    async def close(self):
        pass


class Thing:
    """A tool whose execute is whatever a test writes."""

    description = "a thing"
    parameters = {"type": "object", "properties": {}}

    def __init__(self, execute, name="thing", read_only=True, parameters=None):
        self.name = name
        self.policy = ToolPolicy(read_only=read_only)
        self.parameters = parameters or self.parameters
        self._execute = execute

    async def execute(self, arguments, context):
        return await self._execute(arguments, context)


async def one_turn(replies, *tools, **rest):
    async with make_engine(replies, *tools, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        assert is_valid(session.history.transcript)
        return engine, session.id, result


PYTHON = sys.executable


def free_port():
    """A port for a server that is started later, and perhaps twice.

    It is below those that anybody is given by chance, and tests that run beside this one have
    others to choose from: what was only tried is still free when it is wanted.
    """
    beside = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16
    for port in random.sample(range(20_000 + beside, 32_000, 16), 100):
        with socket.socket() as trying, suppress(OSError):
            trying.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Later:
    """A library that is read when something of it is used: to be collected costs nothing then."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith(("_", "pytest")):  # whoever collects looks at everything
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def a_mark():
    """Seconds to sleep that nobody else sleeps: what a command is known by in any sandbox."""
    return f"1000.{secrets.randbelow(10**12):012d}"


def marked(mark):
    """The processes with that mark in their words, as this system numbers them. The dead have none.

    What a command says of its own number is no use: in a sandbox processes are numbered anew.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end while we look
            if mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
