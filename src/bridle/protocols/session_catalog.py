"""What can be known of sessions without owning them, and what can be done without running them.

The service reaches sessions only through `Store` (which owns logs and runs sessions) and this.
Everything here blocks: call it in a thread. All methods that take a session's id raise
`UnknownSession` if there is none with that id.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from msgspec import Struct

from bridle.events import ApprovalAsked
from bridle.policy import Mode
from bridle.protocols.store import InboxMessage, Record, SessionSummary


class SessionHead(Struct, frozen=True):
    """What a list needs to know of a session before its log is read.

    `version` changes whenever the log does. `changed` is the time of that, in seconds since 1970.
    `owner` describes the process that owns the session; only `heads` fills it in, if asked to.
    """

    id: str
    version: Hashable
    changed: float
    created_at: str = ""
    title: str = ""
    workspace: str = ""
    model: str = ""
    size: int = 0
    tags: tuple[str, ...] = ()
    parent: str = ""
    owner: str = ""


class HeadQuery(Struct, frozen=True):
    """Which sessions are listed.

    `words` occur in the id, title, workspace or a tag. `before` is where the previous page ended.
    `workspaces` are resolved paths; None is any. `parent`: only its tasks. `owners`: find out who
    owns each session, which takes longer.
    """

    words: str = ""
    before: tuple[float, str] | None = None
    workspaces: Collection[str] | None = None
    parent: str = ""
    owners: bool = False


class Owner(Struct, frozen=True):
    """The process that owns a session. `pid` is 0 if it has no number on this machine."""

    pid: int
    description: str
    is_self: bool = False


class PendingApproval(Struct, frozen=True):
    """An approval request that nobody has answered, and the number of its record.

    `expired`: its time limit has passed. `posted`: an answer is in the session's inbox and takes
    effect when the session is resumed.
    """

    session_id: str
    asked: ApprovalAsked
    seq: int
    timestamp: str = ""
    expired: bool = False
    posted: bool = False


class LastRun(Protocol):
    """The agent, model, workspace, interface and effort that a session last ran with."""

    @property
    def agent(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def workspace(self) -> str: ...
    @property
    def interface(self) -> str: ...
    @property
    def effort(self) -> str: ...


class TextMatch(Protocol):
    """A place where a search found its words."""

    @property
    def session_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...


class LogReader(Protocol):
    """The records of one log while its owner may be writing it: no gap, none twice."""

    @property
    def last(self) -> int:
        """The number of the newest record that was read or skipped."""
        ...

    def read_new(self) -> list[Record]:
        """Return records that were added since the last call. Raise if the session was deleted."""
        ...

    def read_new_lines(self) -> list[bytes | Record]:
        """Like `read_new`, but verified lines stay undecoded."""
        ...

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class SessionCatalog(Protocol):
    """All sessions of a store."""

    def heads(self, query: HeadQuery) -> Iterator[SessionHead]:
        """Yield the sessions that fit, the newest first."""
        ...

    def head(self, session_id: str) -> SessionHead | None:
        """Return the session with exactly this id."""
        ...

    def sessions(self) -> list[SessionSummary]:
        """Return all sessions, the newest first."""
        ...

    def owner(self, session_id: str) -> Owner | None:
        """Return the process that owns the session, if any does."""
        ...

    def last_run(self, session_id: str) -> LastRun:
        """Return what the session last ran with."""
        ...

    def owner_mode(self, session_id: str) -> Mode:
        """Return the permission mode of the process that owns it, or did last."""
        ...

    def is_imported(self, session_id: str) -> bool:
        """Whether its log, or the beginning of it, was imported."""
        ...

    def reader(self, session_id: str, after: int | None = 0, block: int = ...) -> LogReader:
        """Follow a log from the record after `after` on; None: only what is written from now on."""
        ...

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """Yield the records that have been written."""
        ...

    def last_seq(self, session_id: str) -> int:
        """Return the number of the newest record."""
        ...

    def fold(self, session_id: str, apply: Callable[[Record], None]) -> int:
        """Pass `apply` all records that make up the session's state; return the newest number."""
        ...

    def find(self, session_id: str, content: bytes) -> Iterator[Record]:
        """Yield the records whose lines contain these bytes, the newest first."""
        ...

    def pending(self, session_id: str) -> list[PendingApproval]:
        """Return the session's pending approval requests."""
        ...

    def inbox(self, session_id: str) -> list[InboxMessage]:
        """Return the messages in the session's inbox, in order."""
        ...

    def send(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into the session's inbox, durably, and notify its owner."""
        ...

    def search(self, words: str, sessions: Collection[str], limit: int) -> Iterable[TextMatch]:
        """Find text in these sessions, the newest first."""
        ...

    def export(self, session_id: str) -> Iterator[bytes]:
        """Yield the lines of the session's log, unchanged."""
        ...

    def import_log(self, source: BinaryIO, new_id: Callable[[], str]) -> str:
        """Import a log unchanged; return the session's id."""
        ...

    def fork(self, session_id: str, at: int | None, new_id: str, title: str) -> None:
        """Create a session that begins as this one did, up to a record."""
        ...

    def delete(self, session_id: str) -> None:
        """Delete a session that no process owns. Raise `SessionLocked`."""
        ...

    def versions(self, *, owners: bool = False) -> Mapping[str, Hashable]:
        """Return what changes whenever a session does, by id; with `owners`, also its owner.

        Looking for owners takes longer.
        """
        ...

    def version(self, session_id: str) -> Hashable:
        """Return a value that changes whenever the session's log does; None if it is gone.

        This is called often and in the event loop, so it must not wait.
        """
        ...

    def flush(self, session_id: str) -> bool:
        """Make durable what the session's owner has written so far. False if that failed."""
        ...
