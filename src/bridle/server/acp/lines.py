"""Lines over two pipes, read and written in threads: nobody here ever waits for the other side.

A line has an end: one that is longer than any message is skipped, and said to be. Who does not
read what is said has us wait with more of it, but not with the end. The threads are left behind
when the process ends.
"""

import asyncio
import queue
import threading
from contextlib import suppress
from typing import BinaryIO

LONGEST = 32 << 20  # bytes of one message: pictures come in prompts
_AHEAD = 64  # lines that are read before somebody has taken them
_FULL = 4 << 20  # bytes that wait to be written, before whoever says more has to wait
_FAREWELL = 2.0  # seconds that the last words have to get out


class Lines:
    """Our ends of the two pipes."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._leaving: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ahead = threading.Semaphore(_AHEAD)
        self._written = threading.Event()
        self._waiting = 0  # bytes
        self._room = asyncio.Event()
        self._room.set()
        self._broken = False
        self._hurried = False

    def begin(self) -> None:
        """Read and write from now on."""
        self._loop = asyncio.get_running_loop()
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True, name=f"acp{work.__name__}").start()

    async def line(self) -> bytes | None:
        """The next line; an empty one stands for one that was too long; None at the end."""
        line = await self._arrived.get()
        self._ahead.release()
        if line is None:
            self.hurry()
        return line

    async def put(self, data: bytes) -> None:
        """Write it, in order. Comes back when there is room for more; what cannot be is dropped."""
        if self._broken:
            return
        self._waiting += len(data)
        self._leaving.put(data)
        if self._waiting > _FULL and not self._hurried:
            self._room.clear()
        await self._room.wait()

    def hurry(self) -> None:
        """It ends: from now on nobody waits for the other side to read."""
        self._hurried = True
        self._room.set()

    async def close(self) -> None:
        """The last words get out, where somebody reads them."""
        self._leaving.put(None)
        if self._loop is not None:
            await asyncio.to_thread(self._written.wait, _FAREWELL)

    def _read(self) -> None:
        """In a thread: every line, and None at the end."""
        line: bytes | None = b""
        while line is not None:
            self._ahead.acquire()
            line = self._next()
            if not self._tell(self._arrived.put_nowait, line):
                return

    def _next(self) -> bytes | None:
        try:
            line = self._source.readline(LONGEST)
            if line.endswith(b"\n"):
                return line
            if len(line) < LONGEST:
                return None  # the end; what was cut off is no message
            while line and not line.endswith(b"\n"):
                line = self._source.readline(LONGEST)
        except (OSError, ValueError):
            return None
        return b"" if line else None

    def _write(self) -> None:
        """In a thread: whatever is to be said, until there is nothing, or nobody reads."""
        while (data := self._leaving.get()) is not None:
            try:
                self._sink.write(data)
                self._sink.flush()
            except (OSError, ValueError):
                self._tell(self._break)
                break
            self._tell(self._wrote, len(data))
        self._written.set()

    def _tell(self, act: object, *words: object) -> bool:
        """Have it done in the loop; False where that is closed, and nobody waits any more."""
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act, *words)  # type: ignore[arg-type]  # ours, all of them
            return True
        return False

    def _wrote(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= _FULL:
            self._room.set()

    def _break(self) -> None:
        """Nobody reads: then there is nobody to work for, either."""
        self._broken = True
        self._room.set()
        self._arrived.put_nowait(None)
