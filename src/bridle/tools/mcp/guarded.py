"""What a server says, on its way to the SDK: counted, and without what nobody here wants.

A server that says more than anybody could use is let go. Its own log lines are dropped. Of tools
only the barest is kept: by the schemas of results the SDK would check results, with patterns that
are the server's, and one tool of a wrong shape would cost it the whole list.
"""

import asyncio
import time
from collections.abc import Callable, Set
from types import TracebackType
from typing import Any

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

from bridle.tools.mcp.definition import UNFIT
from bridle.tools.mcp.tally import BLOCKS

BURST = 5_000  # messages at once
PER_SECOND = 500.0  # ... and from then on
QUESTIONS = 100  # of a server to us at once, and one a second
_BLOCKS = ("content", "contents", "messages")
_CHANGED = "notifications/tools/list_changed"
_UNWANTED = ("notifications/message", "notifications/resources/updated")
FORGOTTEN = object()  # no server can send it: that this very request was refused, and not done


Item = SessionMessage | Exception


class Allowance:
    """So many messages at once, and so many a second."""

    def __init__(self, burst: float = BURST, rate: float = PER_SECOND) -> None:
        self._left, self._most, self._rate = burst, burst, rate
        self._at = time.monotonic()

    def take(self) -> bool:
        """One more: is it within what is allowed?"""
        self._left -= 1
        if self._left < 0:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
            self._at = now
        return self._left >= 0


class Guarded:
    """A stream of messages that ends when there are too many of them."""

    def __init__(
        self,
        inner: ReadStream[Item],
        on_change: Callable[[], None],
        refused: Set[int | str] = frozenset(),
    ) -> None:
        self._inner = inner
        self._refused = refused  # requests that came to a server which had forgotten us
        self._on_change = on_change  # told at once: what comes after it may rely on it
        self._allowance = Allowance()
        self._questions = Allowance(QUESTIONS, 1.0)  # each waits for its answer to be written
        self.flooded = False
        self.over = asyncio.Event()  # there will be no more messages

    @property
    def last_context(self) -> Any:
        """What the SDK's own streams know of the sender."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        """The next message that is wanted."""
        while True:
            item = await self._inner.receive()
            if not self._allowance.take() or not self._may_ask(item):
                self.flooded = True
                await self._inner.aclose()
                continue  # which ends it, in the stream's own way
            if _is_change(item):
                self._on_change()
            if _is_wanted(item):
                return self._marked(item)

    def _marked(self, item: Item) -> Item:
        """An error to a request that was refused says so, in a way that nobody can forge.

        An answer of more blocks than anybody reads is an error.
        """
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse) and _is_too_much(message.result):
            error = ErrorData(code=INVALID_REQUEST, message=f"more than {BLOCKS:,} blocks at once")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        if isinstance(message, JSONRPCError) and message.id in self._refused:
            message.error.data = FORGOTTEN
        return item

    def _may_ask(self, item: Item) -> bool:
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCRequest):
            return True
        return self._questions.take()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "Guarded":
        return self

    async def __anext__(self) -> Item:
        from anyio import ClosedResourceError, EndOfStream

        try:
            return await self.receive()
        except (EndOfStream, ClosedResourceError):
            self.over.set()
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "Guarded":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def _is_too_much(result: dict[str, Any]) -> bool:
    """Are there more blocks in it than anybody reads? The SDK makes an object of each."""
    found = (result.get(name) for name in _BLOCKS)
    return any(isinstance(one, list) and len(one) > BLOCKS for one in found)


def _is_change(item: Item) -> bool:
    """Does it say that the server has other tools by now?"""
    if not isinstance(item, SessionMessage):
        return False
    message = item.message
    return isinstance(message, JSONRPCNotification) and message.method == _CHANGED


def _is_wanted(item: Item) -> bool:
    if not isinstance(item, SessionMessage):
        return False  # what was no message; the SDK would only log it
    message = item.message
    if isinstance(message, JSONRPCNotification):
        return message.method not in _UNWANTED
    if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
        found = filter(None, map(_bare, message.result["tools"]))
        message.result["tools"] = list(found)
    return True


def _bare(tool: Any) -> dict[str, Any] | None:
    """Of a tool its name, what it says of it and its arguments, in a shape that the SDK takes.

    One that is not of that shape would cost the whole list; what it claims of its effects, and how
    it wants to be shown, is nobody's business.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    said, schema = tool.get("description"), tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        schema = {"type": "object", UNFIT: True}
    return {
        "name": tool["name"],
        "description": said if isinstance(said, str) else "",
        "inputSchema": schema,
    }
