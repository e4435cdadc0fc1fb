"""Work that is waited for to its end, whoever cancels meanwhile."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for it, which has limits of its own; a cancel meanwhile is heard when it is over."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()  # who was cancelled hears nothing else
        raise asyncio.CancelledError
    return task.result()
