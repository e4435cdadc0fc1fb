"""The promise every store keeps: numbered records, durable when it says so, one writer a session.

What the records mean is not known here; how they are written is `promises/codec.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from bridle.events import Event, When
from bridle.messages import Part

Durability = Literal["disk", "process"]


class Record(Struct, frozen=True, gc=False):
    """An event with its place in the log."""

    seq: int
    timestamp: str
    event: Event
    hash: str = ""


class SessionSummary(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a list of sessions shows of one. `size` is in bytes, 0 where there is no file."""

    id: str
    created_at: str = ""
    updated_at: str = ""
    title: str = ""
    workspace: str = ""
    model: str = ""
    size: int = 0
    tags: tuple[str, ...] = ()


class Letter(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A verb for whoever holds a session, from somebody who does not.

    `id` is its own; the record that it leads to names it, so that it is done once. `at` is when it
    was posted, in seconds since 1970; whoever takes it sees no time before the letter was there.
    `revoke` takes back the grant that `content` names, or all of them.
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
    """One session's log, held for writing by this process alone."""

    @property
    def session_id(self) -> str: ...
    @property
    def seq(self) -> int:
        """The number of the newest record."""
        ...

    @property
    def durable(self) -> int:
        """The number up to which everything would survive."""
        ...

    @property
    def head(self) -> str:
        """The hash of the newest record."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes there are since the newest checkpoint."""
        ...

    @property
    def weight(self) -> int:
        """How many bytes the newest checkpoint has; 0 where none was written here."""
        ...

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number it, order it, hand it on. Synchronous; the disk is not waited for.

        `data` is the event as `encode_data` writes it, where the caller knows it already.
        """
        ...

    async def settled(self) -> None:
        """Return when everything appended so far would survive. Raise `StoreFailed`."""
        ...

    def on_written(self, tell: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `tell` in the event loop with records that have been written, in order."""
        ...

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """Keep a copy of these where a list of sessions finds them at once."""
        ...

    def letters(self) -> list[Letter]:
        """What others have put into the session's inbox, in order, and is still there."""
        ...

    def discard(self, letter: Letter) -> None:
        """That letter has been done, and its record is settled."""
        ...

    async def close(self) -> None:
        """Settle and let go."""
        ...


class Store(Protocol):
    """Where sessions are kept."""

    def create(self, session_id: str) -> Log: ...

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> Log:
        """Take the session's log for writing; feed `apply` the records that tell all of it.

        That is every record, or the newest `Checkpoint` and every record after it. What had to be
        mended on the way is the newest record (`Repaired`).
        Raise `UnknownSession`, `SessionLocked`, `StoreFailed`.
        """
        ...

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that have been written, without taking the log. Raise `UnknownSession`."""
        ...

    def sessions(self) -> list[SessionSummary]:
        """All sessions, the newest first."""
        ...

    def post(self, session_id: str, letter: Letter) -> None:
        """Put a verb into a session's inbox; it is durable on return. Raise `UnknownSession`."""
        ...

    def delete(self, session_id: str) -> None:
        """Remove a session that nobody holds. Raise `UnknownSession`, `SessionLocked`."""
        ...

    def listen(self, ring: Callable[[], None] | None) -> None:
        """Call `ring` in the event loop whenever there may be new letters; None: no longer."""
        ...

    def close(self) -> None:
        """Let go of threads and clocks."""
        ...
