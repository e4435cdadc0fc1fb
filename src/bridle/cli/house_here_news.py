"""Whether something about the sessions has changed: here at once, elsewhere by a look now and then.

A look is one listing of the state folder's logs, without opening any; where there are so many that
it takes long, it is taken less often. What has changed is not said: who shows a list asks again.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from bridle.engine.engine import Engine
from bridle.stores.locks import lock_owners
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import log_entries

_EVERY = 1.0  # seconds between two looks
_SHARE = 20  # a look that takes long is not taken often: so many times as long
_CALM = 0.1  # seconds between two of these: a turn that streams is no news every time


async def news(
    folder: SessionFolder, engines: Callable[[], Iterable[Engine]]
) -> AsyncGenerator[None, None]:
    """Each time something changed; many changes at once are one. Never ends."""
    changed = asyncio.Event()
    looking = [
        asyncio.ensure_future(_others(folder, changed)),
        asyncio.ensure_future(_ours(engines, changed)),
    ]
    try:
        while True:
            await changed.wait()
            changed.clear()
            yield
            await asyncio.sleep(_CALM)
    finally:
        for one in looking:
            one.cancel()
        await asyncio.wait(looking)


async def _others(folder: SessionFolder, changed: asyncio.Event) -> None:
    before = await asyncio.to_thread(_seen, folder)
    while True:
        began = time.monotonic()
        now = await asyncio.to_thread(_seen, folder)
        if now != before:
            before = now
            changed.set()
        await asyncio.sleep(max(_EVERY, (time.monotonic() - began) * _SHARE))


async def _ours(engines: Callable[[], Iterable[Engine]], changed: asyncio.Event) -> None:
    """The sessions that are open here tell of themselves; engines come and go."""
    hearing: dict[Engine, asyncio.Task[None]] = {}
    try:
        while True:
            there = set(engines())
            for engine in there - hearing.keys():
                hearing[engine] = asyncio.ensure_future(_hear(engine, changed))
            for gone in hearing.keys() - there:
                hearing.pop(gone).cancel()
            await asyncio.sleep(_EVERY)
    finally:
        for one in hearing.values():
            one.cancel()
        if hearing:
            await asyncio.wait(list(hearing.values()))


async def _hear(engine: Engine, changed: asyncio.Event) -> None:
    async with aclosing(engine.subscribe("sessions")) as told:
        async for _ in told:
            changed.set()


def _seen(folder: SessionFolder) -> tuple[frozenset[tuple[str, int, float]], frozenset[int]]:
    """In a thread: which logs there are and how they stand, and which are held."""
    try:
        found = log_entries(folder.folder)
    except OSError:  # it may be there again at the next look
        found = []
    locks = {inode for _, inode in lock_owners()}
    logs = frozenset((one.id, one.size, one.changed) for one in found)
    return logs, frozenset(one.inode for one in found if one.inode in locks)
