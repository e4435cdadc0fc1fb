"""The HTTP transport: a server behind a URL, by the SDK's streamable HTTP, with limited answers.

The SDK follows redirects only within the URL's own origin. Answers are limited as they come over
the wire. A compressed one is refused, because the size of what it expands to would be unlimited.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import httpx2
import msgspec
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from bridle.tools.mcp.message_filter import (
    MAX_MESSAGE,
    TOO_LARGE,
    FilteredStream,
    JsonCounter,
    RateLimit,
)
from bridle.tools.mcp.oauth import Browser, oauth_provider
from bridle.tools.mcp.spec import ServerSpec

_CONNECT_SECONDS = 15.0
_MAX_REOPENED = 20  # streams that are reopened at once: the SDK does so whenever the server says
_PROBLEMS = {
    401: "it answered 401: it wants a token, or another one",
    403: "it answered 403: this is not allowed with that token",
    404: "it answered 404: there is no MCP server at that address",
    405: "it answered 405: there is no MCP server at that address",
}


class HttpTransport:
    """The connection to a URL.

    `problem` is what was wrong with the last bad answer. `stream` has the messages, once it is
    open.
    """

    stderr_tail = ""  # only programs have one

    def __init__(
        self, spec: ServerSpec, browser: Browser | None, on_change: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._browser = browser
        self._on_change = on_change
        self._reopened = RateLimit(_MAX_REOPENED, 0.05)
        self._expired_requests: set[int | str] = set()
        self.problem = ""
        self.is_expired = False  # the server does not know our session any more
        self.stream: FilteredStream | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Yield the two streams that the SDK wants."""
        client = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self._spec.headers},
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),  # a call has its own deadline
            event_hooks={"response": [self._check_response]},
            auth=oauth_provider(self._spec, self._browser) if self._spec.tokens else None,
        )
        async with (
            client,
            streamable_http_client(
                self._spec.url, http_client=client, max_sse_event_size=MAX_MESSAGE
            ) as (received, to_server),
        ):
            self.stream = FilteredStream(received, self._on_change, self._expired_requests)
            yield self.stream, to_server

    async def _check_response(self, response: httpx2.Response) -> None:
        """Note what is wrong with an answer, and limit its body before it is read."""
        status = response.status_code
        if response.request.method == "GET" and not self._reopened.take():
            raise httpx2.RemoteProtocolError("it ends every stream as soon as it is opened")
        if response.request.method == "POST":  # a GET that finds no event stream is no problem
            self.problem = _PROBLEMS.get(status, f"it answered {status}") if status >= 400 else ""
            if status == 404 and "mcp-session-id" in response.request.headers:
                self.is_expired, self.problem = True, "it has forgotten this session"
                self._note_expired(response.request.content)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.problem = "it sent a compressed answer, which was not requested"
            raise httpx2.RemoteProtocolError(self.problem)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _LimitedEvents(response.stream, self)
        else:
            response.stream = _LimitedBody(response.stream)

    def _note_expired(self, body: bytes) -> None:
        """Note a request that was certainly not carried out: this one, and no other."""
        with suppress(msgspec.DecodeError):
            message = msgspec.json.decode(body, type=_SentMessage)
            if message.method is not None and message.id is not None:
                self._expired_requests.add(message.id)


class _SentMessage(msgspec.Struct, gc=False):
    """What tells a request from an answer or a notification."""

    id: int | str | None = None
    method: str | None = None


class _LimitedEvents(httpx2.AsyncByteStream):
    """An event stream that ends with an error if one of its messages is too large."""

    def __init__(self, inner: httpx2.AsyncByteStream, transport: HttpTransport) -> None:
        self._inner = inner
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        counter = JsonCounter()
        async for data in self._inner:
            if not counter.add_events(data):
                self._transport.problem = TOO_LARGE
                raise httpx2.SSEError(TOO_LARGE)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedBody(httpx2.AsyncByteStream):
    """A body that ends with an error if it is too long, or has too many values."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, counter = 0, JsonCounter()
        async for data in self._inner:
            size += len(data)
            if size > MAX_MESSAGE:
                raise httpx2.StreamError(f"the answer is longer than {MAX_MESSAGE:,} bytes")
            if not counter.add(data):
                raise httpx2.StreamError(TOO_LARGE)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()
