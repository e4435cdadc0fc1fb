"""What a turn costs in a conversation of few messages and in one of many. One line of JSON.

    chat_length.py FEW MANY TURNS

PostgreSQL, the rule-based responder, the service in this process. Turns go to the long conversation
and to a short one by turns; a short one is left before it is long. Wall time is that of a whole
turn, the database's part too; CPU is this process's.
"""

import asyncio
import json
import sys
import time
from statistics import median
from typing import Any

from chat_measure import OFTEN
from chat_postgres import admin, postgres

ASKED = "Show my tasks"
USER = "ana"


async def measured(url: str, few: int, many: int, turns: int) -> dict[str, Any]:
    """Medians of both."""
    from bridle.chat import ChatApp
    from bridle.chat.values import ServiceLimits

    limits = ServiceLimits(messages_a_minute=OFTEN)
    async with ChatApp(None, None, url, provider="offline", service_limits=limits) as app:

        async def grown(messages: int) -> str:
            place = None
            for _ in range(messages // 2):
                place = (await app.service.reply(USER, ASKED, place)).conversation_id
            assert place is not None
            return place

        async def turn(place: str) -> tuple[float, float]:
            wall, cpu = time.perf_counter(), time.process_time()
            await app.service.reply(USER, ASKED, place)
            return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000

        for number in range(5):
            await app.service.reply(USER, f"Add a task to buy milk {number}")
        long = await grown(many)
        short, far = [], []
        for _ in range(turns):
            place = await grown(few)
            short.append(await turn(place))
            far.append(await turn(long))
    walls = [median(one[0] for one in each) for each in (short, far)]
    cpus = [median(one[1] for one in each) for each in (short, far)]
    found = {"few_ms": walls[0], "many_ms": walls[1], "times": walls[1] / walls[0]}
    return found | {"few_cpu": cpus[0], "many_cpu": cpus[1], "cpu_times": cpus[1] / cpus[0]}


def main() -> None:
    """With a server of its own."""
    few, many, turns = map(int, sys.argv[1:])
    with postgres() as url:
        admin(url, "CREATE DATABASE chat")
        print(json.dumps(asyncio.run(measured(url % "chat", few, many, turns))))


if __name__ == "__main__":
    main()
