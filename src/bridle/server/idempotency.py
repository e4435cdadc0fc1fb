"""What an `Idempotency-Key` has created, so that the same request again creates nothing.

There is a file for each key, so that it survives a restart, and so that servers that share the
state folder know it, too.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from bridle.protocols.session_errors import IdempotencyConflict
from bridle.server.tokens import read_private, write_private

KEPT_SECONDS = 24 * 3600.0
_SWEPT_EVERY = 3600.0
_encode = msgspec.json.Encoder(order="deterministic").encode


class CreatedSession(Struct, frozen=True):
    """The session that a key has created, and a hash of the request."""

    request: str
    session_id: str


class IdempotencyKeys:
    """The keys that came in the last 24 hours."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._swept = 0.0
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def session(
        self,
        caller: str,
        operation: str,
        key: str,
        body: Struct,
        create: Callable[[], Awaitable[str]],
    ) -> tuple[str, bool]:
        """The session that the key created, and whether that was before. Create it if it is new.

        Raise `IdempotencyConflict` if the key came with another request.
        """
        request = _hash(_encode(body))
        path = self._folder / _hash(f"{caller}\0{operation}\0{key}".encode())
        lock = self._locks.setdefault(path.name, asyncio.Lock())
        async with lock:
            found = await asyncio.to_thread(self._read, path)
            if found is not None:
                if found.request != request:
                    raise IdempotencyConflict(
                        "this Idempotency-Key was used for another request; nothing was created"
                    )
                return found.session_id, True
            session_id = await create()
            await asyncio.to_thread(self._write, path, CreatedSession(request, session_id))
            return session_id, False

    def _read(self, path: Path) -> CreatedSession | None:
        try:
            if path.stat().st_mtime < self._clock() - KEPT_SECONDS:
                return None
            return msgspec.json.decode(read_private(path), type=CreatedSession)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _write(self, path: Path, created: CreatedSession) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, msgspec.json.encode(created))
        if self._swept < self._clock() - _SWEPT_EVERY:
            self._swept = self._clock()
            self._sweep()

    def _sweep(self) -> None:
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < self._clock() - KEPT_SECONDS:
                    os.unlink(path)  # noqa: PTH108 - suppress covers both calls


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
