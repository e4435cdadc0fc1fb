"""What an earlier attempt at a turn has changed already, read from the rows of its operations.

A worker that dies leaves a turn half way. Whoever takes it up again is told here what was applied,
so that it is said to the user and not done a second time, whatever the model asks for this time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Applied:
    """One change: the tool, and what it answered."""

    tool: str
    result: dict[str, Any]


async def applied(factory: Callable[[], Any], user_id: str, turn_id: str) -> dict[str, Applied]:
    """The changes of the turn so far, by the name of their operation, in order."""
    return await asyncio.to_thread(_read, factory, user_id, turn_id)


def _read(factory: Callable[[], Any], user_id: str, turn_id: str) -> dict[str, Applied]:
    from sqlmodel import select

    from bridle.chat.data.engines import READS
    from bridle.chat.data.owned import owned_session
    from bridle.chat.data.tables import Operation

    with owned_session(factory(), user_id) as session:
        session.connection(execution_options={READS: True})
        here = Operation.user_id == user_id, Operation.turn_id == turn_id
        rows = list(session.exec(select(Operation).where(*here)))
    named = {row.key: Applied(row.tool, dict(row.result)) for row in rows}
    numbered = {key: one for key, one in named.items() if key.rpartition(":")[2].isdigit()}
    return dict(sorted(numbered.items(), key=lambda pair: int(pair[0].rpartition(":")[2])))
