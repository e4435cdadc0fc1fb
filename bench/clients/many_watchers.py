"""CPU of one streaming turn with one watcher and with many, in this process.

    many_watchers.py URL MANY REPEATS

The reply comes as a model writes it, a hundred deltas a second (`paced-N` of the vendor): a burst
would be a few records, and hardly anything to tell. One and many take turns, in fresh sessions.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import aclosing
from statistics import median
from typing import Any

import bridle
from bridle.events import TurnEnded

DELTAS = 250


async def watch(session: Any) -> int:
    """Take everything up to the end of the turn; how much it was."""
    count = 0
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            count += 1
            if isinstance(record.event, TurnEnded):
                break
    return count


async def turn(engine: Any, watchers: int) -> tuple[float, int]:
    """CPU seconds of one turn with so many watchers, and how many records each has seen."""
    session = await engine.session()
    tasks = [asyncio.create_task(watch(session)) for _ in range(watchers)]
    await asyncio.sleep(0)  # all of them are there before it begins
    started = time.process_time()
    result = await session.wait(await session.send("Tell me a long story."))
    counts = await asyncio.gather(*tasks)
    spent = time.process_time() - started
    await session.close()
    if not result.ok or len({*counts}) > 1:
        raise RuntimeError(f"{result.reason}, and the watchers saw {sorted({*counts})} records")
    return spent, counts[0] if counts else 0


async def main() -> None:
    """One and many, in turn."""
    url, many, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    model = bridle.provider("anthropic/bench-model", api_key="k", base_url=f"{url}/paced-{DELTAS}")
    engine = bridle.build_engine(
        model, tools=[], workspace=os.environ["BENCH_WORKSPACE"], state=os.environ["BENCH_STATE"]
    )
    await turn(engine, 1)
    spent: dict[int, list[float]] = {0: [], 1: [], many: []}
    records = 0
    for _ in range(repeats):
        for watchers, costs in spent.items():
            cost, seen = await turn(engine, watchers)
            costs.append(cost * 1000)
            records = max(records, seen)
    await engine.close()
    none, one, all_of_them = (median(costs) for costs in spent.values())
    found = {"none_ms": none, "one_ms": one, "many_ms": all_of_them, "records": records}
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
