"""The live list: a user's tasks, told again whenever they have changed, by whatever process.

What this process does is told at once; what others do is seen by a small question to the database
every second, as long as somebody watches. Bytes out, no HTTP.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC
from typing import Any, Literal

from sqlalchemy import case, func
from sqlmodel import col, select

from bridle.chat.db import Database, OwnedSession, Task
from bridle.chat.errors import Unavailable
from bridle.chat.tasks.fields import to_wire
from bridle.protocols.session_errors import ServerStopping
from bridle.server.chat.problems import problem_error
from bridle.server.chat.schemas import Tasks, TaskView
from bridle.server.sse import KEEP_ALIVE, RETRY, event_bytes
from bridle.server.streams import Admission

Status = Literal["all", "open", "done"]
Stamp = tuple[Any, ...]
_DIGITS = 10


def stamp(session: OwnedSession) -> Stamp:
    """Something that is another after every change of the user's tasks."""
    asked = select(func.count(col(Task.id)), func.max(col(Task.updated_at)), func.max(col(Task.id)))
    return tuple(session.exec(asked).one())


def tasks(session: OwnedSession, status: Status, cursor: str, limit: int) -> Tasks:
    """One page. Raise `Refused` for a cursor that was never given."""
    asked = select(Task).order_by(col(Task.id)).limit(limit + 1)
    if status != "all":
        asked = asked.where(col(Task.completed).is_(status == "done"))
    if cursor:
        asked = asked.where(col(Task.id) > _read(cursor))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = _write(shown[-1].id or 0) if rows[limit:] else ""
    done = func.sum(case((col(Task.completed).is_(True), 1), else_=0))
    every, ended = session.exec(select(func.count(col(Task.id)), done)).one()
    return Tasks(tuple(map(_view, shown)), every - (ended or 0), ended or 0, more)


def _view(task: Task) -> TaskView:
    said = to_wire(task, UTC)
    return TaskView(**{**said, "tags": tuple(said["tags"])})


def _write(number: int) -> str:
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def _read(cursor: str) -> int:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        found = ""
    if not (found.isdecimal() and found.isascii()) or len(found) > _DIGITS:
        raise problem_error(
            "invalid_request", "This page cannot be found.", "Please start from the first one."
        )
    return min(int(found), 2**31 - 1)


SHOWN = 200  # tasks of one event
_EVERY = 1.0  # seconds between two looks
_QUIET = 15.0  # seconds after which a silent stream says that it is there
_MOST, _EACH = 1_000, 10  # streams in all, and of one user


class TaskStreams:
    """Who watches whose tasks, in this process."""

    def __init__(self, database: Database, every: float = _EVERY) -> None:
        self._database = database
        self._every = every
        self._admission = Admission(_MOST, _EACH)
        self._bells: dict[str, set[asyncio.Event]] = {}
        self._stopping = False

    def __len__(self) -> int:
        return len(self._admission)

    def touched(self, user: str) -> None:
        """Something of that user's may have changed."""
        for bell in self._bells.get(user, ()):
            bell.set()

    def stop(self) -> None:
        """Every stream ends."""
        self._stopping = True
        for user in list(self._bells):
            self.touched(user)

    async def stream(self, user: str) -> AsyncGenerator[bytes, None]:
        """The list, and again after every change. Raise `TooManyStreams`, `ServerStopping`."""
        with self._admission.one_more(user):
            if not self._lasts():
                raise ServerStopping("the server is being stopped")
            bell = asyncio.Event()
            self._bells.setdefault(user, set()).add(bell)
            try:
                seen = await self._stamp(user)
                yield RETRY + await self._told(user)
                quiet = 0.0
                while self._lasts():
                    now = await self._next(user, bell)
                    if now is not None and now != seen:
                        seen, quiet = now, 0.0
                        yield await self._told(user)
                    elif (quiet := quiet + self._every) >= _QUIET:
                        quiet = 0.0
                        yield KEEP_ALIVE
                yield event_bytes("stopping", {})
            finally:
                self._bells[user].discard(bell)
                if not self._bells[user]:
                    del self._bells[user]

    def _lasts(self) -> bool:
        return not self._stopping

    async def _next(self, user: str, bell: asyncio.Event) -> Stamp | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                await bell.wait()
        bell.clear()
        try:
            return await self._stamp(user)
        except Unavailable:  # it is asked again
            return None

    async def _stamp(self, user: str) -> Stamp:
        return await self._database.run(user, stamp, reads=True)

    async def _told(self, user: str) -> bytes:
        found = await self._database.run(
            user, lambda session: tasks(session, "all", "", SHOWN), reads=True
        )
        return event_bytes("tasks", found)
