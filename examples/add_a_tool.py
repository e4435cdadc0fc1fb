"""Write a tool: a typed function that an engine offers to a model."""

import asyncio
import tempfile
from dataclasses import dataclass

import bridle
from bridle.testing import Scripted


@dataclass
class Shop:
    """Whatever your tools need: a database, a client, or something else."""

    stock: dict[str, int]


@bridle.tool(read_only=True)
async def in_stock(context: bridle.ToolContext[Shop], item: str, at_least: int = 1) -> str:
    """Say whether the shop has enough of an item.

    Args:
        item: what it is called, in the singular
        at_least: how many are needed
    """
    count = context.deps.stock.get(item)
    if count is None:
        raise bridle.ToolError(f"there is no {item!r}; there are: {', '.join(context.deps.stock)}")
    return f"{count} in stock, which is {'enough' if count >= at_least else 'too few'}"


async def main() -> None:
    # Swap the scripted model for bridle.provider("anthropic/MODEL") to talk to a real one.
    model = Scripted(
        [
            {"calls": [{"name": "in_stock", "arguments": {"item": "saddle", "at_least": 2}}]},
            {"text": "Yes: there are three saddles."},
        ]
    )
    shop = Shop({"saddle": 3, "bit": 0})
    with tempfile.TemporaryDirectory() as state:
        async with bridle.build_engine(model, tools=[in_stock], deps=shop, state=state) as engine:
            result = await engine.run("Do we have two saddles?")
            print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
