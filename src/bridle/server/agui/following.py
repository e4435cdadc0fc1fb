"""The records of a session after a number, wherever it is open: here, elsewhere, or nowhere.

No gap, no repeat, also where it is taken up or let go meanwhile. Without an end.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from bridle.protocols.store import Record
from bridle.server.thread import in_thread
from bridle.service.local_service import LocalService
from bridle.stores.reader import LogReader

_EVERY = 0.05  # seconds between two looks at a file that somebody else writes


async def followed(
    sessions: LocalService, session_id: str, after: int
) -> AsyncGenerator[Record, None]:
    """Every record after that number. Raise `UnknownSession` where it is deleted."""
    last = after
    while True:
        session = sessions.get_open(session_id)
        source = session.subscribe(last) if session else _elsewhere(sessions, session_id, last)
        async with aclosing(source) as records:
            async for record in records:
                last = record.seq
                yield record


async def _elsewhere(
    sessions: LocalService, session_id: str, after: int
) -> AsyncGenerator[Record, None]:
    folder = sessions.folder
    reader = await in_thread(lambda: folder.reader(session_id, after), LogReader.close)
    try:
        while sessions.get_open(session_id) is None:
            for record in await in_thread(reader.read_new):
                yield record
            await asyncio.sleep(_EVERY)
    finally:
        reader.close()
