"""How much there is in a message, counted from its bytes as they come: values, and their depth.

A few megabytes of small values take a parser many seconds and gigabytes. Counting makes nothing of
them. Of what is JSON the count is exact; in what is none, it is up to where a parser stops.
"""

VALUES = 200_000  # in one message
DEPTH = 180  # a parser of the SDK gives up at 200
BLOCKS = 1_000  # of what a call gives back

TOO_MUCH = f"it sent a message of more than {VALUES:,} values, or nested more than {DEPTH} deep"
_OTHERS = bytes(one for one in range(256) if one not in b"{}[]")


class Tally:
    """Counts one message after the other."""

    def __init__(self) -> None:
        self._values = self._depth = 0
        self._inside = False  # a text
        self._held = b""  # a backslash of which the next byte decides
        self._empty = True  # the line of a stream that is being read, so far
        self._returned = False  # the last byte of a stream was a carriage return

    def clear(self) -> None:
        """The next byte begins a message."""
        self._values = self._depth = 0
        self._inside, self._held = False, b""

    def add(self, data: bytes) -> bool:
        """A piece of a message; False: it is too much."""
        data = self._held + data
        odd = (len(data) - len(data.rstrip(b"\\"))) % 2
        data, self._held = (data[:-1], b"\\") if odd else (data, b"")
        parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        bare = b"".join(parts[int(self._inside) :: 2])
        self._inside ^= len(parts) % 2 == 0
        opened = bare.count(b"{") + bare.count(b"[")
        self._values += opened + bare.count(b",")
        return self._values <= VALUES and self._descend(bare, opened)

    def _descend(self, bare: bytes, opened: int) -> bool:
        if self._depth + opened <= DEPTH:
            self._depth += opened - bare.count(b"}") - bare.count(b"]")
            return True
        for sign in bare.translate(None, _OTHERS):
            self._depth += 1 if sign in b"{[" else -1
            if self._depth > DEPTH:
                return False
        return True

    def add_stream(self, data: bytes) -> bool:
        """A piece of a stream of events, in which an empty line ends one; False: too much."""
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r") or (self._returned and not data)
        first, *lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if not self._add_line(first):
            return False
        return all(self._next_line(line) for line in lines)

    def _add_line(self, line: bytes) -> bool:
        self._empty = self._empty and not line
        return not line or self.add(line)

    def _next_line(self, line: bytes) -> bool:
        """No text goes on in another line; a name or a remark may look as if it did."""
        if self._empty:
            self.clear()
        self._inside, self._held, self._empty = False, b"", True
        return self._add_line(line)
