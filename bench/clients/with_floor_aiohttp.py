"""The floor: a bare loop over aiohttp and msgspec. No log, no gate, no retries, no limits.

It does the same work as the others: streams, decodes each delta, joins the text, parses and runs
the calls, appends to a history whose messages are encoded once.
"""

import asyncio
from typing import Any

import stopwatch

aiohttp: Any
msgspec: Any
TOOLS = (
    b'[{"name":"lookup","description":"Look up an item by its key.","input_schema":'
    b'{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}}]'
)
HEAD = b'{"model":"bench-model","max_tokens":8192,"stream":true,"tools":%s,"messages":['


def load() -> None:
    """Import what the floor stands on."""
    global aiohttp, msgspec
    import aiohttp
    import msgspec


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One HTTP session for all runs."""
    connector = aiohttp.TCPConnector(limit=0)
    http = aiohttp.ClientSession(connector=connector, headers={"content-type": "application/json"})
    target = f"{url}/v1/messages"

    async def run(prompt: str) -> str:
        history = [encode({"role": "user", "content": prompt})]
        while True:
            body = HEAD % TOOLS + b",".join(history) + b"]}"
            blocks = await stream(http, target, body)
            history.append(encode({"role": "assistant", "content": blocks}))
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return "".join(b["text"] for b in blocks)
            results = await asyncio.gather(*(answer(tool, call) for call in calls))
            history.append(encode({"role": "user", "content": results}))

    return run, http.close


async def stream(http: Any, target: str, body: bytes) -> list[dict[str, Any]]:
    """The blocks of one reply."""
    blocks: list[dict[str, Any]] = []
    parts: list[list[str]] = []
    rest = b""
    async with http.post(target, data=body) as response:
        async for data in response.content.iter_any():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    take(decode(line[6:]), blocks, parts)
    for block, pieces in zip(blocks, parts, strict=True):
        if block["type"] == "text":
            block["text"] = "".join(pieces)
        else:
            block["input"] = decode("".join(pieces) or "{}")
    return blocks


def take(event: dict[str, Any], blocks: list[dict[str, Any]], parts: list[list[str]]) -> None:
    """Add one event to the reply."""
    kind = event["type"]
    if kind == "content_block_delta":
        delta = event["delta"]
        parts[event["index"]].append(delta.get("text") or delta.get("partial_json", ""))
    elif kind == "content_block_start":
        blocks.append(event["content_block"])
        parts.append([])


async def answer(tool: stopwatch.Tool, call: dict[str, Any]) -> dict[str, Any]:
    """Run one call."""
    result = tool(**call["input"])
    text = await result if asyncio.iscoroutine(result) else result
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text}


def encode(value: Any) -> bytes:
    """A value as JSON."""
    return bytes(msgspec.json.encode(value))


def decode(data: bytes | str) -> Any:
    """JSON as a value."""
    return msgspec.json.decode(data)


if __name__ == "__main__":
    stopwatch.main(load, open_client)
