"""Records as they are in a session's log, in pages; and the whole log as a file.

Nothing is held in memory whole: a page ends when its records have become large, and only a few
pages are read at once. Everything that blocks runs in a thread.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import takewhile

import msgspec
from msgspec import Raw, Struct

from bridle.protocols.codec import encode_data
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import RecordPage
from bridle.protocols.store import Record, SessionSummary
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.log_format import HEADER, TAIL, utc_timestamp
from bridle.stores.markdown import to_markdown

_MOST = 1000  # records at a time
_BYTES = 4 << 20  # of records at a time; one that is larger comes alone
_AT_ONCE = 4  # pages that are read at the same time
_PIECE = 1 << 16  # bytes of a copy at a time
_BLOCK = 1 << 20  # bytes of a log at a time
FORMS = ("jsonl", "markdown")
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")  # outside of strings they are only space in JSON
_encode = msgspec.json.Encoder(enc_hook=str).encode
Line = tuple[int, bytes]  # a record: its number, and its line without the hash


class LogRecords:
    """Pages of records, and whole copies, of the logs of sessions."""

    def __init__(self, scope: WorkspaceScope) -> None:
        self._scope = scope
        self._reading = asyncio.Semaphore(_AT_ONCE)

    async def page(self, session_id: str, after: int, before: int, limit: int) -> RecordPage:
        """Return those after a record, or the last ones before one. Raise `UnknownSession`."""
        if min(after, before) < 0 or limit < 1:
            raise BadRequest("`after`, `before` and `limit` cannot be negative")
        limit = min(limit, _MOST)
        async with self._reading:
            return await asyncio.to_thread(self._page, session_id, after, before, limit)

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """Return the session as a file, in pieces. Raise `BadRequest` for an unknown format."""
        if form not in FORMS:
            raise BadRequest(f"there is no format {form[:40]!r}", hint=f"It is {', '.join(FORMS)}.")
        return _in_pieces(self._exported(session_id, form))

    def _page(self, session_id: str, after: int, before: int, limit: int) -> RecordPage:
        self._scope.session(session_id)
        last = self._scope.catalog.last_seq(session_id)
        if before:
            after = max(after, min(before, last + 1) - 1 - limit)
        lines = self._lines(session_id, after)
        page = _last(lines, before) if before else _first(lines, limit)
        end = page[-1][0] if page else last
        return RecordPage(tuple(Raw(line) for _, line in page), end if end < last else 0, last)

    def _lines(self, session_id: str, after: int) -> Iterator[Line]:
        with self._scope.catalog.reader(session_id, after, _BLOCK) as reader:
            while lines := reader.read_new_lines():
                for line in map(record_line, lines):
                    yield line_number(line), without_breaks(line)

    def _exported(self, session_id: str, form: str) -> Iterator[bytes]:
        head = self._scope.session(session_id)
        if form == "jsonl":
            yield from self._scope.catalog.export(session_id)
            return
        summary = SessionSummary(
            head.id,
            head.created_at,
            utc_timestamp(head.changed),
            head.title,
            head.workspace,
            head.model,
            head.size,
            head.tags,
        )
        for text in to_markdown(summary, self._scope.catalog.read(session_id)):
            yield text.encode("utf-8", "backslashreplace")


def record_line(found: Record | bytes) -> bytes:
    """Return a record, or a verified line of a log, as one line of JSON without its hash."""
    if isinstance(found, bytes):
        line = found[:-TAIL] + b"}"
    else:
        data, timestamp = encode_data(found.event), _encode(found.timestamp)
        line = b'{"seq":%d,"timestamp":%b,"data":%b}' % (found.seq, timestamp, data)
    return line


def without_breaks(line: bytes) -> bytes:
    """Return JSON on one line: other programs may have written breaks between its values."""
    return line.translate(_LINE_BREAKS) if b"\n" in line or b"\r" in line else line


def line_number(line: bytes) -> int:
    """Return the number of the record in a line."""
    header = HEADER.match(line)
    return int(header[1]) if header is not None else _decode_number(line).seq


class _Numbered(Struct):
    seq: int = 0


_decode_number = msgspec.json.Decoder(_Numbered).decode


def _first(lines: Iterable[Line], limit: int) -> list[Line]:
    """Return as many as fit into a page, at least one."""
    found: list[Line] = []
    size = 0
    for seq, line in lines:
        size += len(line)
        if len(found) == limit or (found and size > _BYTES):
            break
        found.append((seq, line))
    return found


def _last(lines: Iterable[Line], before: int) -> list[Line]:
    """Return the last ones before a record, as many as fit into a page, at least one."""
    found: deque[Line] = deque()
    size = 0
    for seq, line in takewhile(lambda one: one[0] < before, lines):
        found.append((seq, line))
        size += len(line)
        while size > _BYTES and len(found) > 1:
            size -= len(found.popleft()[1])
    return list(found)


async def _in_pieces(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    def take() -> bytes:
        found = bytearray()
        for line in lines:
            found += line
            if len(found) >= _PIECE:
                break
        return bytes(found)

    while piece := await asyncio.to_thread(take):
        yield piece
