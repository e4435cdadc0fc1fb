"""A record as a server-sent event: bytes in, bytes out. Pure; who gets them is not known here.

The data is the log's own line without its hash: `{"seq":…,"timestamp":"…Z","data":{…}}`. The name
is read off the line's beginning, so that what comes from disk and what is told live cannot differ.
An `id` is given only to what would survive; a block with nothing but an `id` moves a client's
position and dispatches nothing.
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

from bridle.events import Event
from bridle.protocols.codec import encode_data
from bridle.protocols.store import Record
from bridle.service.records import line_number, record_line, without_breaks
from bridle.stores.log_format import HEADER

RETRY: Final = b"retry: 1000\n\n"  # a client that was cut off comes back after a second
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
    return named(record_line(found))


def data_of(event: Event) -> dict[str, Any]:
    """An event as the log has it."""
    return _decode(encode_data(event))


def named(body: bytes) -> Frame:
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


def told(name: str, value: Any, settled: int = -1) -> bytes:
    """Something that is no record, as an event; with `settled`, a client's position goes there."""
    data = _encode(value).translate(_BREAKS)
    place = b"id: %d\n" % settled if settled >= 0 else b""
    return b"%bevent: %b\ndata: %b\n\n" % (place, name.encode(), data)


def position(settled: int) -> bytes:
    """Everything up to here would survive: it moves a client's position, and dispatches nothing."""
    return b"id: %d\n\n" % settled
