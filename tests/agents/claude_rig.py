"""What the tests of Claude Code need: the real program with a home of its own, and a fake vendor.

`Bare` is the least session that an agent may be handed, `Whole` one with everything that the engine
lends, made by hand: it says what was emitted, asked, finished.
"""

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bridle.agents.claude_code import ClaudeCodeAgent, ClaudeCodeConfig
from bridle.events import TraceEvent
from bridle.messages import ToolOutput
from bridle.protocols.agent import Permission, RemainingBudget
from bridle.testing import FakeAnthropic
from bridle.usage import Usage
from rig import SOAK

soak = pytest.mark.skipif(not SOAK, reason="another test says nearly the same; a start costs")
KEY = "sk-ant-nobody-may-see-this"
USED = Usage(1000, 42)
OVERLOADED = {"error": {"kind": "agent", "message": "busy", "status": 529}}


def says(text, **more):
    """A reply of words."""
    return {"text": text, "usage": USED, **more}


def uses(name, arguments, **more):
    """A reply that asks for one tool of Claude Code's own."""
    return {"calls": [{"name": name, "arguments": arguments}], "usage": USED, **more}


def runs(command, **more):
    """A reply that asks for a command."""
    return uses("Bash", {"command": command}, **more)


class Bare:
    """The least that a session is."""

    def __init__(self, root, mode="ask", conversation=None, name="s1"):
        self.id = name
        self.working_directory = str(root)
        self.mode = mode
        self.claude_session_id = conversation


class Whole(Bare):
    """A session that remembers what it was told."""

    def __init__(self, root, mode="ask", **more):
        super().__init__(root, mode, **more)
        self.state = {}
        self.system = ""
        self.remaining = RemainingBudget()
        self.events = []
        self.finished = []
        self.calls = []
        self.answers = {}

    def emit(self, event):
        self.events.append(event)

    async def finish(self, call_id, text, *, ok=True, data=None, media=()):
        self.finished.append((call_id, text, ok, data))

    async def call(self, name, arguments, call_id=""):
        self.calls.append((name, arguments))
        said = self.answers[name]
        if said is None:
            return ToolOutput(call_id, "not run: a person said no: rather not", True, name)
        if name == "exit_plan_mode":
            self.mode = "ask"
        return ToolOutput(call_id, f"The person answered: {said}", data={"answer": said})

    def of(self, kind):
        """The events of that kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def traces(self, kind):
        """What the traces of that kind say."""
        return [event.detail for event in self.of(TraceEvent) if event.kind == kind]


class Gate:
    """A gate that says what a test wants, and remembers what it was asked."""

    def __init__(self, *answers, otherwise=True):
        self.answers = list(answers)
        self.otherwise = otherwise
        self.asked = []

    async def __call__(self, name, arguments, context=None):
        self.asked.append((name, arguments))
        found = self.answers.pop(0) if self.answers else self.otherwise
        if callable(found):
            found = await found()
        if isinstance(found, Permission):
            return found
        return Permission(found, "" if found else "a rule says no")


class Heard:
    """What was streamed."""

    def __init__(self):
        self.text = []
        self.activity = []

    async def chunk(self, text):
        self.text.append(text)

    async def tool(self, activity):
        self.activity.append(activity)


def home_of(folder):
    """An environment in which the program finds nothing of ours."""
    home = Path(folder) / "home"
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "TMPDIR": str(home),
        "CLAUDE_CODE_TMPDIR": str(home),
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def config_for(server, folder, **more):
    """The program, pointed at a fake vendor."""
    env = {**home_of(folder), "ANTHROPIC_BASE_URL": server.url, **more.pop("env", {})}
    wanted = {"retry_seconds": 0.01, "api_key": KEY, **more}
    return ClaudeCodeConfig(env=env, **wanted)


@asynccontextmanager
async def claude(script, folder, **more):
    """A fake vendor with that script, and an agent that talks to it; nothing is left of either."""
    async with FakeAnthropic(script) as server:
        agent = ClaudeCodeAgent(config_for(server, folder, **more))
        try:
            yield agent, server
        finally:
            await agent.shutdown()


def workspace(folder):
    """A folder to work on."""
    root = Path(folder) / "work"
    root.mkdir(exist_ok=True)
    return root


def programs(folder):
    """The processes that have this test's folder in their environment: the program's family."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{folder}/home".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def command_lines(folder):
    """What anybody on the machine can read of the program's family."""
    found = []
    for pid in programs(folder):
        with suppress(OSError):  # it may end while we look
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


async def until(found, seconds=240.0):
    """Wait for something that another process does, and of which nobody tells."""
    for _ in range(round(seconds * 50)):
        if found():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")
