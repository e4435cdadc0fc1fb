"""What the routes work with, all of it handed in."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Protocol

from bridle import __version__
from bridle.protocols.session_values import Choices, Report
from bridle.server.idempotency import IdempotencyKeys
from bridle.server.login import Authenticator
from bridle.server.metrics import Metrics
from bridle.server.middleware import Limits
from bridle.server.page_files import Page
from bridle.service.local_service import LocalService


class StreamSource(Protocol):
    """Streams of server-sent events, as bytes."""

    def session(self, session_id: str, after: int, by: str) -> AsyncIterator[bytes]: ...
    def events(self, by: str) -> AsyncIterator[bytes]: ...
    async def stop(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def told(self) -> int: ...


class Catalogue(Protocol):
    """What can be chosen: models and agents."""

    async def models(self) -> Choices: ...
    async def agents(self) -> Choices: ...
    async def doctor(self) -> Report: ...


class EmptyCatalogue:
    """Nothing to choose from: everything is as the server was started."""

    async def models(self) -> Choices:
        """None."""
        return Choices(())

    async def agents(self) -> Choices:
        """None."""
        return Choices(())

    async def doctor(self) -> Report:
        """Nothing is known."""
        return Report(())


class ServerContext:
    """Sessions, streams, and who may come in."""

    def __init__(
        self,
        sessions: LocalService,
        streams: StreamSource,
        door: Authenticator,
        limits: Limits | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.sessions = sessions
        self.streams = streams
        self.door = door
        self.limits = limits or Limits()
        self.catalogue: Catalogue = catalogue or EmptyCatalogue()
        self.errors: Counter[str] = Counter()  # answers that were a no, by their status
        self.metrics = Metrics(sessions, streams, self.errors)
        self.page = Page()
        self.idempotency = IdempotencyKeys(door.tokens.folder / "idempotency")
        self.version = __version__

    def count(self, status: int) -> None:
        """An answer was sent."""
        if status >= 400:
            self.errors[str(status)] += 1
