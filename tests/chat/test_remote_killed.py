"""kill -9 of a tool server at seeded moments: every operation is applied once, none is lost."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from chat_tools_rig import PATIENCE, PROGRAM, environ

from bridle.chat import Binding, RemoteTools
from rig import SOAK

pytestmark = pytest.mark.slow

MOMENTS = 20 if SOAK else 2
TASKS = 30


def children():
    """The processes that this one started and that live."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(one) for one in found}


async def added(tools, number):
    """Until it is said to be done; asked again it has to be the same operation."""
    given, bound = {"title": f"task {number}"}, Binding("ana", "talk", f"turn:{number}")
    for _ in range(10):
        found = await tools.call("add_task", given, bound)
        if found["success"]:
            return found
        assert found["error"]["code"] == "processing_error"
    raise AssertionError("it was never done")


async def killed(url, seed):
    """Thirty additions at once; after a few of them the server is killed, and after a few more."""
    chance = random.Random(seed)
    before = children()
    tools = RemoteTools(PROGRAM, environ=environ(url), timeout=PATIENCE)
    await tools.warm()
    moments = sorted(chance.sample(range(1, TASKS), 1))
    working = [asyncio.ensure_future(added(tools, number)) for number in range(TASKS)]
    for count, done in enumerate(asyncio.as_completed(working), 1):
        await done
        if count in moments:
            for child in children() - before:
                os.kill(child, signal.SIGKILL)
    first = [one.result() for one in working]
    again = [await added(tools, number) for number in range(TASKS)]
    listed = await tools.call("list_tasks", {"limit": 500}, Binding("ana"))
    await tools.close()
    return first, again, [one["title"] for one in listed["data"]["tasks"]], children() - before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(MOMENTS))
def test_T2_T6_a_killed_tool_server_repeats_nothing_and_loses_nothing(sqlite_url, seed):
    first, again, titles, left = asyncio.run(killed(sqlite_url, seed))
    assert again == first
    assert sorted(titles) == sorted(f"task {number}" for number in range(TASKS))
    assert left == set()
