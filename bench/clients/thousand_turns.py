"""Resident memory of a process that runs turn after turn in one session.

    thousand_turns.py URL TURNS

Each turn is a prompt, a call with a result of about 3 KB, and a reply (`talk` of the vendor). The
window is of the usual size, so the conversation is shortened again and again, and the log has
checkpoints. What is compared is the highest of a tenth of the turns, so that it does not matter
when the last shortening was.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import stopwatch

import bridle

RESULT = "in stock, 12 pieces, shelf B-7, checked today; " * 64


@bridle.tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up an item by its key."""
    return f"{key}: {RESULT}"


async def main() -> None:
    """The memory in the first tenth of the turns, the second, and so on."""
    url, turns = sys.argv[1], int(sys.argv[2])
    model = bridle.provider(
        "anthropic/bench-model", api_key="k", base_url=f"{url}/talk", context_window=200_000
    )
    engine = bridle.build_engine(
        model,
        tools=[lookup],
        workspace=os.environ["BENCH_WORKSPACE"],
        state=os.environ["BENCH_STATE"],
    )
    started = time.perf_counter()
    async with engine:
        session = await engine.session()
        memory = [await tenth(session, turns // 10) for _ in range(10)]
        messages = len(session.history.transcript)
    if messages > 2 * turns:
        raise RuntimeError(f"{messages} messages: the conversation was not shortened")
    seconds = time.perf_counter() - started
    grown = memory[-1] - memory[4]  # the second half
    found = {"rss_mb": memory, "grown_mb": grown, "messages": messages, "turns_s": seconds}
    print(json.dumps(found))


async def tenth(session: Any, turns: int) -> float:
    """Some turns; the most memory after one of them, in MB."""
    most = 0.0
    for _ in range(turns):
        result = await session.wait(await session.send("Look up the next item, please."))
        if not result.ok or result.metrics.tool_calls != 1:
            raise RuntimeError(f"{result.reason}: {result.detail or result.metrics}")
        most = max(most, stopwatch.status_kb("VmRSS:") / 1024)
    return most


if __name__ == "__main__":
    asyncio.run(main())
