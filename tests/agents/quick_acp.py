"""The scripted ACP agent without the official library: `quick_acp.py SCRIPT.json`.

It is `bridle.testing.acp_agent`, with a few lines of JSON-RPC where it has the library, which takes
most of a second to read. Whether we understand the library itself is for `test_acp_conformance.py`,
and for the tests of ACP agents in a soak. What is not valid is noticed by our side, which has the
library.
"""

import asyncio
import json
import os
import re
import sys
import types
from contextlib import suppress


class RequestError(Exception):
    """An error that is said to the other side."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code, self.data = code, data

    @classmethod
    def auth_required(cls):
        return cls(-32000, "Authentication required")


def camel(name):
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def snake(name):
    return re.sub("([A-Z])", lambda found: "_" + found[1].lower(), name)


class Thing:
    """Anything of the protocol: its fields are what it was given, and None otherwise."""

    def __init__(self, **fields):
        self._fields = {camel(name): value for name, value in fields.items()}

    @classmethod
    def model_validate(cls, fields):
        return cls(**fields)

    def __getattr__(self, name):
        return wrapped(self._fields.get(camel(name)))


def wrapped(value):
    """What came over the wire, with its fields as attributes."""
    if isinstance(value, list):
        return [wrapped(one) for one in value]
    return Thing(**value) if isinstance(value, dict) else value


def plain(value):
    """As it goes over the wire: without what is not there."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Thing):
        value = value._fields
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None}
    return value


class Known(type):
    """A kind that is known by what it says of itself."""

    def __instancecheck__(cls, value):
        return getattr(value, cls.field, None) == cls.word


class TextContentBlock(metaclass=Known):
    field, word = "type", "text"


class DeniedOutcome(metaclass=Known):
    field, word = "outcome", "cancelled"


class Schema(types.ModuleType):
    """Every other kind is a Thing."""

    TextContentBlock, DeniedOutcome = TextContentBlock, DeniedOutcome

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing


class Wire:
    """The client, as the agent sees it: each method is a request, but for what is only told."""

    METHODS = {
        "request_permission": "session/request_permission",
        "read_text_file": "fs/read_text_file",
        "write_text_file": "fs/write_text_file",
        "create_terminal": "terminal/create",
        "terminal_output": "terminal/output",
        "release_terminal": "terminal/release",
        "wait_for_terminal_exit": "terminal/wait_for_exit",
        "kill_terminal": "terminal/kill",
    }
    HANDLERS = {
        "initialize": "initialize",
        "authenticate": "authenticate",
        "session/new": "new_session",
        "session/load": "load_session",
        "session/resume": "resume_session",
        "session/set_mode": "set_session_mode",
        "session/set_config_option": "set_config_option",
        "session/prompt": "prompt",
        "session/cancel": "cancel",
    }

    def __init__(self, agent):
        self._agent = agent
        self._waiting = {}
        self._tasks = set()

    def say(self, **message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]

    async def session_update(self, session_id, update):
        params = {"sessionId": session_id, "update": plain(update)}
        self.say(method="session/update", params=params)

    def __getattr__(self, name):
        method = self.METHODS[name]

        async def asked(**params):
            number = len(self._waiting)
            answer = self._waiting[number] = asyncio.get_running_loop().create_future()
            self.say(id=number, method=method, params=plain(Thing(**params)))
            found = await answer
            if "error" in found:
                raise RequestError(found["error"]["code"], found["error"]["message"])
            return wrapped(found["result"] or {})

        return asked

    async def read(self):
        """Until the other side has no more to say."""
        reader = asyncio.StreamReader(limit=1 << 26)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = json.loads(line)
            if "method" not in message:
                self._waiting[message["id"]].set_result(message)
                continue
            task = asyncio.create_task(self._handled(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _handled(self, message):
        try:
            name = self.HANDLERS.get(message["method"])
            if name is None:
                raise RequestError(-32601, "Method not found", {"method": message["method"]})
            given = {snake(key): wrapped(one) for key, one in message.get("params", {}).items()}
            found = {"result": plain(await getattr(self._agent, name)(**given)) or {}}
        except RequestError as error:
            said = {"code": error.code, "message": str(error), "data": error.data}
            found = {"error": said}
        except Exception as error:
            said = {"code": -32603, "message": "Internal error", "data": {"details": str(error)}}
            found = {"error": said}
        if "id" in message:
            self.say(id=message["id"], **found)


async def run_agent(agent, **_):
    wire = Wire(agent)
    agent.on_connect(wire)
    await wire.read()


if __name__ == "__main__":
    acp = types.ModuleType("acp")
    acp.RequestError, acp.run_agent, acp.schema = RequestError, run_agent, Schema("acp.schema")
    acp.Client = acp.Agent = Thing
    sys.modules |= {"acp": acp, "acp.schema": acp.schema}
    from bridle.testing.acp_agent import main

    with suppress(KeyboardInterrupt):
        main(sys.argv[1:])
