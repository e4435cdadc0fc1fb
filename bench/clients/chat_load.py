"""Messages of many users at once, each with a connection and a conversation of their own.

    chat_load.py PORT SECONDS USERS

USERS is a file: JSON, each with a path, a conversation and a token. Nobody sends the next message
before the last one is answered. Says how many a second, and what was not answered with 200.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

MESSAGE = "Add a task to buy milk"


TOO_MANY = 429


async def talk(
    session: aiohttp.ClientSession, url: str, who: dict[str, str], until: float
) -> dict[int, int]:
    """One user: how often each status came."""
    seen: dict[int, int] = {}
    body = {"message": MESSAGE, "conversation_id": who["conversation"]}
    headers = {"authorization": f"Bearer {who['token']}"}
    while time.monotonic() < until:
        async with session.post(url + who["path"], json=body, headers=headers) as answer:
            await answer.read()
            # If connections fall unevenly to the workers, one user may be faster than the server
            # lets one be (30 requests a second), and then waits as the answer says.
            if answer.status == TOO_MANY:
                await asyncio.sleep(float(answer.headers["retry-after"]))
                continue
            seen[answer.status] = seen.get(answer.status, 0) + 1
    return seen


async def main(port: int, seconds: float, everybody: list[dict[str, str]]) -> None:
    """All of them, for so long."""
    url, started = f"http://127.0.0.1:{port}", time.monotonic()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        talks = (talk(session, url, who, started + seconds) for who in everybody)
        seen = await asyncio.gather(*talks)
    spent = time.monotonic() - started
    good = sum(one.get(200, 0) for one in seen)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found: dict[str, Any] = {"answered": good, "per_s": good / spent, "spent": spent}
    found["refused"] = sum(sum(one.values()) for one in seen) - good
    found["cpu"] = (used.ru_utime + used.ru_stime) / spent
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(
        main(int(sys.argv[1]), float(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()))
    )
