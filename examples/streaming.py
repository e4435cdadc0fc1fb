"""Watch a turn while it runs: with a stream of records, and with callbacks."""

import asyncio
import tempfile

import bridle
from bridle.testing import Scripted


@bridle.tool(read_only=True)
def weather(city: str) -> str:
    """The weather in a city."""
    return f"fine in {city}"


async def with_a_stream(engine: bridle.Engine) -> None:
    """Print text, tool calls and results as they arrive, until the turn ends."""
    session = await engine.session()
    turn = await session.send("Do I need an umbrella in Lyon?")
    async for record in session.subscribe():
        match record.event:
            case bridle.events.TextDelta(text=text):
                print(text, end="", flush=True)
            case bridle.events.ToolCallReady(call=call):
                print(f"[{call.name} {call.arguments}]")
            case bridle.events.ToolResultEvent(output=output):
                print(f"[{output.name}: {output.text}]")
            case bridle.events.TurnEnded(turn=ended) if ended == turn:
                break
    result = await session.wait(turn)
    print(f"\n{result.reason}, {result.metrics.invocations} requests")


async def with_callbacks(engine: bridle.Engine) -> None:
    """Do the same with callbacks; `send` raises if the turn fails."""

    def print_result(output: bridle.ToolOutput) -> None:
        print(f"[{output.name}: {output.text}]")

    callbacks = bridle.StreamCallbacks(
        on_text_delta=lambda text: print(text, end="", flush=True),
        on_tool_result=print_result,
        on_complete=lambda: print("\ndone"),
    )
    assistant = bridle.Assistant(engine)
    await assistant.send("And in Paris?", callbacks=callbacks)


async def main() -> None:
    # Swap the scripted model for "anthropic/MODEL" to talk to a real one.
    model = Scripted(
        [
            {"calls": [{"name": "weather", "arguments": {"city": "Lyon"}}]},
            "No umbrella today.",
            {"calls": [{"name": "weather", "arguments": {"city": "Paris"}}]},
            "None in Paris either.",
        ]
    )
    with tempfile.TemporaryDirectory() as state:
        async with bridle.build_engine(model, tools=[weather], state=state) as engine:
            await with_a_stream(engine)
            await with_callbacks(engine)


if __name__ == "__main__":
    asyncio.run(main())
