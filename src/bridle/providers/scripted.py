"""A provider that says what it was told to say: for tests, demos and other people's tests.

Replies come from a list or a JSON file and are streamed as a real model's would be, with the
delays, errors and cut streams that the script asks for. Knows no network and no vendor.
"""

import asyncio
import errno
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from bridle.errors import (
    AgentError,
    ConfigError,
    ContextTooLong,
    KeyRefused,
    Kind,
    Origin,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRefused,
    StreamCutShort,
    StreamStalled,
    ToolError,
    UnknownModel,
    Unreachable,
)
from bridle.events import (
    ModelEvent,
    ResponseCompleted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)
from bridle.messages import Message, Part, Text, Thinking, ToolCall
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.reply_reader import parse_error
from bridle.usage import Price, Usage

Seconds = Annotated[float, Meta(ge=0, le=86_400)]


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; an id that is left out is made up."""

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """An error to raise. The status decides the class where there is one, else the kind does."""

    kind: Kind = "agent"
    message: str = "a scripted failure"
    retry_after: Seconds | None = None
    status: int | None = None

    def to_error(self) -> AgentError:
        """Return the error of our tree that stands for this fault."""
        origin = Origin(self.status, f"scripted_{self.kind}")
        return self._class()(self.message, retry_after=self.retry_after, origin=origin)

    def _class(self) -> type[ProviderError] | type[ToolError]:
        if self.status is None:
            return _BY_KIND[self.kind]
        if self.status >= 500:
            return Overloaded
        return _BY_STATUS.get(self.status, RequestRefused)


_BY_KIND: dict[Kind, type[ProviderError] | type[ToolError]] = {
    "agent": ProviderError,
    "tool": ToolError,
    "timeout": StreamStalled,
    "rate_limit": RateLimited,
    "network": Unreachable,
    "invalid": RequestRefused,
}
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: KeyRefused,
    403: KeyRefused,
    404: UnknownModel,
    413: ContextTooLong,
    429: RateLimited,
}


class Reply(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply of a script: thinking, then text, then calls; `parts` for any other order.

    `delay` is waited before the reply, `pause` between its deltas; `chunk` is how many characters
    a delta has (0: a word). With `error` or `cut` the stream fails after what there was to say.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    parts: tuple[Part, ...] = ()
    delay: Seconds = 0.0
    pause: Seconds = 0.0
    chunk: Annotated[int, Meta(ge=0)] = 0
    error: Fault | None = None
    cut: bool = False
    usage: Usage = Usage()
    stop_reason: StopReason | None = None
    stop_detail: str = ""


Scriptable = str | Mapping[str, Any] | Message | Reply
Answering = Callable[[Request], Scriptable]


class _File(Struct, forbid_unknown_fields=True):
    """The top level of a scripted file."""

    replies: list[str | dict[str, Any]]
    loop: bool = False
    model: str = "scripted"
    price: Price | None = None
    context_window: int | None = None


class Scripted:
    """Keeps the provider's promise with replies that were written beforehand.

    A reply is text, a mapping, a `Message`, a `Reply`, or a function from the request to one of
    these; instead of a list, one such function may answer everything. `requests` holds what was
    asked, in order.
    """

    def __init__(
        self,
        replies: Iterable[Scriptable | Answering] | Answering,
        *,
        info: ProviderInfo | None = None,
        loop: bool = False,
    ) -> None:
        self._loop = loop or callable(replies)
        answers = [replies] if callable(replies) else list(replies)
        self._answers = [each if callable(each) else to_reply(each) for each in answers]
        self._calls = 0
        self.info = info or ProviderInfo("scripted", "scripted")
        self.requests: list[Request] = []

    @classmethod
    def from_file(cls, path: str | Path) -> "Scripted":
        """Return the script in a JSON file: `{"replies": [{"text": "…"}, {"calls": […]}, …]}`."""
        script = _read(Path(path))
        info = ProviderInfo(
            "scripted", script.model, context_window=script.context_window, price=script.price
        )
        replies = []
        for number, value in enumerate(script.replies, 1):
            try:
                replies.append(to_reply(value))
            except ConfigError as error:
                message = f"{path}: reply {number} of the script is wrong: {error.cause}"
                raise ConfigError(message, error, hint=_HINT) from None
        return cls(replies, info=info, loop=script.loop)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Play the next reply."""
        self.requests.append(request)
        number = len(self.requests)
        reply = self._next(request, number)
        parts = tuple(self._parts(reply))
        async with aclosing(play(reply, parts, self.info, f"scripted_{number}")) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _next(self, request: Request, number: int) -> Reply:
        count = len(self._answers)
        if not count or (number > count and not self._loop):
            raise ProviderError(
                f"the script has {count} replies and was asked for reply {number}",
                hint='Add a reply to the script, or let it repeat with "loop": true.',
            )
        answer = self._answers[(number - 1) % count]
        return answer if isinstance(answer, Reply) else to_reply(answer(request))

    def _parts(self, reply: Reply) -> Iterator[Part]:
        if reply.thinking:
            yield Thinking(reply.thinking)
        if reply.text:
            yield Text(reply.text)
        for call in reply.calls:
            self._calls += 1
            yield ToolCall(call.id or f"call_{self._calls}", call.name, call.arguments)
        yield from reply.parts


async def play(
    reply: Reply, parts: tuple[Part, ...], info: ProviderInfo, request_id: str
) -> AsyncGenerator[ModelEvent, None]:
    """Stream one reply whose parts are these."""
    await asyncio.sleep(reply.delay)  # also without a delay: a stream lets others run
    for part in parts:
        for event in _deltas(part, reply.chunk):
            yield event
            if reply.pause:
                await asyncio.sleep(reply.pause)
    if reply.error is not None:
        raise reply.error.to_error()
    if reply.cut:
        raise StreamCutShort("the scripted stream was cut short")
    cost = info.price.cost(reply.usage) if info.price else None
    yield UsageReported(reply.usage, info.model, cost)
    calls = any(isinstance(part, ToolCall) for part in parts)
    yield ResponseCompleted(
        reply.stop_reason or ("tool_use" if calls else "complete"),
        Message("assistant", parts),
        reply.usage,
        info.model,
        request_id,
        reply.stop_detail,
    )


def _deltas(part: Part, chunk: int) -> Iterator[ModelEvent]:
    if isinstance(part, Text):
        yield from (TextDelta(piece) for piece in pieces(part.text, chunk))
    elif isinstance(part, Thinking):
        yield from (ThinkingDelta(piece) for piece in pieces(part.text, chunk))
    elif isinstance(part, ToolCall):
        yield ToolCallStarted(part.id, part.name)
        arguments = part.broken or msgspec.json.encode(part.arguments).decode()
        yield from (ToolCallArgsDelta(part.id, piece) for piece in pieces(arguments, chunk or 16))
        yield parse_error(arguments) if part.broken else ToolCallReady(part)


def pieces(text: str, chunk: int = 0) -> list[str]:
    """Text cut into deltas of so many characters, or (0) into words."""
    if chunk:
        return [text[start : start + chunk] for start in range(0, len(text), chunk)]
    return re.findall(r"\s*\S+|\s+\Z", text)


def to_reply(value: Scriptable) -> Reply:
    """Anything that may stand for a reply, as one. `ConfigError` says what is wrong with it."""
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply(text=value)
    if isinstance(value, Message):
        return Reply(parts=value.parts)
    fields = dict(value)
    if isinstance(usage := fields.get("usage"), Mapping):
        fields["usage"] = {_camel(str(name)): figure for name, figure in usage.items()}
    try:
        return msgspec.convert(fields, Reply)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a scripted reply is wrong: {error}", error, hint=_HINT) from None


_HINT = "A reply may have text, thinking, calls, parts, delay, pause, chunk, error, cut, usage, "
_HINT += "stop_reason and stop_detail."


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def _read(path: Path) -> _File:
    shape = 'A scripted file looks like {"replies": [{"text": "…"}, …]}.'
    try:
        raw = _content(path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "Check the name of the file."
        raise ConfigError(f"{path}: cannot be read: {reason}", error, hint=hint) from error
    try:
        raw.decode()  # first, because the decoder counts from the start of the string it is in
        return msgspec.json.decode(raw, type=_File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}", error, hint=shape) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path}, {_position(raw, error)}: {error}"
        raise ConfigError(message, error, hint=shape) from error


def _content(path: Path) -> bytes:
    """What is in the file; a pipe or a device, which may never end, is none."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read()


def _position(raw: bytes, error: Exception) -> str:
    """Where in the file the decoder stopped."""
    match = re.search(r"\(byte (\d+)\)", str(error))
    offset = int(match[1]) if match else len(raw)
    if isinstance(error, UnicodeDecodeError):
        offset = error.start
    line = raw.count(b"\n", 0, offset) + 1
    column = offset - raw.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"
