"""A believable session, some MB of it, told by the real engine: prompts, replies, calls, results.

The model is a few lines in this process. It has a window of 200,000 tokens and counts them, so that
the engine shortens the conversation and writes checkpoints as in real use. Seeded: the same story
on every machine.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import bridle
from bridle.engine import stream
from bridle.events import (
    ModelEvent,
    ResponseCompleted,
    StopReason,
    TextDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
)
from bridle.messages import Message, Text, ToolCall
from bridle.protocols.provider import ProviderInfo, Request
from bridle.protocols.store import Record
from bridle.stores.reader import SessionFolder
from bridle.usage import Price, Usage

SAMPLE = """
the a function returns value when index is out of range raise error import from class self config
path open file read line test assert result expected none true false list dict for session record
store engine token count limit window message reply tool call output server
"""
WORDS = tuple(SAMPLE.split())
STEPS = 6  # calls in a turn, on average
PIECES = 12  # records of streamed text in a reply, on average


class Teller:
    """A provider without a vendor: it asks for some files, one after the other, then sums up."""

    info = ProviderInfo("teller", "bench-model", context_window=200_000, price=Price(3, 15))

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._left = 0
        self._calls = 0

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """One reply."""
        if request.messages[-1].role == "user":
            self._left = self._dice.randrange(1, 2 * STEPS)
        text = ""
        for _ in range(self._dice.randrange(1, 2 * PIECES)):
            piece = prose(self._dice, 8)
            text += piece
            yield TextDelta(piece)
            await asyncio.sleep(0)  # a piece of its own, as after a moment of a real stream
        parts: tuple[Any, ...] = (Text(text),)
        if self._left > 0 and request.tools:
            self._left -= 1
            self._calls += 1
            call = ToolCall(f"toolu_{self._calls:06}", "view", {"path": f"src/m{self._calls}.py"})
            yield ToolCallStarted(call.id, call.name)
            yield ToolCallArgsDelta(call.id, '{"path":"src/m' + f'{self._calls}.py"' + "}")
            yield ToolCallReady(call)
            parts += (call,)
        read = sum(size(message) for message in request.messages) // 4
        usage = Usage(input_tokens=200, output_tokens=len(text) // 4, cache_read_tokens=read)
        stop: StopReason = "tool_use" if len(parts) > 1 else "complete"
        yield ResponseCompleted(stop, Message("assistant", parts), usage, "bench-model")

    async def close(self) -> None:
        """Nothing is held."""


def size(message: Message) -> int:
    """About how many bytes a message has."""
    return 40 + sum(len(getattr(part, "text", "")) for part in message.parts)


def prose(dice: random.Random, count: int) -> str:
    """Some words."""
    return " ".join(dice.choices(WORDS, k=count)) + " "


def viewer(seed: int) -> Any:
    """A tool that shows a file: a few KB mostly, 60 KB at most."""
    dice = random.Random(seed)
    pool = [f"    {prose(dice, 9)}\n" for _ in range(4000)]

    @bridle.tool(read_only=True)
    async def view(path: str) -> str:
        """Show a file."""
        wanted = min(60_000, int(dice.lognormvariate(9.2, 0.9)))  # the median is 10 KB
        start = dice.randrange(3000)
        return f"{path}\n" + "".join(pool[start : start + wanted // 55 + 1])[:wanted]

    return view


async def tell(folder: Path, least: int, seed: int = 7) -> list[Record]:
    """Have a session of at least so many bytes written there; its records."""
    stream._DELTA_SECONDS = 0.0  # the teller waits for nobody: each of its pieces stands for 30 ms
    (folder / "workspace").mkdir(parents=True, exist_ok=True)
    engine = bridle.build_engine(
        Teller(seed),
        tools=[viewer(seed)],
        workspace=folder / "workspace",
        state=folder,
        durability="process",
    )
    dice = random.Random(seed)
    async with engine:
        session = await engine.session()
        while grown(session.log_path) < least:
            result = await session.wait(await session.send(prose(dice, 25)))
            if not result.ok:
                raise RuntimeError(f"{result.reason}: {result.detail or result.error}")
    return list(SessionFolder(folder).read(session.id))


def grown(path: str) -> int:
    """How many bytes a log has; none before its first line."""
    return Path(path).stat().st_size if Path(path).exists() else 0
