"""An editor for tests: the official TypeScript client in a real Node.js, and `bridle acp`."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from lent import lent
from node.rig import node, package

DRIVER = Path(__file__).parent.parent / "node" / "acp" / "editor.mjs"
PATIENCE = 240.0


def library(kind="stable"):
    """Where the library is."""
    return (package("@agentclientprotocol/sdk") / "dist" / "v1" / kind / "acp.js").as_uri()


class Editor:
    """What was seen, and verbs for what an editor does."""

    def __init__(self, process):
        self._process = process
        self._waiting = {}
        self._news = asyncio.Condition()
        self._count = 0
        self.updates, self.questions, self.withdrawn = [], [], []
        self.ended = None
        self.reading = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._process.stdout:
            seen = json.loads(line)
            async with self._news:
                self._take(seen)
                self._news.notify_all()

    def _take(self, seen):
        if "update" in seen:
            self.updates.append(seen["update"]["update"])
        elif "asked" in seen:
            self.questions.append(seen)
        elif "withdrawn" in seen:
            self.withdrawn.append(seen["withdrawn"])
        elif "ended" in seen:
            self.ended = seen["ended"]
        else:
            self._waiting.pop(seen["n"]).set_result(seen)

    def _say(self, **words):
        self._process.stdin.write(json.dumps(words).encode() + b"\n")

    def begin(self, method, **params):
        """A request; what comes of it can be awaited."""
        self._count += 1
        self._waiting[self._count] = asyncio.get_running_loop().create_future()
        self._say(n=self._count, request=method, params=params)
        return self._waiting[self._count]

    async def ask(self, method, **params):
        """The result of a request."""
        seen = await asyncio.wait_for(self.begin(method, **params), PATIENCE)
        assert "error" not in seen, seen
        return seen["result"]

    async def refused(self, method, **params):
        """The error that a request comes to."""
        seen = await asyncio.wait_for(self.begin(method, **params), PATIENCE)
        return seen["error"]

    def notify(self, method, **params):
        self._say(notify=method, params=params)

    def answer(self, question, option=None):
        self._say(answer=question["asked"], **({"optionId": option} if option else {}))

    def kill(self, name):
        self._say(kill=name)

    async def until(self, wanted):
        """Until that holds of what was seen."""
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(wanted)

    async def question(self, number=1):
        """The question of that number, once it is there."""
        await self.until(lambda: len(self.questions) >= number)
        return self.questions[number - 1]

    def prompt(self, session, text):
        return self.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}]
        )

    def said(self, kind="agent_message_chunk"):
        """The text of all chunks of that kind."""
        found = [one for one in self.updates if one["sessionUpdate"] == kind]
        return "".join(one["content"]["text"] for one in found)

    def outputs(self):
        """The updates of calls that run: not what is to run, but what it says."""
        return [one for one in self.told("tool_call_update") if one["status"] == "in_progress"]

    def told(self, *kinds):
        """The updates of those kinds."""
        return [one for one in self.updates if one["sessionUpdate"] in kinds]


@asynccontextmanager
async def quick_editor(bridle, *flags):
    """One that kills nobody: its `bridle acp` is forked."""
    with lent(bridle.home) as command:
        async with editor(bridle, *flags, command=command("bridle", "acp")) as found:
            yield found


@asynccontextmanager
async def editor(bridle, *flags, kind="stable", command=()):
    """An editor that has started `bridle acp`, and said hello."""
    command = [*(command or (sys.executable, "-m", "bridle", "acp")), *flags]
    process = await asyncio.create_subprocess_exec(
        *(node(), str(DRIVER), library(kind), *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=bridle.home,
        env=bridle.environ,
        limit=1 << 24,
    )
    found = Editor(process)
    try:
        found.hello = await found.ask("initialize", protocolVersion=1, clientCapabilities={})
        yield found
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), PATIENCE)
        await found.reading
