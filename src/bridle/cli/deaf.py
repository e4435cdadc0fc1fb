"""A store whose logs are taken without what waits in their inboxes.

For a change that needs the log and no model: a prompt or an answer that waits is left to whoever
takes the session up to go on with it.
"""

from collections.abc import Callable
from typing import Any, cast

from bridle.protocols.store import InboxMessage, Log, Record, Store


def deaf(store: Store) -> Store:
    """The same store; nobody is notified, and the inboxes look empty."""
    return cast(Store, _Deaf(store))


class _Deaf:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> Log:
        return cast(Log, _Unread(await self._store.resume(session_id, apply)))

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Ignore new messages."""


class _Unread:
    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def inbox_messages(self) -> list[InboxMessage]:
        return []
