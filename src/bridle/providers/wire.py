"""The way to a model's server: a request's bytes out, the reply's bytes in.

Knows HTTP and nothing of what is said over it. `Transport` is the seam: `Wire` is ours, over
aiohttp; the official SDKs are another. aiohttp is loaded when the first request is sent.
"""

import ssl
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from bridle.errors import AgentError, ConfigError
from bridle.events import ModelEvent
from bridle.providers.http_errors import remove_secrets
from bridle.providers.sse import EventParser, ServerEvent

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from bridle.providers.aiohttp_transport import Pool

Headers = Mapping[str, str]


class Timeouts(Struct, frozen=True):
    """Seconds to wait: for a connection, for the next byte, for all of the reply (None: no end)."""

    connect: float = 15.0
    idle: float = 180.0
    total: float | None = 1800.0


class Reply(Protocol):
    """A reply under way."""

    @property
    def headers(self) -> Headers:
        """The headers of the answer; names are lower case or found in any case."""
        ...

    async def read(self) -> bytes:
        """Some more of the body; empty when it is over. Raise `AgentError`."""
        ...

    async def close(self, *, whole: bool = False) -> None:
        """Let go: keep the connection when all that matters was read, else cut it at once."""
        ...


class Transport(Protocol):
    """Sends requests. An answer that is no reply is raised as a typed error."""

    async def post(self, path: str, body: bytes) -> Reply:
        """Send the body; the reply when its headers are there. Raise `AgentError`."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What signs requests in: no error may show it."""
        ...

    async def close(self) -> None:
        """Let go of connections. A closed transport may be used again."""
        ...


class Wire:
    """Our own transport: one pool of connections for each event loop, made when first needed."""

    def __init__(
        self, base_url: str, headers: Headers, *, secret: str = "", timeouts: Timeouts | None = None
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.timeouts = timeouts or Timeouts()
        self._headers = headers
        self._secret = secret
        self._pools: dict[AbstractEventLoop, Pool] = {}
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"the base URL {base_url!r} is not one",
                hint="It begins with https:// (or http:// for a local server) and a host.",
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key."""
        return (self._secret,)

    def __repr__(self) -> str:
        return f"Wire({urlsplit(self.base_url).hostname!r})"

    def post(self, path: str, body: bytes) -> Coroutine[Any, Any, Reply]:
        """Send the body; the reply when its headers are there."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        pool = self._pools.get(loop) or self._open_pool(loop)
        return pool.post(path, body)

    def _open_pool(self, here: "AbstractEventLoop") -> "Pool":
        import_aiohttp()
        from bridle.providers.aiohttp_transport import Pool

        for loop in [loop for loop in self._pools if loop.is_closed()]:
            self._pools.pop(loop).abandon()
        pool = Pool(self.base_url, self._headers, self._secret, self.timeouts)
        self._pools[here] = pool
        return pool

    async def close(self) -> None:
        """Close this event loop's connections."""
        from asyncio import get_running_loop

        if pool := self._pools.pop(get_running_loop(), None):
            await pool.close()


class Reader(Protocol):
    """What makes a reply of one API's events. One reader reads one reply."""

    over: bool
    """Has everything been read that matters?"""
    failure: AgentError | None
    """What ended the reply, where it did not end well. Raised after what came before it."""

    def begin(self, headers: Headers) -> None:
        """Note that the answer's headers have arrived."""
        ...

    def feed(self, events: list[ServerEvent]) -> list[ModelEvent]:
        """What these events say."""
        ...

    def finish(self) -> list[ModelEvent]:
        """End the stream; a reply that is not `over` was cut short."""
        ...


async def exchange(
    transport: Transport, path: str, encode: Callable[[], bytes], reader: Reader
) -> AsyncGenerator[ModelEvent, None]:
    """One request and its reply. The only generator between the socket and the caller."""
    reply = await transport.post(path, encode())
    parser = EventParser()
    read, parse, feed = reply.read, parser.feed, reader.feed
    try:
        reader.begin(reply.headers)
        while not reader.over and (chunk := await read()):
            for event in feed(parse(chunk)):
                yield event
        if not reader.over:  # the last event may have come without the line that ends it
            for event in feed(parser.finish()):
                yield event
        if not reader.over:
            for event in reader.finish():
                yield event
    finally:
        await reply.close(whole=reader.over and reader.failure is None)
    if reader.failure is not None:
        remove_secrets(reader.failure, transport.secrets)
        raise reader.failure


# Imports aiohttp without reading the system's certificates.
#
# aiohttp reads them while it is imported, which is a quarter of the time to a first request, also
# for a model on this machine, which needs none. Here the same context reads them when it is first
# used.


class LazyCertificates(ssl.SSLContext):
    """A context whose default certificates are read by the first connection that asks for them."""

    purposes: tuple[ssl.Purpose, ...] = ()

    def _read(self) -> None:
        for purpose in self.purposes:  # twice, if two threads come at once: that does no harm
            super().load_default_certs(purpose)
        self.purposes = ()

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self._read()
        return super().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        self._read()
        return super().wrap_socket(*arguments, **options)

    def get_ca_certs(self, *arguments: Any) -> Any:
        self._read()
        return super().get_ca_certs(*arguments)

    def cert_store_stats(self) -> dict[str, int]:
        self._read()
        return super().cert_store_stats()


def import_aiohttp() -> None:
    """Import aiohttp, and have the contexts that this thread makes meanwhile read nothing.

    The one that verifies reads the certificates when it is first used; the one that does not verify
    never needs them. If aiohttp has been imported before, this does nothing.
    """
    if "aiohttp.connector" in sys.modules:
        return
    load, here = ssl.SSLContext.load_default_certs, threading.get_ident()

    def later(self: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        if threading.get_ident() != here or type(self) is not ssl.SSLContext:
            load(self, purpose)
            return
        self.__class__ = LazyCertificates
        self.purposes = (*self.purposes, purpose)  # type: ignore[attr-defined]  # it is one now

    def skip(self: ssl.SSLContext) -> None:
        if threading.get_ident() != here or self.verify_mode != ssl.CERT_NONE:
            super(ssl.SSLContext, self).set_default_verify_paths()

    ssl.SSLContext.load_default_certs = later  # type: ignore[method-assign]  # for this import
    ssl.SSLContext.set_default_verify_paths = skip  # type: ignore[method-assign]
    try:
        import aiohttp.connector  # noqa: F401 - for what it makes when it is imported
    finally:
        ssl.SSLContext.load_default_certs = load  # type: ignore[method-assign]  # as it was
        del ssl.SSLContext.set_default_verify_paths  # it is the base class's own
