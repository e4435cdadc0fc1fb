"""The chat service: answer messages reliably, even if processes die in between.

Messages of one conversation are answered one after the other, in the order in which the database
accepted them, by any number of processes. A message is stored before anything is done about it.
A turn belongs to the service and not to its caller, so it finishes even if the caller disconnects.
This module knows neither HTTP nor a model: it is given a database and a runner.
"""

import asyncio
import base64
import binascii
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlmodel import and_, col, delete, or_, select

from bridle.chat.db import (
    Conversation,
    Database,
    OwnedSession,
    PendingConfirmation,
    StoredMessage,
    Turn,
)
from bridle.chat.errors import (
    UNKNOWN_CONVERSATION,
    MessageRefused,
    QueueFull,
    Unavailable,
    UnknownConversation,
)
from bridle.chat.limits import RunLimits, message_problem
from bridle.chat.turn_queue import QueuedTurn, claim, enqueue, poll
from bridle.chat.values import (
    ConversationInfo,
    IncomingMessage,
    Locale,
    MessageInfo,
    Page,
    Reply,
    Runner,
    ServiceLimits,
)
from bridle.chat.worker import ConversationQueue, OnText, Worker, user_share
from bridle.errors import SessionClosed

_log = logging.getLogger(__name__)

_SOONEST, _LATEST = 0.01, 0.25  # seconds between two looks at a line that others work on
_LEFT = 1.0  # seconds after which a message that nobody takes up is taken up here


class ChatService:
    """Answers messages of many users and keeps their conversations."""

    def __init__(
        self, database: Database, runner: Runner, limits: ServiceLimits | None = None
    ) -> None:
        self.database = database
        self.limits = limits or ServiceLimits()
        self._worker = Worker(database, runner, self.limits)
        self._queue = ConversationQueue()
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
        locale: Locale | None = None,
        on_accepted: Callable[[], None] | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Answer a message. The same `key` with the same message gives the same reply again.

        `on_accepted` is called once the message is stored. `on_text` gets the beginning of the
        response while the model still writes. Raise the errors of `bridle.chat.errors`.
        """
        place = None if conversation_id is None else check_id(conversation_id)
        asked = IncomingMessage(user_id, message, place, key, locale or Locale())
        self._check(asked)
        task = asyncio.create_task(self._whole(asked, on_accepted, on_text))
        self._tasks.add(task)
        self._whose[user_id] += 1
        task.add_done_callback(partial(self._forget, user_id))
        return await asyncio.shield(task)

    async def conversations(
        self, user_id: str, cursor: str = "", limit: int = 20
    ) -> Page[ConversationInfo]:
        """Return a page of the user's conversations, the newest first."""
        count = self._count(limit)
        return await self.database.run(
            user_id, lambda session: list_conversations(session, cursor, count), reads=True
        )

    async def conversation(
        self, user_id: str, conversation_id: str, cursor: str = "", limit: int = 50
    ) -> Page[MessageInfo]:
        """Return the last messages of one, oldest first; further pages go back in time."""
        count = self._count(limit)
        return await self.database.run(
            user_id,
            lambda session: list_messages(session, check_id(conversation_id), cursor, count),
            reads=True,
        )

    async def about(self, user_id: str, conversation_id: str) -> ConversationInfo:
        """Return a conversation without its messages. Raise `UnknownConversation`."""
        return await self.database.run(
            user_id,
            lambda session: find_conversation(session, check_id(conversation_id)),
            reads=True,
        )

    async def delete(self, user_id: str, conversation_id: str) -> None:
        """Delete a conversation and its messages. What its turns changed stays changed."""
        await self.database.run(
            user_id, lambda session: delete_conversation(session, check_id(conversation_id))
        )

    async def close(self) -> None:
        """Release every turn, so that another process can take it at once."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _count(self, limit: int) -> int:
        return max(1, min(limit, self.limits.page))

    def _check(self, asked: IncomingMessage) -> None:
        if self._closed:
            raise SessionClosed("The chat is being shut down. Please try again in a moment.")
        if lack := message_problem(asked.message, RunLimits(message=self.limits.message)):
            long = lack == "missing_message_long"
            raise MessageRefused(_too_long(self.limits.message) if long else _NOTHING)
        if len(asked.key) > 255 or not asked.key.isprintable():
            raise MessageRefused("The Idempotency-Key must be at most 255 printable characters.")
        mine = self._whose[asked.user_id]
        if len(self._tasks) >= self.limits.accepted or mine >= user_share(self.limits.accepted):
            raise QueueFull(
                "It's very busy right now. Please try again in a moment.", retry_after=5.0
            )

    def _forget(self, user_id: str, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._whose[user_id] -= 1
        if not self._whose[user_id]:
            del self._whose[user_id]
        with suppress(asyncio.CancelledError):
            task.exception()  # who left does not hear of it, and that is no mistake

    async def _whole(
        self,
        asked: IncomingMessage,
        on_accepted: Callable[[], None] | None,
        on_text: OnText | None,
    ) -> Reply:
        place = await self._arrive(asked)
        if on_accepted is not None:
            on_accepted()
        async with self._queue.wait_turn(place.conversation_id, place.arrival):
            reply = await self._see_through(asked.user_id, place, on_text)
        return replace(reply, replayed=place.known)

    async def _arrive(self, asked: IncomingMessage) -> QueuedTurn:
        """Store the message. If the same key arrives twice at once, the second finds the first."""
        for _ in range(4):
            try:
                return await self._worker.step(asked.user_id, lambda s, d: enqueue(s, asked, d))
            except Unavailable as error:
                if not isinstance(error.cause, IntegrityError):
                    raise
                last = error
        raise last

    async def _see_through(self, user_id: str, place: QueuedTurn, on_text: OnText | None) -> Reply:
        """Run whichever turn is at the head of the queue and free, until our reply is there."""
        work, pause = place.work, _SOONEST
        waited: tuple[str, float] = ("", 0.0)  # whose turn it is, and since when nobody takes it
        while True:
            if work is not None:
                is_ours = work.turn_id == place.turn_id
                reply = await self._worker.run_turn(work, on_text if is_ours else None)
                if reply is not None and is_ours:
                    return reply
                pause = _SOONEST
            found = await self._worker.step(user_id, lambda s, d: poll(s, place, d), reads=True)
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


_ID = 36  # characters


def list_conversations(session: OwnedSession, cursor: str, limit: int) -> Page[ConversationInfo]:
    """Return a page of the user's conversations, the newest first."""
    when, name = col(Conversation.updated_at), col(Conversation.id)
    asked = select(Conversation).order_by(when.desc(), name.desc()).limit(limit + 1)
    if cursor:
        at, after = _decode_moment(cursor)
        asked = asked.where(or_(when < at, and_(when == at, name < after)))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = (
        _encode_cursor(f"{shown[-1].updated_at.isoformat()} {shown[-1].id}") if rows[limit:] else ""
    )
    return Page(tuple(map(_to_conversation_info, shown)), more)


def list_messages(
    session: OwnedSession, conversation_id: str, cursor: str, limit: int
) -> Page[MessageInfo]:
    """Return the last messages, oldest first; the next page contains the ones before them."""
    find_conversation(session, conversation_id)
    place = col(StoredMessage.position)
    mine = StoredMessage.conversation_id == conversation_id
    asked = select(StoredMessage).where(mine).order_by(place.desc()).limit(limit + 1)
    if cursor:
        asked = asked.where(place < _decode_number(cursor))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = _encode_cursor(str(shown[-1].position)) if rows[limit:] else ""
    return Page(tuple(_to_message_info(row) for row in reversed(shown)), more)


def check_id(conversation_id: str) -> str:
    """Return the id. Raise `UnknownConversation` if it cannot be one."""
    if not conversation_id or len(conversation_id) > _ID or not _is_plain(conversation_id):
        raise UnknownConversation(UNKNOWN_CONVERSATION)
    return conversation_id


def find_conversation(session: OwnedSession, conversation_id: str) -> ConversationInfo:
    """Return a conversation without its messages. Raise `UnknownConversation`."""
    row = session.get(Conversation, conversation_id)
    if row is None:
        raise UnknownConversation(UNKNOWN_CONVERSATION)
    return _to_conversation_info(row)


def delete_conversation(session: OwnedSession, conversation_id: str) -> None:
    """Delete a conversation and everything in it. Raise `UnknownConversation`.

    Its turns are locked first, in the same order as when a turn ends, to avoid a deadlock.
    """
    here = col(Turn.conversation_id) == conversation_id
    session.exec(select(Turn.id).where(here).order_by(col(Turn.arrival)).with_for_update()).all()
    row = session.get(Conversation, conversation_id, with_for_update=True)
    if row is None:
        raise UnknownConversation(UNKNOWN_CONVERSATION)
    asked = col(PendingConfirmation.conversation_id) == conversation_id
    session.exec(delete(PendingConfirmation).where(asked))
    session.delete(row)


def _to_conversation_info(row: Conversation) -> ConversationInfo:
    return ConversationInfo(row.id, row.title, row.created_at, row.updated_at)


def _to_message_info(row: StoredMessage) -> MessageInfo:
    calls = tuple(row.tool_calls or ())
    return MessageInfo(row.id, row.role, row.content, row.created_at, calls)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _encode_cursor(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _bad_cursor(error) from error


def _decode_moment(cursor: str) -> tuple[datetime, str]:
    when, _, name = _decode_cursor(cursor).partition(" ")
    if not _is_plain(name):
        raise _bad_cursor(None)
    try:
        return datetime.fromisoformat(when).astimezone(UTC), name
    except (ValueError, OverflowError) as error:
        raise _bad_cursor(error) from error


def _decode_number(cursor: str) -> int:
    number = _decode_cursor(cursor)
    if not number.isdecimal() or len(number) > 9:
        raise _bad_cursor(None)
    return int(number)


def _bad_cursor(cause: Exception | None) -> MessageRefused:
    return MessageRefused("This page cannot be found. Please start from the first one.", cause)
