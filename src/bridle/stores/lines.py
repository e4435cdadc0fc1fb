"""A file as lines, a block at a time, in bounded memory: a line without end is passed over.

What stands in the lines is not known here.
"""

from collections.abc import Callable
from hashlib import blake2b

LONGEST = 64 << 20  # bytes; no record is longer
_BLOCK = 1 << 20


class Overlong(bytes):
    """A line that is too long to be held, or to be anything of ours: no bytes, but their hash."""

    def __new__(cls, size: int, digest: str) -> "Overlong":
        made = super().__new__(cls)
        made.size, made.hash = size, digest
        return made

    size: int
    hash: str


class Lines:
    """Lines without their ends, in order; at the end of the file it can be asked again later."""

    def __init__(self, read: Callable[[int, int], bytes], offset: int = 0) -> None:
        self._read = read
        self._pieces: list[bytes] = []  # of a line whose end has not come
        self._passed = blake2b(digest_size=16)  # of a line that is too long
        self.offset = offset  # of the next byte to read
        self.open = 0  # bytes of a line whose end has not come

    def more(self) -> list[bytes]:
        """The lines that end in the next blocks; none: that was all for now."""
        while block := self._read(_BLOCK, self.offset):
            self.offset += len(block)
            end = block.rfind(b"\n")
            if end >= 0:
                return self._cut(block, end)
            self._keep(block)
        return []

    def back(self, count: int = 0) -> None:
        """Read again what has no end yet, and so many bytes before it: they may be replaced."""
        self.offset -= self.open + count
        self._pieces, self.open = [], 0
        self._passed = blake2b(digest_size=16)

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self.open += len(piece)
        self._pieces.append(piece)
        if self.open > LONGEST:
            for one in self._pieces:
                self._passed.update(one)
            self._pieces = []

    def _cut(self, block: bytes, end: int) -> list[bytes]:
        lines = block[:end].split(b"\n")
        if self.open:
            self._keep(lines[0])
            lines[0] = b"".join(self._pieces)
            if self.open > LONGEST:
                lines[0] = Overlong(self.open, self._passed.hexdigest())
                self._passed = blake2b(digest_size=16)
        self._pieces, self.open = [], 0
        self._keep(block[end + 1 :])
        return lines
