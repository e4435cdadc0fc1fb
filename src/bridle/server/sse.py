"""A record as a server-sent event: bytes in, bytes out. Pure; who gets them is not known here.

The data is the log's own line without its hash: `{"seq":…,"timestamp":"…Z","data":{…}}`. The name
is read off the line's beginning, so that what comes from disk and what is told live cannot differ.
An `id` is given only to what would survive; a block with nothing but an `id` moves a client's
position and dispatches nothing.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, NamedTuple, cast

import msgspec

from bridle.events import Event
from bridle.protocols.codec import encode_data
from bridle.protocols.store import Record
from bridle.server.auth import AccessLease
from bridle.server.middleware import Receive, Send
from bridle.service.records import line_number, record_line, without_breaks
from bridle.stores.log_format import HEADER

RETRY: Final = b"retry: 1000\n\n"  # a client that was cut off comes back after a second
QUIET: Final = 5.0  # seconds without an event, after which a comment shows that the line works
KEEP_ALIVE: Final = b": still here\n\n"
OTHER: Final = "trace"  # what everything is called that has no name of its own
NAMES: Final = {  # by the record's type, and what tells those of one type apart
    b"event/TextDelta": "text_delta",
    b"event/ThinkingDelta": "thinking_delta",
    b"event/ToolCallReady": "tool_call",
    b"message/tool": "tool_result",
    b"approval_asked/": "approval_required",
    b"approval_answered/": "approval_answered",
    b"usage/": "usage",
    b"turn_end/done": "completed",
}
# What tells records of one type apart, if it follows the type.
_VARIANT = re.compile(
    rb',"eventType":"(\w{1,40})"|,"role":"(tool)"|,"turn":-?\d{1,18},"reason":"(\w{1,40})"'
)
_BREAKS = bytes.maketrans(b"\r\n", b"  ")  # outside of strings they are no more than space in JSON
_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Frame(NamedTuple):
    """A record on its way: its number, its name and its JSON."""

    seq: int
    name: str
    data: bytes

    def encoded(self, settled: int) -> bytes:
        """The event; with an `id` where everything up to this record would survive."""
        if self.seq <= settled:
            return b"id: %d\nevent: %b\ndata: %b\n\n" % (self.seq, self.name.encode(), self.data)
        return b"event: %b\ndata: %b\n\n" % (self.name.encode(), self.data)


def to_frame(found: Record | bytes) -> Frame:
    """A record, or a line of a log that its hash has proven."""
    return line_frame(record_line(found))


def event_data(event: Event) -> dict[str, Any]:
    """An event as the log has it."""
    return _decode(encode_data(event))


def line_frame(body: bytes) -> Frame:
    """A line without its hash, and what it is called."""
    body = without_breaks(body)
    header = HEADER.match(body)
    if header is None:
        return Frame(line_number(body), OTHER, body)
    kind = header[3]
    variant = _VARIANT.match(body, header.end())
    name = NAMES.get(b"%b/%b" % (kind, variant[variant.lastindex or 0] if variant else b""))
    if name is None:
        name = "error" if kind == b"turn_end" else OTHER
    return Frame(int(header[1]), name, body)


def event_bytes(name: str, value: Any, settled: int = -1) -> bytes:
    """Something that is no record, as an event; with `settled`, a client's position goes there."""
    data = _encode(value).translate(_BREAKS)
    place = b"id: %d\n" % settled if settled >= 0 else b""
    return b"%bevent: %b\ndata: %b\n\n" % (place, name.encode(), data)


def position_bytes(settled: int) -> bytes:
    """Everything up to here would survive: it moves a client's position, and dispatches nothing."""
    return b"id: %d\n\n" % settled


ABORT = "bridle.abort"  # in the scope: what cuts the connection, where the server can do that
_LOOK = 10.0  # seconds between two looks at whether it may go on
_END = {"type": "http.response.body", "body": b""}
Head = list[tuple[bytes, bytes]]

EVENT_STREAM_HEADERS: Head = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class StreamResponse:
    """Pieces on their way to one client; an ASGI application."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        first: bytes,
        head: Head,
        patience: float,
        stay: AccessLease,
    ) -> None:
        self._pieces = pieces
        self._first = first
        self._head = head
        self._patience = patience
        self._stay = stay
        self._since: float | None = None  # when the piece that is being sent was handed over

    @classmethod
    async def start(
        cls,
        pieces: AsyncIterator[bytes],
        head: Head,
        patience: float,
        stay: AccessLease | None = None,
    ) -> "StreamResponse":
        """A flow whose first piece has come; a client has so many seconds to take each.

        `stay` says whether it may go on; it is asked now and then, and may end it at once.
        """
        return cls(pieces, await anext(pieces, b""), head, patience, stay or AccessLease())

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
