"""What a server sends, on its way to the SDK: limited, and without what we do not use.

A server that sends too many messages is disconnected. Its log lines are dropped. Of its tools only
name, description and input schema are kept: with the schemas of results the SDK would check
results, with patterns that the server chose, and one tool of the wrong shape would cost the whole
list.
"""

import asyncio
import time
from collections.abc import Callable, Set
from types import TracebackType
from typing import Any

from anyio import ClosedResourceError, EndOfStream
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from bridle.tools.mcp.tool import UNUSABLE

MAX_MESSAGE = 16 * 1024 * 1024  # bytes
MAX_VALUES = 200_000  # in one message
MAX_DEPTH = 180  # the SDK's parser fails at 200
TOO_LARGE = (
    f"it sent a message of more than {MAX_VALUES:,} values, or nested more than {MAX_DEPTH} deep"
)
SESSION_EXPIRED = object()  # error data that no server can send: this request was refused, not done

_MAX_BLOCKS = 1_000  # of one answer
_MAX_BURST = 5_000  # messages at once
_MAX_PER_SECOND = 500.0  # messages after that
_MAX_REQUESTS = 100  # of a server to us at once, and one per second after that
_BLOCK_LISTS = ("content", "contents", "messages")
_TOOLS_CHANGED = "notifications/tools/list_changed"
_IGNORED_METHODS = ("notifications/message", "notifications/resources/updated")

Item = SessionMessage | Exception


class RateLimit:
    """So many at once, and then so many per second."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._left, self._burst, self._per_second = burst, burst, per_second
        self._refilled_at = time.monotonic()

    def take(self) -> bool:
        """Count one more. Return whether it is within the limit."""
        self._left -= 1
        if self._left < 0:
            now = time.monotonic()
            refill = (now - self._refilled_at) * self._per_second
            self._left = min(self._burst, self._left + refill)
            self._refilled_at = now
        return self._left >= 0


class FilteredStream:
    """A stream of the server's messages that ends if there are too many.

    `on_change` is called when the server says that its tools have changed, before any later message
    is read. `expired` are the ids of requests that were refused by a server which no longer knew
    our session.
    """

    def __init__(
        self,
        inner: ReadStream[Item],
        on_change: Callable[[], None],
        expired: Set[int | str] = frozenset(),
    ) -> None:
        self._inner = inner
        self._expired = expired
        self._on_change = on_change
        self._rate = RateLimit(_MAX_BURST, _MAX_PER_SECOND)
        self._request_rate = RateLimit(_MAX_REQUESTS, 1.0)  # each waits for its answer
        self.is_flooded = False
        self.ended = asyncio.Event()

    @property
    def last_context(self) -> Any:
        """What the SDK's own streams know about the sender."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        """Return the next message that we use."""
        while True:
            item = await self._inner.receive()
            message = item.message if isinstance(item, SessionMessage) else None
            is_request = isinstance(message, JSONRPCRequest)
            if not self._rate.take() or (is_request and not self._request_rate.take()):
                self.is_flooded = True
                await self._inner.aclose()
                continue  # the next `receive` ends it, in the stream's own way
            if isinstance(message, JSONRPCNotification) and message.method == _TOOLS_CHANGED:
                self._on_change()
            if message is None:
                continue  # not a message; the SDK would only log it
            if isinstance(message, JSONRPCNotification) and message.method in _IGNORED_METHODS:
                continue
            if isinstance(message, JSONRPCResponse):
                if _has_too_many_blocks(message.result):
                    text = f"more than {_MAX_BLOCKS:,} blocks at once"
                    error = ErrorData(code=INVALID_REQUEST, message=text)
                    message = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
                    return SessionMessage(message)
                if isinstance(message.result.get("tools"), list):
                    tools = map(_reduce_tool, message.result["tools"])
                    message.result["tools"] = [tool for tool in tools if tool is not None]
            elif isinstance(message, JSONRPCError) and message.id in self._expired:
                message.error.data = SESSION_EXPIRED
            return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "FilteredStream":
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except (EndOfStream, ClosedResourceError):
            self.ended.set()
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "FilteredStream":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def _has_too_many_blocks(result: dict[str, Any]) -> bool:
    """Return whether there are more blocks than anyone reads. The SDK makes an object of each."""
    lists = (result.get(name) for name in _BLOCK_LISTS)
    return any(isinstance(blocks, list) and len(blocks) > _MAX_BLOCKS for blocks in lists)


def _reduce_tool(tool: Any) -> dict[str, Any] | None:
    """Return name, description and input schema of a tool in a shape that the SDK accepts.

    What the tool claims about its effects, and how it wants to be shown, is left out.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    description, schema = tool.get("description"), tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        schema = {"type": "object", UNUSABLE: True}
    return {
        "name": tool["name"],
        "description": description if isinstance(description, str) else "",
        "inputSchema": schema,
    }


_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"{}[]")


class JsonCounter:
    """Counts the values in a JSON message, and their depth, from its bytes as they come.

    A few megabytes of small values take a parser many seconds and gigabytes; counting creates no
    objects. The count is exact for valid JSON, and for other data up to where a parser stops.
    """

    def __init__(self) -> None:
        self._values = self._depth = 0
        self._is_in_string = False
        self._pending = b""  # a backslash whose meaning depends on the next byte
        self._is_line_empty = True  # the line of an event stream that is being read
        self._ended_in_cr = False  # the last piece of an event stream

    def reset(self) -> None:
        """Start a new message."""
        self._values = self._depth = 0
        self._is_in_string, self._pending = False, b""

    def add(self, data: bytes) -> bool:
        """Count a piece of a message. Return False if the message is too large."""
        data = self._pending + data
        is_odd = (len(data) - len(data.rstrip(b"\\"))) % 2
        data, self._pending = (data[:-1], b"\\") if is_odd else (data, b"")
        parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[int(self._is_in_string) :: 2])  # of strings
        self._is_in_string ^= len(parts) % 2 == 0
        opened = outside.count(b"{") + outside.count(b"[")
        self._values += opened + outside.count(b",")
        return self._values <= MAX_VALUES and self._is_shallow(outside, opened)

    def _is_shallow(self, outside: bytes, opened: int) -> bool:
        if self._depth + opened <= MAX_DEPTH:
            self._depth += opened - outside.count(b"}") - outside.count(b"]")
            return True
        for bracket in outside.translate(None, _NOT_BRACKETS):
            self._depth += 1 if bracket in b"{[" else -1
            if self._depth > MAX_DEPTH:
                return False
        return True

    def add_events(self, data: bytes) -> bool:
        """Count a piece of an event stream, where an empty line ends a message."""
        if self._ended_in_cr and data.startswith(b"\n"):
            data = data[1:]
        self._ended_in_cr = data.endswith(b"\r") or (self._ended_in_cr and not data)
        first, *lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if not self._add_to_line(first):
            return False
        for line in lines:
            if self._is_line_empty:
                self.reset()
            # No string continues on another line; the name of a field may look as if it did.
            self._is_in_string, self._pending, self._is_line_empty = False, b"", True
            if not self._add_to_line(line):
                return False
        return True

    def _add_to_line(self, data: bytes) -> bool:
        self._is_line_empty = self._is_line_empty and not data
        return not data or self.add(data)
