"""A front end for tests: the official AG-UI client in a real Node.js."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

from node.rig import node, package

DRIVER = Path(__file__).parent.parent / "node" / "agui" / "front.mjs"
PATIENCE = 240.0


class Front:
    """What was seen, and verbs for what a front end does."""

    def __init__(self, process):
        self._process = process
        self._count = 0
        self._waiting = {}
        self._news = asyncio.Condition()
        self.events = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self._process.stdout:
            seen = json.loads(line)
            async with self._news:
                if "event" in seen:
                    self.events.append(seen["event"])
                else:
                    self._waiting.pop(seen["n"]).set_result(seen)
                self._news.notify_all()

    def begin(self, **words):
        """A run; what comes of it can be awaited."""
        self._count += 1
        self._waiting[self._count] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"n": self._count, **words}).encode() + b"\n")
        return self._waiting[self._count]

    async def run(self, say=None, **words):
        """A whole run: its events, and what the client then has."""
        start = len(self.events)
        found = await asyncio.wait_for(self.begin(say=say, **words), PATIENCE)
        return self.events[start:], found

    def abort(self):
        self._process.stdin.write(b'{"abort": true}\n')

    async def until(self, wanted):
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(wanted)


@asynccontextmanager
async def front(there, thread="thread-1", token=None):
    """A front end of that server."""
    library = (package("@ag-ui/client") / "dist" / "index.mjs").as_uri()
    words = (library, f"{there.url}/api/agui", token or there.token, thread)
    process = await asyncio.create_subprocess_exec(
        *(node(), str(DRIVER), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    found = Front(process)
    try:
        yield found
    finally:
        process.stdin.close()
        process.kill()
        await asyncio.wait_for(process.wait(), PATIENCE)
        await found.reading
