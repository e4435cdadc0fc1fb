"""Change a session: directly if no process has it open, or by a message to the one that has."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from bridle.cli.find import session_folder
from bridle.engine.session import Session
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.store import InboxMessage, Log, Record, SessionSummary, Store
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.runtime.inbox_sender import new_message_id, send_message
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder

T = TypeVar("T")


def edit_session(summary: SessionSummary, change: Callable[[Session], Awaitable[T]]) -> T:
    """Open the session, change it and close it. Raise `SessionLocked` if it is open elsewhere.

    No model is used. What waits in the session's inbox is left for the next process that opens it.
    """
    is_there = bool(summary.workspace) and Path(summary.workspace).is_dir()
    return asyncio.run(_edit(summary, summary.workspace if is_there else None, change))


async def _edit(
    summary: SessionSummary, workspace: str | None, change: Callable[[Session], Awaitable[T]]
) -> T:
    name, _, model = summary.model.partition("/")
    provider = Scripted([], info=ProviderInfo(name or "none", model))  # the log keeps its name
    store = cast(Store, _WithoutInbox(JsonlStore(session_folder().folder)))
    async with build_engine(
        provider, tools=[], workspace=workspace, store=store, face="cli"
    ) as engine:
        return await change(await engine.session(summary.id))


def send_to_inbox(
    folder: SessionFolder,
    session_id: str,
    verb: Literal["send", "answer", "interrupt", "revoke"],
    by: str,
    **fields: Any,
) -> str:
    """Send a message to the process that owns the session, now or next; return its id."""
    message = InboxMessage(new_message_id(), verb, by, **fields)
    send_message(folder, session_id, message)
    return message.id


class _WithoutInbox:
    """A store whose inboxes look empty."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> Log:
        return cast(Log, _LogWithoutInbox(await self._store.resume(session_id, apply)))

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Ignore new messages."""


class _LogWithoutInbox:
    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def inbox_messages(self) -> list[InboxMessage]:
        return []
