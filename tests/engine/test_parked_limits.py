"""The limits of a turn hold over all of it, however often it was parked."""

import pytest

from bridle.engine.budget import Limits
from bridle.events import ResponseCompleted
from bridle.protocols.tool import ToolResult
from bridle.stores.jsonl import JsonlStore
from rig import Thing, call, endings, events, make_engine, run

ANYTHING = {"type": "object"}


async def played(state, limits, ran):
    """One turn whose every call asks; each time it parks, another process answers yes."""

    async def change(arguments, context):
        ran.append(arguments["n"])
        return ToolResult.success("ok")

    tool = Thing(change, read_only=False, parameters=ANYTHING)
    found, left = None, [*(call("thing", n=n) for n in range(6)), "done"]
    while True:
        store = JsonlStore(state)
        async with make_engine(left, tool, store=store, on_ask="park", limits=limits) as engine:
            session = await engine.session(found)
            turn = 1 if found else await session.send("go")
            for shown, asked in list(session.history.pending.items()):
                await session.answer(asked.call.id, True, shown=shown, by="ann")
            result = await session.wait(turn)
            found = session.id
            replies = len(events(engine, found, ResponseCompleted))
            if result.reason != "parked":
                return result.reason, replies, endings(engine, found)
        left = left[1:]


@pytest.mark.parametrize(
    ("limits", "most"), [(Limits(max_steps=2), 2), (Limits(max_tool_calls=3), 3), (Limits(), 6)]
)
def test_a_turn_that_is_parked_again_and_again_has_its_limits_once(tmp_path, limits, most):
    """Also when each part of it ran in a process of its own (A11)."""
    ran = []
    reason, replies, ends = run(played(tmp_path, limits, ran))
    assert ran == list(range(most))
    assert (reason, ends) == (("done", ["done"]) if most == 6 else ("budget", ["budget"]))
    assert replies <= most + 1
