"""Server-sent events: bytes in, as the socket splits them; events out, whole.

Knows the framing and nothing of what the events mean. Every byte is scanned once and copied at
most three times, however it is split, and no event grows beyond a limit.
"""

import re

from bridle.errors import BadStream

ServerEvent = tuple[bytes, bytes]
"""The event's name (empty where none was given) and its data."""

LIMIT = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"

# The two usual shapes of an event, each a whole block with a known number of lines. One call of
# `findall` takes a chunk apart; when the lines do not add up, the chunk holds something unusual.
_NAMED = re.compile(rb"(?m)^event: ([^\n]*)\ndata: ([^\n]*)\n\n")
_BARE = re.compile(rb"(?m)^()data: ([^\n]*)\n\n")


class EventParser:
    """An incremental parser: `feed` it chunks, `finish` it when the stream is over."""

    __slots__ = ("_after_cr", "_began", "_held", "_limit", "_size")

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._held: list[bytes] = []  # the pieces of an event whose end has not come
        self._size = 0
        self._after_cr = False
        self._began = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that this chunk completes."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._plain_line_ends(chunk)
        events: list[ServerEvent] = []
        if self._held:
            chunk = self._complete_held(chunk, events)
            if self._held:
                return events
        end = chunk.rfind(b"\n\n") + 2
        if end > 1:
            self._read_blocks(chunk, end, events)
            chunk = chunk[end:]
        if chunk:
            self._hold(chunk)
        return events

    def finish(self) -> list[ServerEvent]:
        """The event that the end of the stream completes: some servers leave out the last line."""
        events: list[ServerEvent] = []
        if self._held:
            self._read_block(self._take_held(), events)
        return events

    def _plain_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the second half of a \r\n that was split
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _complete_held(self, chunk: bytes, events: list[ServerEvent]) -> bytes:
        """Look for the end of the held event; what follows it is given back."""
        if self._held[-1].endswith(b"\n") and chunk.startswith(b"\n"):
            end, rest = 0, 1
        else:
            end = chunk.find(b"\n\n")
            rest = end + 2
        if end < 0:
            if chunk:
                self._hold(chunk)
            return b""
        self._hold(chunk[:end])
        self._read_block(self._take_held(), events)
        return chunk[rest:]

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size += len(piece)
        self._refuse_long(self._size)

    def _take_held(self) -> bytes:
        block = b"".join(self._held)
        self._held = []
        self._size = 0
        return block

    def _refuse_long(self, size: int) -> None:
        if size > self._limit:
            raise BadStream(f"the server sent an event of more than {self._limit} bytes")

    def _read_blocks(self, chunk: bytes, end: int, events: list[ServerEvent]) -> None:
        shape, lines = (_NAMED, 3) if chunk.startswith(b"event: ") else (_BARE, 2)
        found = shape.findall(chunk, 0, end)
        if len(found) * lines == chunk.count(b"\n", 0, end) and end <= self._limit:
            events += found
            self._began = True
            return
        for block in chunk[:end].split(b"\n\n"):
            self._refuse_long(len(block))
            self._read_block(block, events)

    def _read_block(self, block: bytes, events: list[ServerEvent]) -> None:
        """Any block: comments, data in several lines, fields in any order, a byte order mark."""
        if not self._began:
            block = block.removeprefix(_BOM)
            self._began = True
        name = b""
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                lines.append(value)
            elif field == b"event":
                name = value
        if lines:
            events.append((name, b"\n".join(lines)))
