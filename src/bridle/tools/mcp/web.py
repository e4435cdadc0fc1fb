"""A server behind an address: streamable HTTP by the SDK, with bounded answers.

The SDK follows a redirect only within the address's own origin. An answer is bounded as it comes
over the wire, and one that is packed is refused: what it unpacks to is not.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import httpx2
import msgspec
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from bridle.tools.mcp.guarded import Allowance, Guarded
from bridle.tools.mcp.spec import Spec
from bridle.tools.mcp.tally import TOO_MUCH, Tally

if TYPE_CHECKING:
    from bridle.tools.mcp.signing_in import Visitor

LARGEST = 16 * 1024 * 1024  # bytes of one message
_CONNECT = 15.0
_AGAIN = 20  # times that a stream is opened again at once: the SDK comes when the server says
_STATUS = {
    401: "it answered 401: it wants a token, or another one",
    403: "it answered 403: this is not allowed with that token",
    404: "it answered 404: there is no MCP server at that address",
    405: "it answered 405: there is no MCP server at that address",
}


class Web:
    """The way to one server by HTTP. `trouble` is what was wrong with the last bad answer."""

    def __init__(self, spec: Spec, visitor: "Visitor | None" = None) -> None:
        self._spec = spec
        self._visitor = visitor
        self.trouble = ""
        self.lost = False  # it does not know of our session any more
        self.refused: set[int | str] = set()  # the requests to which it said so
        self.on_change: Callable[[], None] = lambda: None
        self._listening = Allowance(_AGAIN, 0.05)
        self.guard: Guarded | None = None

    @property
    def last_words(self) -> str:
        """What it said besides; a web server has nothing of the kind."""
        return ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """The two streams, as the SDK wants them."""
        timeout = httpx2.Timeout(_CONNECT, read=None)  # a call has a deadline of its own
        headers = {"Accept-Encoding": "identity", **self._spec.headers}
        hooks = {"response": [self._look]}
        async with (
            httpx2.AsyncClient(
                headers=headers, timeout=timeout, event_hooks=hooks, auth=self._auth()
            ) as client,
            _streams(self._spec.url, client) as (heard, say),
        ):
            self.guard = Guarded(heard, lambda: self.on_change(), self.refused)
            yield self.guard, say

    def _auth(self) -> httpx2.Auth | None:
        if not self._spec.tokens:
            return None
        from bridle.tools.mcp.signing_in import signing_in

        return signing_in(self._spec, self._visitor)

    def _complain(self, trouble: str) -> None:
        self.trouble = trouble

    def _refuse(self, body: bytes) -> None:
        """Of this request, and of no other, it is known that nothing came."""
        with suppress(msgspec.DecodeError):
            sent = msgspec.json.decode(body, type=_Sent)
            if sent.method is not None and sent.id is not None:
                self.refused.add(sent.id)

    async def _look(self, response: httpx2.Response) -> None:
        """Bound an answer before anybody reads it."""
        status = response.status_code
        if response.request.method == "GET" and not self._listening.take():
            raise httpx2.RemoteProtocolError("it ends every stream as soon as it is opened")
        if response.request.method == "POST":  # that there is no stream to listen to is no trouble
            self.trouble = _STATUS.get(status, f"it answered {status}") if status >= 400 else ""
            if status == 404 and "mcp-session-id" in response.request.headers:
                self.lost, self.trouble = True, "it has forgotten this session"
                self._refuse(response.request.content)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.trouble = "it sent a packed answer, which nobody asked for"
            raise httpx2.RemoteProtocolError(self.trouble)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _Counted(response.stream, self._complain)
        else:
            response.stream = _Bounded(response.stream)


class _Sent(msgspec.Struct, gc=False):
    """Of what was sent, what tells a request from an answer and from a notice."""

    id: int | str | None = None
    method: str | None = None


def _streams(url: str, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[TransportStreams]:
    return streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST)


class _Counted(httpx2.AsyncByteStream):
    """A stream of events that ends with an error where there is too much in one of them."""

    def __init__(self, inner: httpx2.AsyncByteStream, complain: Callable[[str], None]) -> None:
        self._inner = inner
        self._complain = complain

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tally = Tally()
        async for data in self._inner:
            if not tally.add_stream(data):
                self._complain(TOO_MUCH)
                raise httpx2.SSEError(TOO_MUCH)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long, or too much is in it."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room, tally = LARGEST, Tally()
        async for data in self._inner:
            room -= len(data)
            if room < 0:
                raise httpx2.StreamError(f"the answer is longer than {LARGEST:,} bytes")
            if not tally.add(data):
                raise httpx2.StreamError(TOO_MUCH)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()
