"""A program: a thousand turns in one session, and how much memory the last five hundred took.

`long_session.py FOLDER WINDOW SIZE`: the model's window (0: unknown), and the characters of each
tool's output. Prints the growth of the process in kilobytes, the messages that are left in the
conversation and how often it was shortened.
"""

import asyncio
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bridle.events import Compacted
from bridle.messages import Text, ToolCall
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Reply, play
from bridle.stores.jsonl import JsonlStore
from rig import events, make_engine

TURNS = 1000


class Looking:
    """A model that looks once in each turn, and remembers nothing."""

    def __init__(self, window, size):
        self.info = ProviderInfo("scripted", "m", context_window=window or None, max_output=1000)
        self._size = size

    async def stream(self, request):
        asks = request.messages[-1].role == "user"
        parts = (ToolCall("0", "look", {"size": self._size}),) if asks else (Text("seen"),)
        async for event in play(Reply(), parts, self.info, ""):
            yield event

    async def close(self):
        pass


async def look(size: int) -> str:
    """Look at so much."""
    return "x" * size


def held():
    """The most memory that the process has held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if MAC else 1)


MAC = sys.platform == "darwin"


async def main(folder, window, size):
    store = JsonlStore(folder, durability="process")
    async with make_engine(Looking(window, size), look, mode="auto", store=store) as engine:
        session = await engine.session()
        for number in range(1, TURNS + 1):
            result = await session.wait(await session.send(f"prompt {number}"))
            assert result.reason == "done", result
            if number == TURNS // 2:
                half = held()
        grown, left = held() - half, len(session.history.transcript)
        shortened = len(events(engine, session.id, Compacted))
        sys.stdout.write(f"{grown} {left} {shortened}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
