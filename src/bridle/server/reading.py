"""What a session's log holds, for those who read: records as they stand, and whole copies.

Nothing is taken up, and nothing is held whole. Everything that blocks runs in a thread.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

from msgspec import Raw

from bridle.promises.store import SessionSummary
from bridle.server.frames import to_frame
from bridle.server.ground import Ground
from bridle.server.refusals import BadRequest
from bridle.server.views import Records
from bridle.stores.copying import export_lines, head_of
from bridle.stores.markdown import to_markdown

_MOST = 1000  # records at a time
_PIECE = 1 << 16  # bytes of a copy at a time
_BLOCK = 1 << 20  # bytes of a log at a time
FORMS = ("jsonl", "markdown")


class Reading:
    """Reads logs."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def records(self, session_id: str, after: int, before: int, limit: int) -> Records:
        """Those after a record, or the last ones before one. Raise `UnknownSession`."""
        if min(after, before) < 0 or limit < 1:
            raise BadRequest("`after`, `before` and `limit` are numbers of records, and not less")
        return await asyncio.to_thread(self._records, session_id, after, before, min(limit, _MOST))

    def _records(self, session_id: str, after: int, before: int, limit: int) -> Records:
        self._ground.known(session_id)
        last = head_of(self._ground.folder, session_id).seq
        if before:
            after = max(after, min(before, last + 1) - 1 - limit)
        found: list[tuple[int, bytes]] = []
        for seq, line in self._lines(session_id, after):
            if (before and seq >= before) or len(found) == limit:
                break
            found.append((seq, line))
        end = found[-1][0] if found else last
        return Records(tuple(Raw(line) for _, line in found), end if end < last else 0, last)

    def _lines(self, session_id: str, after: int) -> Iterator[tuple[int, bytes]]:
        """The records after a number, each as a line without its hash."""
        with self._ground.folder.reader(session_id, after, _BLOCK) as reader:
            while lines := reader.raw():
                for frame in map(to_frame, lines):
                    yield frame.seq, frame.data

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """The session as a file, in pieces. Raise `BadRequest` for a form that there is not."""
        if form not in FORMS:
            raise BadRequest(f"there is no format {form[:40]!r}", hint=f"It is {', '.join(FORMS)}.")
        return _pieces(self._copied(session_id, form))

    def _copied(self, session_id: str, form: str) -> Iterator[bytes]:
        _, head = self._ground.known(session_id)
        if form == "jsonl":
            yield from export_lines(self._ground.folder, session_id)
            return
        summary = SessionSummary(*head[:8])
        for text in to_markdown(summary, self._ground.folder.read(session_id)):
            yield text.encode("utf-8", "backslashreplace")


async def _pieces(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    def take() -> bytes:
        found = bytearray()
        for line in lines:
            found += line
            if len(found) >= _PIECE:
                break
        return bytes(found)

    while piece := await asyncio.to_thread(take):
        yield piece
