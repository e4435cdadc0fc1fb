"""Who gets in over HTTP: this machine's own programs, by the right name, with the token.

An ASGI wrapper around the whole application. A page in a browser cannot pass: it would come with
its own Origin, or by another Host, and it does not know the token.
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")


class Guard:
    """Refuses what comes under a wrong Host (421), a wrong Origin (403), no or a wrong token."""

    def __init__(self, app: App, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in NAMES}
        self._origins = {b"http://" + host for host in self._hosts}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "http":
            refusal = self._refusal(scope["headers"])
            if refusal is not None:
                await _refuse(send, *refusal)
                return
        elif scope["type"] != "lifespan":
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        found = list(headers)
        if _values(found, b"host") not in [[host] for host in self._hosts]:
            return 421, "this server answers under its own name alone"
        if any(origin not in self._origins for origin in _values(found, b"origin")):
            return 403, "pages from elsewhere have no business here"
        if not self._knows(_values(found, b"authorization")):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`"
        return None

    def _knows(self, given: list[bytes]) -> bool:
        if len(given) != 1:
            return False
        kind, _, token = given[0].partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]


async def _refuse(send: Send, status: int, words: str) -> None:
    body = words.encode() + b"\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
