"""All open sessions of an engine, for those who listen to every one of them.

Three topics: `agent` and `tool` are what the records say; `sessions` is a live list: a summary of
each session as it is opened, changes and is closed. It is live only: what was before is in the
logs. Sessions tell the hub only while somebody listens, and wait for nobody who does. What the
records mean is in `told.py`; how a session runs is not known here.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from bridle.engine.broadcast import Channel, Watcher
from bridle.engine.told import TOPICS, Ear, LiveSummary, Open, Told, Topic
from bridle.engine.watching import begun
from bridle.errors import SessionError
from bridle.events import Recorded, TraceEvent
from bridle.promises.store import Record


class Hub:
    """Hears every open session, and tells it on by topics."""

    def __init__(self) -> None:
        self._ears: dict[str, Ear] = {}
        self._channels: dict[Topic | None, Channel[Told]] = {
            topic: Channel(self._attend) for topic in (None, *TOPICS)
        }
        self._listening = False
        self._changed: dict[str, None] = {}
        self._round: asyncio.Handle | None = None
        self._heard = self._hear  # one for all ears: a thousand sessions make a thousand otherwise

    def add(self, session: Open) -> None:
        """A session was opened."""
        ear = self._ears[session.id] = Ear(session, self._heard)
        if self._listening:
            ear.open()
            self._tell([ear.listed("opened")])

    def remove(self, session: Open) -> None:
        """A session was closed."""
        ear = self._ears.get(session.id)
        if ear is None or ear.session is not session:
            return
        del self._ears[session.id]
        ear.close()
        if self._listening:
            self._tell([ear.listed("closed")])

    def end(self) -> None:
        """There will be no more."""
        if self._round is not None:
            self._round.cancel()
        for channel in self._channels.values():
            channel.end()

    def summaries(self) -> list[LiveSummary]:
        """All open sessions as they are now, in the order in which they were opened."""
        return [ear.summary() for ear in self._ears.values()]

    def subscribe(self, topic: Topic | None = None) -> AsyncGenerator[Told, None]:
        """What happens from now on, in all sessions; one topic, or all of them.

        One who is too slow gets a `Told` named "resync" as the last; where each session goes on is
        known by the number of the last record that was told of it.
        """
        if topic not in self._channels:
            raise SessionError(f"there is no topic {topic!r}", hint=f"Choose {', '.join(TOPICS)}.")
        return begun(_listen(self._channels[topic]))

    def _attend(self) -> None:
        """Listen to the sessions while somebody listens to us."""
        wanted = any(len(channel) for channel in self._channels.values())
        if wanted != self._listening:
            self._listening = wanted
            for ear in self._ears.values():
                ear.open() if wanted else ear.close()

    def _hear(self, ear: Ear, records: Sequence[Record]) -> None:
        told = [one for record in records for one in ear.tell(record)]
        self._tell(told)
        if self._lists() and any(isinstance(one.event, Recorded) for one in records):
            self._changed[ear.session.id] = None
            if self._round is None:
                self._round = asyncio.get_running_loop().call_soon(self._tell_changed)

    def _lists(self) -> bool:
        return len(self._channels[None]) + len(self._channels["sessions"]) > 0

    def _tell_changed(self) -> None:
        """A round later: a session that is told of in the midst of a step has not taken it yet."""
        self._round = None
        changed, self._changed = self._changed, {}
        found = [self._ears[session_id] for session_id in changed if session_id in self._ears]
        self._tell([ear.listed("changed") for ear in found if ear.has_changed()])

    def _tell(self, told: Sequence[Told]) -> None:
        for topic, channel in self._channels.items():
            if len(channel):
                channel.tell([one for one in told if topic in (None, one.topic)])


async def _listen(channel: Channel[Told]) -> AsyncGenerator[Told, None]:
    watcher: Watcher[Told] = channel.join()
    resync = Told("", "", "", "resync", Record(0, "", TraceEvent("resync")))
    try:
        yield resync  # nobody sees it: see `begun`
        while batch := await watcher.batch():
            for told in batch:
                yield told
        if watcher.lagging:
            yield resync
    finally:
        channel.leave(watcher)
