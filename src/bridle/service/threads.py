"""Work that waits for the disk, in a thread. The thread is waited for in any case.

It uses a file that is closed right after: one who is cancelled meanwhile must not close it first.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(job: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """What the job comes to; `undo` takes it back where nobody waits for it any more."""
    working = asyncio.get_running_loop().run_in_executor(None, job)
    try:
        await asyncio.wait([working])
    except asyncio.CancelledError:
        while not working.done():
            with suppress(asyncio.CancelledError):  # asked twice, it is still not done
                await asyncio.wait([working])
        if working.exception() is None and undo is not None:
            undo(working.result())
        raise
    return working.result()
