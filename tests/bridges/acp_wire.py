"""An editor by hand: the real agent in the test's own process, spoken to line by line."""

import asyncio
import json
import os
from contextlib import asynccontextmanager, suppress

from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.server.acp.agent import EditorAgent
from bridle.server.acp.host import FACE
from bridle.server.acp.jsonrpc import JsonLines
from bridle.stores.reader import SessionFolder

PATIENCE = 240.0


class Hosting:
    """Engines of real parts, with a scripted model."""

    person = "tester"

    def __init__(self, folder, *replies, modes=("plan", "ask", "edits"), **options):
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.state = folder / "state"
        self.modes = modes
        self.model = Scripted(replies)
        self.places = []
        self._options = options

    @property
    def folder(self):
        return SessionFolder(self.state)

    def engine(self, place):
        self.places.append(place)
        return build_engine(
            self.model,
            workspace=place.workspace,
            state=self.state,
            on_ask="wait",
            face=FACE,
            sandbox="none",
            undo=False,
            **self._options,
        )

    def carrier(self, session_id):
        return ""

    def models(self):
        return ("scripted/other",)

    def provider(self, model):
        return Scripted([{"text": f"{model} speaks."}])


class Wire:
    """The other ends of the pipes."""

    def __init__(self, writer, reader):
        self._writer = writer
        self._reader = reader
        self._count = 0
        self.seen = []  # notifications, and requests of the agent's

    def write(self, data):
        os.write(self._writer, data)

    def say(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def begin(self, method, **params):
        self._count += 1
        self.say(id=self._count, method=method, params=params)
        return self._count

    async def read(self):
        """The next message."""
        line = await asyncio.wait_for(self._reader.readline(), PATIENCE)
        message = json.loads(line)
        assert message.pop("jsonrpc") == "2.0"
        return message

    async def until(self, wanted):
        """The next message for which that holds; what comes before it is kept in `seen`."""
        while True:
            message = await self.read()
            if wanted(message):
                return message
            self.seen.append(message)

    async def outcome(self, number):
        return await self.until(lambda one: one.get("id") == number and "method" not in one)

    async def ask(self, method, **params):
        found = await self.outcome(self.begin(method, **params))
        assert "error" not in found, found
        return found["result"]

    async def refused(self, method, **params):
        found = await self.outcome(self.begin(method, **params))
        return found["error"]

    async def question(self):
        return await self.until(lambda one: one.get("method") == "session/request_permission")

    def answer(self, question, option):
        outcome = {"outcome": "selected", "optionId": option}
        self.say(id=question["id"], result={"outcome": outcome})

    def prompt(self, session, text):
        return self.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}]
        )

    def told(self, kind):
        found = [one["params"]["update"] for one in self.seen if "update" in one.get("params", {})]
        return [one for one in found if one["sessionUpdate"] == kind]

    def said(self, kind="agent_message_chunk"):
        return "".join(one["content"]["text"] for one in self.told(kind))

    def hang_up(self):
        os.close(self._writer)
        self._writer = -1


class Room(asyncio.Event):
    """Room for more to say, as the pipes know it; `full`: there was none, once."""

    def __init__(self):
        super().__init__()
        self.full = asyncio.Event()
        self.set()

    def clear(self):
        self.full.set()
        super().clear()


@asynccontextmanager
async def wired(host):
    """An agent that serves, and is closed in the end as the program does it."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    source, sink = os.fdopen(their_in, "rb"), os.fdopen(their_out, "wb")
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb")
    )
    pipes = JsonLines(source, sink)
    agent = EditorAgent(pipes, host)
    wire = Wire(our_out, reader)
    wire.room = pipes._room = Room()
    serving = asyncio.create_task(agent.serve())
    try:
        yield wire
    finally:
        if wire._writer >= 0:
            wire.hang_up()
        await asyncio.wait_for(serving, PATIENCE)
        await asyncio.wait_for(agent.close(), PATIENCE)
        transport.close()
        with suppress(BrokenPipeError):  # there may be words that nobody wanted to read
            sink.close()
        source.close()


async def opened(wire, host):
    """A new session in the host's workspace."""
    found = await wire.ask("session/new", cwd=str(host.workspace), mcpServers=[])
    return found["sessionId"]
