"""Work that has to finish even if the task that waits for it is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to completion. If we are cancelled meanwhile, re-raise once it has finished."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()  # retrieved: the caller gets the cancel instead
        raise asyncio.CancelledError
    return task.result()
