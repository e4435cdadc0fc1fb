"""The bare OpenAI SDK, Chat Completions, with the tool loop that its documentation shows."""

import asyncio
import json
from typing import Any

import stopwatch

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Look up an item by its key.",
            "parameters": {
                "type": "object",
                "properties": {"key": {"type": "string"}},
                "required": ["key"],
            },
        },
    }
]
openai: Any


def load() -> None:
    """Import the SDK."""
    global openai
    import openai


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One client for all runs."""
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1")

    async def run(prompt: str) -> str:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        while True:
            text, calls = await stream(client, messages)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            messages.extend(await asyncio.gather(*(answer(tool, call) for call in calls)))

    return run, client.close


async def stream(client: Any, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
    """One reply: its text, and its calls put together from their pieces."""
    pieces: list[str] = []
    calls: list[dict[str, Any]] = []
    async for chunk in await client.chat.completions.create(
        model="bench-model", tools=TOOLS, messages=messages, stream=True
    ):
        for choice in chunk.choices:
            if choice.delta.content:
                pieces.append(choice.delta.content)
            for part in choice.delta.tool_calls or ():
                take(part, calls)
    return "".join(pieces), calls


def take(part: Any, calls: list[dict[str, Any]]) -> None:
    """Add a piece of a call."""
    if part.id:
        function = {"name": part.function.name, "arguments": ""}
        calls.append({"id": part.id, "type": "function", "function": function})
    calls[part.index]["function"]["arguments"] += part.function.arguments or ""


async def answer(tool: stopwatch.Tool, call: dict[str, Any]) -> dict[str, Any]:
    """Run one call."""
    result = tool(**json.loads(call["function"]["arguments"]))
    text = await result if asyncio.iscoroutine(result) else result
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


stopwatch.main(load, open_client)
