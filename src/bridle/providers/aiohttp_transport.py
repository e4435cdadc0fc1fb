"""The pool of connections behind `Wire`: aiohttp's, with its failures as our own errors.

The only module that imports aiohttp, so it is itself imported when the first request is sent.
The environment's proxy and certificate settings are looked up once, when the pool is made.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from bridle.errors import (
    AgentError,
    BadStream,
    ConfigError,
    Origin,
    StreamCutShort,
    StreamStalled,
    TimedOut,
    Unreachable,
)
from bridle.providers.http_errors import (
    error_from_status,
    is_error_document,
    remove_key,
    request_id_in,
)
from bridle.providers.wire import Headers, Timeouts
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

# Ends requests that take too long, with one timer for all of them.
#
# Timers for each request and each chunk would cost as much as reading them. So each request notes
# when it was sent and since when it waits for bytes, and one timer looks four times within the
# shortest limit. Knows no sockets: it is to_error how to stop a request.

_LOOKS = 4
_LONGEST_INTERVAL = 3600.0


class PendingRequest:
    """One request: when it was sent, and since when it waits for bytes (0: it does not).

    `stop` ends it, and `late` says which limit was exceeded.
    """

    __slots__ = ("late", "sent", "since", "stop")

    def __init__(self, stop: Callable[[], object]) -> None:
        self.sent = self.since = monotonic()
        self.stop = stop
        self.late: Literal["", "idle", "total"] = ""

    def stop_late(self, late: Literal["idle", "total"]) -> None:
        """Stop it because it took too long."""
        self.late = late
        self.stop()


class RequestTimeouts:
    """The requests that are running, and their limits."""

    def __init__(self, idle: float, total: float | None) -> None:
        self._idle = idle or inf
        self._total = total or inf
        self._interval = min(self._idle / _LOOKS, self._total / _LOOKS, _LONGEST_INTERVAL)
        self._running: set[PendingRequest] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, stop: Callable[[], object]) -> PendingRequest:
        """Watch a request that is sent now."""
        wait = PendingRequest(stop)
        self._running.add(wait)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._check_waits)
        return wait

    def end(self, wait: PendingRequest) -> None:
        """Stop watching a request."""
        self._running.discard(wait)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_waits(self) -> None:
        self._timer = None
        now = monotonic()
        for wait in list(self._running):
            if now - wait.sent >= self._total:
                self._running.discard(wait)
                wait.stop_late("total")
            elif wait.since and now - wait.since >= self._idle:
                self._running.discard(wait)
                wait.stop_late("idle")
        if self._running:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._check_waits)


_ERROR_LIMIT = 64 * 1024
_LINGER = 1.0  # seconds that a whole reply may take to end its body
_LARGE = 1024 * 1024  # above this aiohttp wants a file, and reads it in a thread
_SLICE = 256 * 1024
_RECEIVE = 64 * 1024  # asyncio asks for 256 KB, for which the allocator maps new pages each time
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Slices(aiohttp.BytesPayload):
    """A large body that is handed to the connection piece by piece, so that the loop goes on."""

    def __init__(self, body: bytes) -> None:
        aiohttp.Payload.__init__(self, body, content_type="application/json")
        self._size = len(body)

    async def write_with_length(self, writer: AbstractStreamWriter, length: int | None) -> None:
        """Send it, or as much of it as is wanted."""
        view = memoryview(self._value)[:length]
        for start in range(0, len(view), _SLICE):
            await writer.write(view[start : start + _SLICE])

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send all of it."""
        await self.write_with_length(writer, None)


class Connector(aiohttp.TCPConnector):
    """aiohttp's own, with connections that read in pieces of a size that costs little."""

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the name is aiohttp's
    ) -> "ResponseHandler":
        made = await super()._create_connection(req, traces, timeout)
        transport: Any = made.transport
        if hasattr(transport, "max_size"):  # asyncio's own have it, others need not
            transport.max_size = _RECEIVE
        return made


class Pool:
    """One event loop's connections to one server."""

    def __init__(self, base_url: str, headers: Headers, secret: str, timeouts: Timeouts) -> None:
        parts = urlsplit(base_url)
        self.host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        self.timeouts = timeouts
        self._base = base_url
        self._targets: dict[str, URL] = {}
        self._secret = secret
        self._lingering: set[aiohttp.ClientResponse] = set()
        self._patience = RequestTimeouts(timeouts.idle, timeouts.total)
        self._proxy = _proxy(parts.scheme, str(parts.hostname))
        self._session = aiohttp.ClientSession(
            connector=Connector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=CIMultiDict({"accept-encoding": "identity", **headers}),
            # Only the connection is timed by aiohttp; the rest has one clock for all requests.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect),
        )

    async def post(self, path: str, body: bytes) -> "Answer":
        """Send the body; raise what is no reply."""
        task = asyncio.current_task()
        assert task is not None, "a request is sent from within a task"
        before = task.cancelling()
        wait = self._patience.begin(task.cancel)
        try:
            response = await self._session.post(
                self._target(path),
                data=body if len(body) < _LARGE else Slices(body),
                allow_redirects=False,  # the key goes to the host that was named, and nowhere else
                **self._proxy,
            )
        except asyncio.CancelledError:
            self._patience.end(wait)
            if not wait.late or task.uncancel() > before:  # somebody else's cancel goes on
                raise
            raise self._timeout_error(wait) from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            self._patience.end(wait)
            raise self.to_error(problem, Unreachable) from _safe_cause(problem)
        answer = Answer(self, response, wait)
        if response.status != 200 or not _may_stream(response.content_type):
            raise await self._refusal(answer, response)
        return answer

    def _target(self, path: str) -> URL:
        found = self._targets.get(path)
        if found is None:
            found = self._targets[path] = URL(self._base + path)
        return found

    async def _refusal(self, answer: "Answer", response: aiohttp.ClientResponse) -> AgentError:
        body = b""
        try:
            while len(body) < _ERROR_LIMIT and (chunk := await answer.read()):
                body += chunk
        except AgentError:
            pass  # the status alone says enough
        finally:
            await answer.close()
        body = remove_key(body[:_ERROR_LIMIT], self._secret)
        if response.status == 200 and not is_error_document(body):
            said = f"{self.host} answered with {response.content_type}, not with a stream of events"
            return BadStream(said)
        return error_from_status(response.status, body, response.headers, self.host)

    def to_error(
        self, problem: Exception, lost: type[AgentError], wait: PendingRequest | None = None
    ) -> AgentError:
        """Return a failed connection as a typed error: `lost` if the connection broke."""
        if wait is not None and wait.late:
            return self._timeout_error(wait)
        if isinstance(problem, aiohttp.ServerTimeoutError):
            limit = quantity(self.timeouts.connect, "second")
            return Unreachable(f"{self.host} could not be reached within {limit}")
        return self._connection_error(problem, lost)

    def _timeout_error(self, wait: PendingRequest) -> AgentError:
        waits = self.timeouts
        if wait.late == "idle":
            return StreamStalled(f"{self.host} sent nothing for {quantity(waits.idle, 'second')}")
        return TimedOut(
            f"the reply of {self.host} was not over within {quantity(waits.total or 0, 'second')}",
            hint="Allow a longer total timeout, or ask for less at once.",
        )

    def _connection_error(self, problem: Exception, lost: type[AgentError]) -> AgentError:
        if isinstance(problem, ValueError):  # also aiohttp's InvalidURL
            return ConfigError(
                f"no request can be made to {self.host}",
                hint="Check the base URL, the proxy and the API key for stray characters.",
            )
        if isinstance(problem, aiohttp.ClientHttpProxyError):
            return Unreachable(f"the proxy refused the way to {self.host} ({problem.status})")
        if isinstance(problem, aiohttp.ClientResponseError):
            return BadStream(f"{self.host} does not answer in HTTP")
        if lost is StreamCutShort:
            return StreamCutShort(f"{self.host} cut the stream before the reply was over")
        why = getattr(problem, "strerror", None) or "the connection was closed"
        return Unreachable(f"{self.host} could not be reached ({why})")

    def forget(self, wait: PendingRequest) -> None:
        """Stop watching the timeouts of a reply that nobody reads any more."""
        self._patience.end(wait)

    def finish_later(self, response: aiohttp.ClientResponse) -> None:
        """Give a complete reply a moment to end its body, so that its connection can be reused."""
        self._lingering.add(response)
        asyncio.get_running_loop().call_later(_LINGER, self._cut, response)

    def _cut(self, response: aiohttp.ClientResponse) -> None:
        self._lingering.discard(response)
        response.close()

    async def close(self) -> None:
        """Close every connection."""
        self._patience.close()
        for response in list(self._lingering):
            self._cut(response)
        await self._session.close()

    def abandon(self) -> None:
        """Forget the connections of an event loop that is gone; it took them along."""
        connector = self._session.connector
        self._session.detach()
        if connector is not None:
            connector._close()
        while self._lingering:
            self._lingering.pop().release()


class Answer:
    """A reply on one of the pool's connections."""

    __slots__ = ("_pool", "_readany", "_response", "_wait", "headers")

    def __init__(self, pool: Pool, response: aiohttp.ClientResponse, wait: PendingRequest) -> None:
        self._pool = pool
        self._response = response
        self._readany = response.content.readany
        self._wait = wait
        self.headers: Headers = response.headers
        wait.stop = response.close
        wait.since = 0.0

    async def read(self) -> bytes:
        """Some more of the body; empty when it is over."""
        wait = self._wait
        wait.since = monotonic()
        try:
            return await self._readany()
        except (aiohttp.ClientError, OSError) as problem:
            error = self._pool.to_error(problem, StreamCutShort, wait)
            error.origin = Origin(request_id=request_id_in(self.headers))
            raise error from _safe_cause(problem)
        finally:
            wait.since = 0.0

    async def close(self, *, whole: bool = False) -> None:
        """Cut the connection, or let a whole reply end its body so that it can be used again."""
        response = self._response
        self._pool.forget(self._wait)
        try:
            if whole and not response.closed:
                await asyncio.sleep(0)  # the end of the body is most often there already
        except asyncio.CancelledError:
            response.close()
            raise
        if whole and not response.closed:
            # aiohttp gives the connection back by itself when the end of the body comes.
            self._pool.finish_later(response)
        else:
            response.close()


def _safe_cause(problem: Exception) -> BaseException | None:
    """Return the cause if it can be shown: aiohttp's own errors contain headers and proxies."""
    cause = getattr(problem, "os_error", None)
    if isinstance(cause, OSError):
        return cause
    return None if isinstance(problem, aiohttp.ClientError | ValueError) else problem


def _may_stream(content_type: str) -> bool:
    """May it be a stream? Compatible servers are careless with the type."""
    return content_type not in ("text/html", "application/json")


def _proxy(scheme: str, host: str) -> dict[str, Any]:
    """Return the environment's proxy for this host, as aiohttp takes it. Loopback needs none."""
    if host in _LOOPBACK or proxy_bypass(host):
        return {}
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address:
        return {}
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme not in ("http", "https"):
        raise ConfigError(
            f"the environment names a {parts.scheme} proxy, and only HTTP proxies are spoken",
            hint="Set HTTPS_PROXY to an http:// proxy, or name the host in NO_PROXY.",
        )
    place = parts.netloc.rpartition("@")[2]
    found: dict[str, Any] = {"proxy": urlunsplit((parts.scheme, place, "", "", ""))}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = "Basic " + b64encode(pair.encode()).decode()
        # To a tunnel the login is said when it is opened, otherwise with each request.
        where = "proxy_headers" if scheme == "https" else "headers"
        found[where] = {"Proxy-Authorization": login}
    return found
