"""An answer in pieces: server-sent events, and files. ASGI; what the pieces are is not known here.

The first piece is asked for before anything is sent, so that what is wrong is still a problem with
a status. When the client goes, the pieces end; one that does not read for too long is cut off.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

from bridle.server.asgi import Receive, Send
from bridle.server.caller import Stay

ABORT = "bridle.abort"  # in the scope: what cuts the connection, where the server can do that
_LOOK = 10.0  # seconds between two looks at whether it may go on
_END = {"type": "http.response.body", "body": b""}
Head = list[tuple[bytes, bytes]]

EVENTS: Head = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Flow:
    """Pieces on their way to one client; an ASGI application."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        first: bytes,
        head: Head,
        patience: float,
        stay: Stay,
    ) -> None:
        self._pieces = pieces
        self._first = first
        self._head = head
        self._patience = patience
        self._stay = stay
        self._since: float | None = None  # when the piece that is being sent was handed over

    @classmethod
    async def begun(
        cls,
        pieces: AsyncIterator[bytes],
        head: Head,
        patience: float,
        stay: Stay | None = None,
    ) -> "Flow":
        """A flow whose first piece has come; a client has so many seconds to take each.

        `stay` says whether it may go on; it is asked now and then, and may end it at once.
        """
        return cls(pieces, await anext(pieces, b""), head, patience, stay or Stay())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it, until it ends, the client goes, or may not have it any more."""
        sending = asyncio.create_task(self._send(send))
        going = asyncio.create_task(_gone(receive))
        both = {sending, going}
        leave = sending.cancel
        self._stay.leavers.add(leave)
        try:
            while await self._lasts(both):
                if self._stuck():
                    scope.get(ABORT, _nothing)()
            if sending.done() and not sending.cancelled():
                sending.result()
        finally:
            self._stay.leavers.discard(leave)
            for task in both:
                task.cancel()
            await asyncio.wait(both)
            await cast("AsyncGenerator[bytes, None]", self._pieces).aclose()
        if sending.cancelled():
            await send(_END)  # without this one the server would think that it was forgotten

    async def _lasts(self, both: set[asyncio.Task[None]]) -> bool:
        """Wait for its end, but not for ever; is there more to come?"""
        every = min(_LOOK, self._patience)
        done, _ = await asyncio.wait(both, timeout=every, return_when=asyncio.FIRST_COMPLETED)
        return not done and self._stay.still()

    def _stuck(self) -> bool:
        """Does the client not read? Looked at now and then: a clock for each piece would cost."""
        now = asyncio.get_running_loop().time()
        return self._since is not None and now - self._since > self._patience

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._head})
        await self._piece(send, self._first)
        async for piece in self._pieces:
            await self._piece(send, piece)
        await send(_END)

    async def _piece(self, send: Send, piece: bytes) -> None:
        self._since = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        self._since = None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _nothing() -> None:
    """There is no way to cut this connection."""
