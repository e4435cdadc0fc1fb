"""Sessions as append-only files: one folder a session, one JSON object a line.

`sessions/ID/log.jsonl`, private to the user. The process that holds the file's lock alone writes;
anybody may read. What the records mean is not known here.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from bridle.errors import UnknownSession
from bridle.events import Repaired
from bridle.promises.store import Durability, Letter, Record
from bridle.stores import inbox
from bridle.stores.disk import Disk
from bridle.stores.file import Ground
from bridle.stores.held import JsonlLog
from bridle.stores.reading import SessionFolder
from bridle.stores.writer import Batch, Errand, Writer

log = logging.getLogger(__name__)
_T = TypeVar("_T")

_TICK = 0.2  # seconds between two looks at the bell, while somebody listens
_PAUSE = 0.25  # how long lines wait for company when nobody watches and nobody waits
_LONGEST = 1.0  # ... where there are many such logs: a millisecond for each


class JsonlStore(SessionFolder):
    """A folder of sessions. `disk` is what a test puts in place of the real one."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        durability: Durability = "disk",
        disk: Disk | None = None,
    ) -> None:
        super().__init__(folder)
        self.durability: Durability = durability
        self.disk = disk or Disk()
        self.ground = Ground(self.disk, str(self.folder))
        self._writer = Writer(self.disk)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._urgent: dict[JsonlLog, None] = {}  # somebody waits, or watches
        self.patient: dict[JsonlLog, None] = {}  # nobody does: it can wait a moment
        self._pause = _PAUSE
        self._underway = 0  # handed over to the writer, and not back yet
        self._bell = inbox.Bell(self.folder)
        self._ring: Callable[[], None] | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._heard = 0

    def create(self, session_id: str) -> JsonlLog:
        """A new log. Its file is made with its first line, by the writer."""
        self.check(session_id)
        return JsonlLog(self, session_id)

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> JsonlLog:
        """Take a log up again: lock it, read it, mend its end, go on after it."""
        self.check(session_id)
        held = JsonlLog(self, session_id)
        batches = held.take()
        try:
            while (batch := await _in_thread(lambda: next(batches, None))) is not None:
                for record in batch:
                    apply(record)
            if (repair := held.found) is not None:
                apply(held.append(repair))
                _warn(session_id, repair)
                await held.settled()
        except BaseException:
            batches.close()
            await held.release()
            raise
        return held

    def post(self, session_id: str, letter: Letter) -> None:
        """Put a verb into a session's inbox, and ring for whoever holds it."""
        path = self.path(session_id)
        if not path.exists():
            raise UnknownSession(f"there is no session {session_id}")
        inbox.post(path.parent, letter)
        self._bell.ring()

    def delete(self, session_id: str) -> None:
        """Remove a session that nobody holds. What it used today stays used."""
        from bridle.stores.copying import delete

        delete(self, session_id)

    def listen(self, ring: Callable[[], None] | None) -> None:
        """Call `ring` whenever somebody may have put a letter anywhere; None: no longer."""
        self._ring = ring
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        if ring is not None:
            self._heard = self._bell.size()
            self._tick = asyncio.get_running_loop().call_later(_TICK, self._look)

    def _look(self) -> None:
        self._tick = asyncio.get_running_loop().call_later(_TICK, self._look)
        if (size := self._bell.size()) != self._heard and self._ring is not None:
            self._heard = size
            self._ring()

    def close(self) -> None:
        """End the writer's thread, and the clock."""
        self.listen(None)
        self._writer.close()

    def want(self, log: JsonlLog, *, now: bool) -> None:
        """Have the log's lines written: in this round of the event loop, or within a moment."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._urgent, self.patient, self._underway = loop, {}, {}, 0
        if now:
            if not self._urgent and not self._underway:
                loop.call_soon(self._flush_urgent)
            self._urgent[log] = None  # while the writer is busy others gather, and go together
        else:
            if not self.patient:
                loop.call_later(self._pause, self._flush_patient)
            self.patient[log] = None

    def _flush_urgent(self) -> None:
        logs, self._urgent = self._urgent, {}
        self._hand_over(logs)

    def _flush_patient(self) -> None:
        logs, self.patient = self.patient, {}
        self._pause = min(max(_PAUSE, len(logs) / 1000), _LONGEST)
        self._hand_over(logs)

    def _hand_over(self, logs: Iterable[JsonlLog]) -> None:
        batches: list[Batch] = [batch for log in logs if (batch := log.batch()) is not None]
        if batches:
            self._underway += 1
            loop = asyncio.get_running_loop()
            self._writer.put(loop, [*batches, Errand(_nothing, partial(self._back, loop))])

    def _back(self, loop: asyncio.AbstractEventLoop) -> None:
        """The writer is done with what it was handed: what has gathered meanwhile goes next."""
        if loop is self._loop:
            self._underway -= 1
            if self._urgent and not self._underway:
                self._flush_urgent()

    async def after_all(self, job: Callable[[], None]) -> None:
        """Have the writer do this once everything before it was written."""
        done = asyncio.get_running_loop().create_future()
        self._writer.run(asyncio.get_running_loop(), job, done)
        await done


def _nothing() -> None:
    pass


async def _in_thread(job: Callable[[], _T]) -> _T:
    """Wait for the thread even when cancelled: it uses a file that is closed right after."""
    step = asyncio.ensure_future(asyncio.to_thread(job))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        while not step.done():
            with suppress(asyncio.CancelledError):  # asked twice, it is still not done
                await asyncio.wait([step])
        step.exception()  # whatever it is, nobody wants to know any more
        raise


def _warn(session_id: str, repair: Repaired) -> None:
    if repair.torn:
        log.warning("session %s: a torn last line was cut off", session_id)
    for line in repair.broken:
        skipped = "" if line.why.endswith("kept") or not line.size else " was skipped"
        log.warning(
            "session %s: a line after record %d%s: %s", session_id, line.after, skipped, line.why
        )
