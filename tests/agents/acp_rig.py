"""What the tests of ACP agents need: a scripted program, and a session made by hand."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from bridle import build_engine
from bridle.agents.acp import AcpAgent
from bridle.messages import ToolOutput
from bridle.protocols.agent import Permission
from rig import SOAK

QUICK = [sys.executable, str(Path(__file__).with_name("quick_acp.py"))]
AGENT = [sys.executable, "-m", "bridle.testing.acp_agent"] if SOAK else QUICK


def scripted(folder, *turns, **agent):
    """The command of an agent that plays these turns."""
    place = folder / "script.json"
    place.write_text(json.dumps({"agent": agent, "turns": list(turns)}))
    return [*AGENT, str(place)]


def program(folder, text, name="program.py"):
    """The command of a program that is written here."""
    place = folder / name
    place.write_text(text)
    return [sys.executable, str(place)]


# A program in a few lines that answers the opening, and then does as `after` says.
OPENING = """
import json, os, subprocess, sys, time
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**said):
    say(method="session/update", params={"sessionId": "s", "update": said})
def text(words):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": words})
for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        say(id=number, result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        say(id=number, result={"sessionId": "s"})
    elif method == "session/prompt":
"""


def opened(folder, after):
    """A program that is prompted, and then does this."""
    body = "".join(f"        {line}\n" for line in after.strip().splitlines())
    return program(folder, OPENING + body)


ANSWER = 'say(id=number, result={"stopReason": "end_turn"})'


class HandMade:
    """A session that keeps what it is told, and a gate that says yes but for what is named."""

    def __init__(self, root, *, refuses=(), mode="ask"):
        self.id = "by-hand"
        self.working_directory = str(root)
        self.mode = mode
        self.claude_session_id = None
        self.state = {}
        self.events, self.asked, self.finished, self.called = [], [], [], []
        self._refuses = refuses

    def emit(self, event):
        self.events.append(event)

    async def can_use_tool(self, name, arguments, context=None):
        self.asked.append((name, arguments))
        return Permission(name not in self._refuses, "no", call_id=context or "")

    async def call(self, name, arguments, call_id="", *, anew=False):
        self.called.append((name, arguments))
        return ToolOutput(call_id, f"{name} was called", name in self._refuses, name)

    async def finish(self, call_id, text, *, ok=True, data=None, media=()):
        self.finished.append((call_id, text, ok))

    def told(self, kind):
        return [one for one in self.events if isinstance(one, kind)]


@asynccontextmanager
async def started(command, **rest):
    """An agent that is shut down in the end."""
    agent = AcpAgent(command, **rest)
    try:
        yield agent
    finally:
        await agent.shutdown()


async def one_prompt(command, session, prompt="go", **rest):
    """One prompt to a program of its own."""
    async with started(command, **rest) as agent:
        return await agent.execute(prompt, session, can_use_tool=session.can_use_tool)


def acp_engine(root, command, **rest):
    """An engine whose turns that agent carries; its logs lie beside the workspace."""
    state = rest.pop("state", root.parent / "state")
    return build_engine(agent=AcpAgent(command), workspace=root, state=state, **rest)
