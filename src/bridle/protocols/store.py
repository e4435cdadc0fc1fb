"""What a store of sessions provides: numbered records, durable on request, one writer per session.

How records are written as lines is in `codec`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from bridle.events import Event, When
from bridle.messages import Part

Durability = Literal["disk", "process"]


class Record(Struct, frozen=True, gc=False):
    """An event with its number, its time and its hash in the log."""

    seq: int
    timestamp: str
    event: Event
    hash: str = ""


class SessionSummary(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a list of sessions shows. `size` is in bytes; 0 if there is no file."""

    id: str
    created_at: str = ""
    updated_at: str = ""
    title: str = ""
    workspace: str = ""
    model: str = ""
    size: int = 0
    tags: tuple[str, ...] = ()


class InboxMessage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A command for the process that owns a session, from another process.

    `id`: its own. The record that it leads to names it, so that it is handled once. `at`: when it
    was sent, in seconds since 1970, and never earlier than its file. `revoke` withdraws the grant
    that `content` names, or all grants.
    """

    id: str
    verb: Literal["send", "answer", "interrupt", "revoke"]
    by: str = "me"
    content: str = ""
    parts: tuple[Part, ...] = ()
    when: When = "queue"
    call_id: str = ""
    shown: str = ""
    allowed: bool = False
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    at: float = 0.0
    rule: str = ""


class Log(Protocol):
    """The log of one session. This process owns it: no other one can write it."""

    @property
    def session_id(self) -> str: ...
    @property
    def seq(self) -> int:
        """The number of the newest record."""
        ...

    @property
    def durable(self) -> int:
        """The number of the newest record that is durable, as all before it are."""
        ...

    @property
    def head(self) -> str:
        """The hash of the newest record."""
        ...

    @property
    def size(self) -> int:
        """About the number of bytes since the newest checkpoint."""
        ...

    @property
    def weight(self) -> int:
        """The number of bytes of the newest checkpoint; 0 if none was written here."""
        ...

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number an event and have it written. Does not wait for the disk.

        `data`: the event as `encode_data` writes it, if the caller has that already.
        """
        ...

    async def settled(self) -> None:
        """Return when everything appended so far is durable. Raise `StoreFailed`."""
        ...

    def on_written(self, on_written: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `on_written` in the event loop with records that were written, in order."""
        ...

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """Copy title and tags to where a list of sessions finds them at once."""
        ...

    def inbox_messages(self) -> list[InboxMessage]:
        """The messages in the session's inbox, in order."""
        ...

    def discard(self, message: InboxMessage) -> None:
        """Remove a message that has been handled and whose record is durable."""
        ...

    async def close(self) -> None:
        """Wait until everything is durable, and release the session."""
        ...


class Store(Protocol):
    """Where sessions are stored."""

    def create(self, session_id: str) -> Log: ...

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> Log:
        """Own a session's log and pass `apply` all records that make up the session's state.

        These are all records, or the newest `Checkpoint` and all records after it. Repairs made
        meanwhile are the newest record (`Repaired`).
        Raise `UnknownSession`, `SessionLocked`, `StoreFailed`.
        """
        ...

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that were written, without owning the log. Raise `UnknownSession`."""
        ...

    def sessions(self) -> list[SessionSummary]:
        """All sessions, the newest first."""
        ...

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox, durable on return. Raise `UnknownSession`."""
        ...

    def delete(self, session_id: str) -> None:
        """Delete a session that no process owns. Raise `UnknownSession`, `SessionLocked`."""
        ...

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` in the event loop when there may be new messages; None: stop that."""
        ...

    def close(self) -> None:
        """End threads and timers."""
        ...


class Day(Protocol):
    """Reserves tokens and money for model calls within the limits of a day."""

    def reserve(
        self, who: str, tokens: int, money: float, *, limit_tokens: int, limit_money: float
    ) -> None:
        """Reserve an amount for one call of `who`; zero is no limit. Raise `BudgetReached`.

        The error's `set_aside` is true if enough is left, but others have reserved it.

        What the day's logs have used and what is reserved never exceeds a limit, also with several
        processes. Blocks while it reads logs: do not call it in an event loop.
        """
        ...

    def release(self, who: str) -> None:
        """Release what `who` has reserved: what the call has used is in the log by now."""
        ...
