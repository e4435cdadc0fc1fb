"""An interrupt, or the deadline, that a tool swallows: no other effect begins after it."""

import asyncio

import pytest

from bridle.engine.budget import Limits
from bridle.events import CallIntended
from rig import Thing, calls, endings, events, make_engine, results, run, until

STEP = calls(("one", {}), ("two", {}))


async def _polite(arguments, context):
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "stopped politely"


async def _delete(arguments, context):
    return "deleted"


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(max_seconds=0.05)], ids=["interrupt", "deadline"]
)
def test_the_next_call_of_the_step_does_not_begin(limits):
    async def work():
        tools = Thing(_polite, "one", False), Thing(_delete, "two", False)
        async with make_engine([STEP, "x"], *tools, mode="auto", limits=limits) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: isinstance(event, CallIntended))
            if not limits.max_seconds:
                await session.interrupt()
            await session.wait(turn)
            intents = [one.name for one in events(engine, session.id, CallIntended)]
            return intents, results(engine, session.id), endings(engine, session.id)

    intents, found, ended = run(work())
    assert intents == ["one"]
    assert found == [
        ("call_1", "stopped politely", False),
        ("call_2", "not run: the turn ended before it began", True),
    ]
    assert ended == ["timeout" if limits.max_seconds else "interrupted"]
