"""Where questions wait for their phrase: in the database, so that any process can answer.

What blocks runs in a worker thread; the tables are loaded with the first question.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from bridle.chat.confirming import Question


class Confirmations:
    """The questions that wait, in the database. Each verb is one short transaction in a thread."""

    def __init__(self, session_factory: Callable[[], Any], seconds: float) -> None:
        self._open = session_factory
        self._seconds = seconds

    async def find(self, user_id: str, conversation_id: str) -> Question | None:
        """The question that waits in this conversation of this user."""
        from bridle.chat.confirming_rows import find

        return await asyncio.to_thread(find, self._open, user_id, conversation_id)

    async def ask(self, user_id: str, conversation_id: str, asked: Question) -> None:
        """Have this question wait, in the place of any other."""
        from bridle.chat.confirming_rows import put

        who = (user_id, conversation_id)
        await asyncio.to_thread(put, self._open, who, asked, self._seconds)

    async def take(self, user_id: str, asked: Question, turn: str) -> bool:
        """The turn has confirmed it. False: another one did so before."""
        from bridle.chat.confirming_rows import take

        return await asyncio.to_thread(take, self._open, user_id, asked.id, turn)

    async def drop(self, user_id: str, asked: Question) -> None:
        """Nobody is to answer it any more."""
        from bridle.chat.confirming_rows import drop

        await asyncio.to_thread(drop, self._open, user_id, asked.id)

    async def release(self, user_id: str, asked: Question) -> None:
        """What it stands for could not be done: it waits again."""
        from bridle.chat.confirming_rows import release

        await asyncio.to_thread(release, self._open, user_id, asked.id)

    async def warm_up(self) -> None:
        """Load the tables."""
        await asyncio.to_thread(import_module, "bridle.chat.confirming_rows")
