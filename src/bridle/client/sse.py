"""Parse server-sent events as browsers do: bytes in, as the socket splits them; whole blocks out.

A block with an id and no data is returned, too: it only moves the position to resume from.
"""

import re

from msgspec import Struct

from bridle.errors import BadStream

LIMIT = 32 * 1024 * 1024  # bytes of one block
_BOM = b"\xef\xbb\xbf"
_ENDS = re.compile(rb"\r\n|\n|\r")


class Block(Struct, frozen=True):
    """One event: its name, its data, and its id if there is one (it may be empty)."""

    name: str = ""
    data: bytes | None = None
    id: str | None = None


class Blocks:
    """An incremental parser. A block that the end of the stream cuts off is dropped."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of a line whose end has not come
        self._size = 0
        self._after_cr = False
        self._began = False
        self._clear()

    def _clear(self) -> None:
        self._name = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self._size = 0

    def feed(self, chunk: bytes) -> list[Block]:
        """The blocks that this chunk completes. Raise `BadStream`."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a \r\n that was split
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        found: list[Block] = []
        *whole, rest = _ENDS.split(chunk)
        for line in whole:
            if (block := self._take(self._joined(line))) is not None:
                found.append(block)
        if rest:
            self._keep(rest)
        return found

    def _keep(self, piece: bytes) -> None:
        self._line.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            raise BadStream(f"the server sent an event of more than {self._limit} bytes")

    def _joined(self, line: bytes) -> bytes:
        self._keep(line)
        line = b"".join(self._line)
        self._line = []
        if not self._began:
            self._began = True
            line = line.removeprefix(_BOM)
        return line

    def _take(self, line: bytes) -> Block | None:
        """One line; the block that it ends."""
        if not line:
            return self._ended()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        return None

    def _ended(self) -> Block | None:
        data = b"\n".join(self._data) if self._data else None
        block = Block(self._name, data, self._id)
        self._clear()
        return block if data is not None or block.id is not None else None
