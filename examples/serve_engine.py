"""Serve your own engine over HTTP; a client sends a prompt and answers an approval request."""

import asyncio
import tempfile

import bridle
from bridle.client import Client
from bridle.events import ApprovalAsked
from bridle.server import open_server
from bridle.testing import Scripted


@bridle.tool
def order(item: str) -> str:
    """Order an item."""
    return f"ordered {item}"


async def main() -> None:
    # Swap the scripted model for "anthropic/MODEL" to talk to a real one.
    ask = {"calls": [{"name": "order", "arguments": {"item": "hay"}}]}
    model = Scripted([ask, "It is ordered."])
    with tempfile.TemporaryDirectory() as state:
        async with (
            bridle.build_engine(model, tools=[order], state=state, on_ask="wait") as engine,
            open_server(engine) as server,  # or only serve: `await bridle.server.serve(engine)`
            Client(server.url, server.token) as client,
        ):
            session = await client.session()
            turn = await session.send("Order some hay.")
            async for record in session.subscribe():
                if isinstance(record.event, ApprovalAsked):
                    asked = record.event
                    print("asked about", asked.call.name, asked.call.arguments)
                    await session.answer(asked.call.id, True, shown=asked.shown, by="me")
                    break
            print((await session.wait(turn)).text)


if __name__ == "__main__":
    asyncio.run(main())
