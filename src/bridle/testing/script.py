"""What a fake vendor server is told to say: the scripted provider's vocabulary, and the faults of
a wire.

Plain values. Knows no vendor: each API turns blocks into frames of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from bridle.errors import ConfigError
from bridle.messages import Message, Part, Text, Thinking, ToolCall
from bridle.providers.scripted import Call, Fault, Reply, to_reply


class WireCall(Call, frozen=True, forbid_unknown_fields=True):
    """A call whose arguments can also be given as text, whole or broken."""

    text: str = ""


class WireFault(Fault, frozen=True, forbid_unknown_fields=True):
    """An error of the vendor. Before anything is said it is an HTTP error, later an event.

    Without a status the kind decides: `network` closes the connection, `timeout` never answers.
    `body` is sent instead of the vendor's error body: what a proxy in between would say.
    """

    type: str = ""
    code: str = ""
    body: str | None = None
    headers: dict[str, str] = {}


class ServerTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that the vendor ran on its side."""

    name: str = "web_search"
    input: dict[str, Any] = {}
    result: tuple[dict[str, Any], ...] = ()


class WireReply(Reply, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scripted reply and what can befall it on the wire.

    signature     of the thinking; made up where it is left out
    redacted      thinking that the vendor shows only as this data
    server_tool   a tool that the vendor ran itself
    wire_stop     the vendor's own word for the stop reason, instead of the usual one
    pings         keep-alive events (comments, where the API has no such event)
    unknown       events of a kind that nobody knows yet; they come after the first block
    broken        data that is no JSON; it comes there too
    huge          one line of so many bytes; it comes there too
    cut           the socket is closed after what was said; `cut_at`: after so many bytes
    silent        nothing more comes after what was said, and the stream stays open
    split         bytes are written so many at a time (0: an event at a time)
    newline       what ends a line
    raw           exactly this is sent as the stream (in a mapping it may be bytes)
    """

    calls: tuple[WireCall, ...] = ()
    error: WireFault | None = None
    signature: str = ""
    redacted: str = ""
    server_tool: ServerTool | None = None
    wire_stop: str = ""
    pings: Annotated[int, Meta(ge=0)] = 0
    unknown: tuple[dict[str, Any], ...] = ()
    broken: str = ""
    huge: Annotated[int, Meta(ge=0)] = 0
    cut_at: Annotated[int, Meta(ge=0)] | None = None
    silent: bool = False
    split: Annotated[int, Meta(ge=0)] = 0
    newline: str = "\n"
    raw: str | None = None

    @property
    def speaks(self) -> bool:
        """Whether there is anything to say before an error."""
        said = self.text or self.thinking or self.redacted or self.calls or self.parts
        return bool(said or self.server_tool)


WireScriptable = str | Mapping[str, Any] | Message | Reply
WireAnswering = Callable[[dict[str, Any]], WireScriptable]


def to_wire_reply(value: WireScriptable) -> WireReply:
    """Anything that may stand for a reply, as one."""
    if isinstance(value, WireReply):
        return value
    if isinstance(value, Mapping):
        usage = to_reply({"usage": value.get("usage", {})}).usage
        fields = {**value, "usage": usage}
        if isinstance(raw := value.get("raw"), bytes):
            fields["raw"] = raw.decode("utf-8", "surrogateescape")
        try:
            return msgspec.convert(fields, WireReply)
        except msgspec.ValidationError as error:
            hint = "bridle.testing.WireReply says what a reply on the wire may have."
            raise ConfigError(f"a scripted reply is wrong: {error}", error, hint=hint) from None
    plain = to_reply(value)
    fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
    fields["calls"] = tuple(WireCall(c.name, c.arguments, c.id) for c in plain.calls)
    if (fault := plain.error) is not None:
        fields["error"] = WireFault(fault.kind, fault.message, fault.retry_after, fault.status)
    return WireReply(**fields)


class ThinkingBlock(Struct, frozen=True):
    """Thinking, with the vendor's seal on it."""

    text: str
    signature: str


class RedactedBlock(Struct, frozen=True):
    """Thinking that only the vendor can read."""

    data: str


class TextBlock(Struct, frozen=True):
    """Words."""

    text: str


class CallBlock(Struct, frozen=True):
    """A call, its arguments as the text that is sent."""

    id: str
    name: str
    arguments: str


class ServerBlock(Struct, frozen=True):
    """A tool that ran on the vendor's side."""

    id: str
    tool: ServerTool


Block = ThinkingBlock | RedactedBlock | TextBlock | CallBlock | ServerBlock


class Names:
    """Ids that nobody else has on this server."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        """An id that was never given before."""
        self._count += 1
        return f"{prefix}_{self._count:04}"


def to_blocks(reply: WireReply, names: Names, call_prefix: str) -> Iterator[Block]:
    """What a reply says, in the order in which it is said."""
    if reply.thinking:
        yield ThinkingBlock(reply.thinking, reply.signature or names.new("sig"))
    if reply.redacted:
        yield RedactedBlock(reply.redacted)
    if reply.server_tool:
        yield ServerBlock(names.new("srvtoolu"), reply.server_tool)
    if reply.text:
        yield TextBlock(reply.text)
    for call in reply.calls:
        arguments = call.text or msgspec.json.encode(call.arguments).decode()
        yield CallBlock(call.id or names.new(call_prefix), call.name, arguments)
    for part in reply.parts:
        yield _to_block(part, names, call_prefix)


def _to_block(part: Part, names: Names, call_prefix: str) -> Block:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, Thinking):
        return ThinkingBlock(part.text, part.meta.get("signature") or names.new("sig"))
    if isinstance(part, ToolCall):
        arguments = part.broken or msgspec.json.encode(part.arguments).decode()
        return CallBlock(part.id or names.new(call_prefix), part.name, arguments)
    raise ConfigError(
        f"a model does not write a part of type {type(part).__name__}",
        hint="A scripted reply has text, thinking and tool calls.",
    )
