"""Write a provider: any object that streams a model's events."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator

import bridle
from bridle.events import ModelEvent, ResponseCompleted, TextDelta, UsageReported
from bridle.messages import Message, Text
from bridle.protocols.provider import ProviderInfo
from bridle.usage import Usage


class Shout:
    """A tiny model that repeats the prompt in capital letters."""

    info = ProviderInfo("shout", "v1", context_window=8_000)

    async def stream(self, request: bridle.Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield deltas as they arrive, then exactly one `ResponseCompleted`."""
        words = request.messages[-1].content.upper().split()
        for word in words:
            yield TextDelta(f"{word} ")
        text = "".join(f"{word} " for word in words)
        usage = Usage(input_tokens=len(words), output_tokens=len(words))
        yield UsageReported(usage)
        yield ResponseCompleted("complete", Message("assistant", (Text(text),)), usage)

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


async def main() -> None:
    with tempfile.TemporaryDirectory() as state:
        async with bridle.build_engine(Shout(), tools=[], state=state) as engine:
            result = await engine.run("hold your horses")
            print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
