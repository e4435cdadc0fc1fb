"""The chat service: a message in, its reply out, whatever happens to the process in between.

Messages of one conversation are answered one after the other, in the order in which the database
took them, by any number of processes. A message is on disk before anything is done about it; a
turn belongs to the service and not to who waits for it, so that it ends even if the caller leaves.
Knows no HTTP and no model: it is handed a database and a runner.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError

from bridle.chat.data import Database
from bridle.chat.limits import RunLimits, lacking
from bridle.chat.ordering import Lines, share_of
from bridle.chat.refusals import Crowded, MessageRefused, Unavailable
from bridle.chat.service_pages import (
    delete_conversation,
    find_conversation,
    list_conversations,
    list_messages,
    plain_id,
)
from bridle.chat.service_steps import Place, arrive, claim, look
from bridle.chat.service_values import (
    Asked,
    ConversationInfo,
    MessageInfo,
    Page,
    Reply,
    Runner,
    ServiceLimits,
    Setting,
)
from bridle.chat.service_work import Worker
from bridle.errors import SessionClosed

_log = logging.getLogger(__name__)
Tell = Callable[[str], None]
_SOONEST, _LATEST = 0.01, 0.25  # seconds between two looks at a line that others work on
_LEFT = 1.0  # seconds after which a message that nobody takes up is taken up here


class ChatService:
    """`reply` and the conversations of many users, over one database and one runner."""

    def __init__(
        self, database: Database, runner: Runner, limits: ServiceLimits | None = None
    ) -> None:
        self.database = database
        self.limits = limits or ServiceLimits()
        self._worker = Worker(database, runner, self.limits)
        self._lines = Lines()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._whose: Counter[str] = Counter()
        self._closed = False

    async def reply(
        self,
        user_id: str,
        message: str,
        conversation_id: str | None = None,
        *,
        key: str = "",
        setting: Setting | None = None,
        tell: Tell | None = None,
    ) -> Reply:
        """The answer. The same `key` with the same message gives the same one, and does no more.

        `tell` hears "accepted" once the message is on disk. Raise what `refusals` draws.
        """
        place = None if conversation_id is None else plain_id(conversation_id)
        asked = Asked(user_id, message, place, key, setting or Setting())
        self._check(asked)
        task = asyncio.create_task(self._whole(asked, tell))
        self._tasks.add(task)
        self._whose[user_id] += 1
        task.add_done_callback(partial(self._ended, user_id))
        return await asyncio.shield(task)

    async def conversations(
        self, user_id: str, cursor: str = "", limit: int = 20
    ) -> Page[ConversationInfo]:
        """The user's conversations, the newest first."""
        count = self._count(limit)
        return await self.database.work(
            user_id, lambda session: list_conversations(session, cursor, count), reads=True
        )

    async def conversation(
        self, user_id: str, conversation_id: str, cursor: str = "", limit: int = 50
    ) -> Page[MessageInfo]:
        """The last messages of one, oldest first; further pages go back in time."""
        count = self._count(limit)
        return await self.database.work(
            user_id,
            lambda session: list_messages(session, plain_id(conversation_id), cursor, count),
            reads=True,
        )

    async def about(self, user_id: str, conversation_id: str) -> ConversationInfo:
        """One conversation, without its messages. Raise `UnknownConversation`."""
        return await self.database.work(
            user_id,
            lambda session: find_conversation(session, plain_id(conversation_id)),
            reads=True,
        )

    async def delete(self, user_id: str, conversation_id: str) -> None:
        """Delete a conversation with its messages; what its turns did stays done."""
        await self.database.work(
            user_id, lambda session: delete_conversation(session, plain_id(conversation_id))
        )

    async def close(self) -> None:
        """Let go of every turn, so that another process can take it at once. The database stays."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _count(self, limit: int) -> int:
        return max(1, min(limit, self.limits.page))

    def _check(self, asked: Asked) -> None:
        if self._closed:
            raise SessionClosed("The chat is being shut down. Please try again in a moment.")
        if lack := lacking(asked.message, RunLimits(message=self.limits.message)):
            long = lack == "missing_message_long"
            raise MessageRefused(_too_long(self.limits.message) if long else _NOTHING)
        if len(asked.key) > 255 or not asked.key.isprintable():
            raise MessageRefused("The Idempotency-Key has to be at most 255 plain characters.")
        mine = self._whose[asked.user_id]
        if len(self._tasks) >= self.limits.accepted or mine >= share_of(self.limits.accepted):
            raise Crowded(
                "It's very busy right now. Please try again in a moment.", retry_after=5.0
            )

    def _ended(self, user_id: str, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._whose[user_id] -= 1
        if not self._whose[user_id]:
            del self._whose[user_id]
        with suppress(asyncio.CancelledError):
            task.exception()  # who left does not hear of it, and that is no mistake

    async def _whole(self, asked: Asked, tell: Tell | None) -> Reply:
        place = await self._arrive(asked)
        if tell is not None:
            tell("accepted")
        async with self._lines.place(place.conversation_id, place.arrival):
            reply = await self._see_through(asked.user_id, place)
        return replace(reply, replayed=place.known)

    async def _arrive(self, asked: Asked) -> Place:
        """Two that arrive with the same key at the same moment: the second finds the first."""
        for _ in range(4):
            try:
                return await self._worker.step(asked.user_id, lambda s, d: arrive(s, asked, d))
            except Unavailable as error:
                if not isinstance(error.cause, IntegrityError):
                    raise
                last = error
        raise last

    async def _see_through(self, user_id: str, place: Place) -> Reply:
        """Until there is a reply, do whatever is first in the line and free to be done."""
        work, pause = place.work, _SOONEST
        waited: tuple[str, float] = ("", 0.0)  # whose turn it is, and since when nobody takes it
        while True:
            if work is not None:
                reply = await self._worker.carry(work)
                if reply is not None and work.turn_id == place.turn_id:
                    return reply
                pause = _SOONEST
            found = await self._worker.step(user_id, lambda s, d: look(s, place, d), reads=True)
            if isinstance(found, Reply):
                return found
            if found.turn_id != waited[0]:
                waited, pause = (found.turn_id, _now()), _SOONEST
            work = None
            if found.free or (not found.running and _now() - waited[1] > _LEFT):
                work = await self._worker.step(user_id, partial(claim, found))
            if work is None:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LATEST)


_NOTHING = "Could you provide more details about what you'd like me to do?"


def _too_long(limit: int) -> str:
    return f"That message is too long for me. Could you say it in at most {limit:,} characters?"


def _now() -> float:
    return asyncio.get_running_loop().time()
