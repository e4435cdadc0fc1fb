"""All live streams of a server: of one session, and of all of them. Bytes, and no HTTP.

A session that is watched has one feed, however many watch it; it ends with the last of them. What
cannot be streamed is refused before the first byte. Whoever takes the bytes has to close what it
took them from, and everything that belongs to that stream is let go of.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from bridle.engine.stream import Watcher
from bridle.protocols.session_errors import ServerStopping
from bridle.server.admission import Admission
from bridle.server.feed import Feed
from bridle.server.frames import RETRY, told
from bridle.server.notices import Listed, Notices
from bridle.server.viewer import Viewer, pieces

STOPPING = told("stopping", {})
MOST = 2_000  # streams
EACH = 1_000  # ... of one name


class Watched(Listed, Protocol):
    """As much of the server's sessions as its streams look at."""

    def on_changed(
        self, tell: Callable[[str, str], None], *, others: bool = True
    ) -> Callable[[], None]: ...


class Streams:
    """Who watches what."""

    def __init__(self, sessions: Watched, *, most: int = MOST, each: int = EACH) -> None:
        self._sessions = sessions
        self._admission = Admission(most, each)
        self._feeds: dict[str, Feed] = {}
        self._notices: Notices | None = None  # while somebody listens
        self._told = 0  # records, by feeds that have ended
        self._stopping = False
        self._deaf = sessions.on_changed(self._changed, others=False)
        self._unheard: Callable[[], None] = _nothing  # ends that others' doings are told

    def __len__(self) -> int:
        return len(self._admission)

    @property
    def told(self) -> int:
        """Records that were made ready for whoever watches, since the server started."""
        return self._told + sum(feed.told for feed in self._feeds.values())

    async def session(
        self, session_id: str, after: int = 0, by: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Everything after that number, then live. Raise before the first byte, or never.

        Raise `UnknownSession`, `TooManyStreams`, `ServerStopping`.
        """
        with self._admission.one_more(by):
            self._check()
            if self._sessions.get_open(session_id) is None:
                await self._sessions.view(session_id)
                self._check()
            viewer = self._watch(session_id, after)
            try:
                yield RETRY
                while chunk := await viewer.more():
                    for piece in pieces(chunk):
                        yield piece
            finally:
                await self._leave(viewer)

    async def events(self, by: str = "") -> AsyncGenerator[bytes, None]:
        """The list of all sessions, then each line as it changes, and every question.

        Raise `TooManyStreams`, `ServerStopping`.
        """
        with self._admission.one_more(by):
            self._check()
            notices = self._notices
            if notices is None or notices.over:
                notices = self._notices = Notices(self._sessions)
                self._unheard = self._sessions.on_changed(notices.changed)
            watcher = notices.join()
            try:
                yield RETRY + await notices.snapshot()
                while batch := await watcher.batch():
                    yield b"".join(batch)
                if watcher.lagging:
                    yield told("resync", {})
                elif self._stopping:
                    yield STOPPING
            finally:
                await self._unhear(notices, watcher)

    async def stop(self) -> None:
        """Tell everybody that the server stops; their streams end."""
        if not self._stopping:
            self._stopping = True
            self._deaf()
        feeds = list(self._feeds.values())
        for feed in feeds:
            feed.end(STOPPING)
        await asyncio.gather(*(feed.close() for feed in feeds))
        self._unheard()
        if self._notices is not None:
            await self._notices.close()

    def _check(self) -> None:
        if self._stopping:
            raise ServerStopping("the server is being stopped")

    def _changed(self, session_id: str, how: str) -> None:
        if session_id in self._feeds:
            self._feeds[session_id].changed()

    def _watch(self, session_id: str, after: int) -> Viewer:
        feed = self._feeds.get(session_id)
        if feed is None or feed.over:  # one that is over is closed by the last who watched it
            feed = self._feeds[session_id] = Feed(self._sessions, session_id)
        feed.viewers += 1
        return Viewer(feed, self._sessions.folder, after)

    async def _leave(self, viewer: Viewer) -> None:
        viewer.leave()
        feed = viewer.feed
        feed.viewers -= 1
        if feed.viewers:
            return
        if self._feeds.get(feed.session_id) is feed:
            del self._feeds[feed.session_id]
        self._told += feed.told
        await feed.close()

    async def _unhear(self, notices: Notices, watcher: Watcher[bytes]) -> None:
        notices.leave(watcher)
        if not len(notices):
            if self._notices is notices:
                self._notices = None
                self._unheard()
            await notices.close()


def _nothing() -> None:
    """Nobody was told."""
