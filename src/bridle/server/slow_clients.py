"""uvicorn's connections with time limits, for addresses that other machines can reach.

uvicorn waits forever for the head and the body of a request, and for the rest of a body that was
answered already, and has no limit on the size of a head. Here each has one.
"""

import asyncio
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bridle.server.middleware import Limits, with_security_headers
from bridle.server.problems import Problem, problem, problem_messages
from bridle.server.sse import ABORT


class Connection(HttpToolsProtocol):
    """One client's connection, within limits."""

    def __init__(self, limits: Limits, **rest: Any) -> None:
        super().__init__(**rest)
        self._limits = limits
        self._in_head = True
        self._head = 0  # bytes of a head that is not whole
        self._fields = 0  # ... and of its fields
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """There is a client: it has so long for its first request."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refuse(problem("unavailable", "Too many connections are open.", "Try later."))
        else:
            self._wait(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head > self._limits.head_bytes:
            self._too_large()
        elif self._clock is None and self._idle() and self.timeout_keep_alive_task is None:
            self._wait(self._limits.head_seconds)  # it says something, but begins no request

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head, self._fields = True, 0
        self._wait(self._limits.head_seconds)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. Space after its value is no part of it, but httptools leaves it there."""
        self._fields += len(name) + len(value)
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Its head is whole; the application is started, and its body has so long."""
        self._in_head, self._head = False, 0
        if self._fields + len(self.url) > self._limits.head_bytes:
            self._too_large()
            return
        super().on_headers_complete()
        cast("dict[str, Any]", self.scope)[ABORT] = self.transport.abort
        self._wait(self._limits.body_seconds)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._stop()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self._refuse(problem("invalid_request", "That is no HTTP request.", "Speak HTTP/1.1."))

    def _unsupported_upgrade_warning(self) -> None:
        """It is answered as if it had asked for no upgrade; that is worth no line in the log."""

    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._clock = self.loop.call_later(seconds, self._late)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        """It takes too long. An answer that is under way is cut off; else this is the answer."""
        self._clock = None
        begun = not self._idle() and (self._in_head or self.cycle.response_started)
        if begun or self.transport.is_closing():
            self.transport.abort()
            return
        self._refuse(problem("too_slow", "The request did not come in time.", "Send it in one go."))

    def _too_large(self) -> None:
        large = f"The head of the request has more than {self._limits.head_bytes:,} bytes."
        self._refuse(problem("too_large", large, "Send fewer and shorter headers.", status=431))

    def _refuse(self, found: Problem) -> None:
        self._stop()
        start, body = problem_messages(found, ((b"connection", b"close"),))
        lines = [b"HTTP/1.1 %d %b" % (found.status, HTTPStatus(found.status).phrase.encode())]
        lines += [name + b": " + value for name, value in with_security_headers(start["headers"])]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()
