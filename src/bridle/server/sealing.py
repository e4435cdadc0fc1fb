"""What every answer says to a browser: run nothing that is not ours, show it in no frame, keep
nothing that may be secret. An ASGI wrapper; knows no routes.
"""

from collections.abc import Callable

from bridle.server.asgi import App, Message, Receive, Scope, Send, say
from bridle.server.problems import broken

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    )
)

SEALS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_NO_STORE = (b"cache-control", b"no-store")


class Sealed:
    """Puts the seals on every answer; what says nothing about caching is not to be kept.

    `count` is told the status of each.
    """

    def __init__(self, app: App, count: Callable[[int], None] = lambda status: None) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and seal what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        begun = False

        async def sealing(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._count(message["status"])
                message = {**message, "headers": sealed(message.get("headers", ()))}
            await send(message)

        try:
            await self._app(scope, receive, sealing)
        except Exception as error:  # whatever breaks, a client gets an answer and no traceback
            if begun:
                raise
            await say(sealing, broken(error))


def sealed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """These headers, with the seals."""
    rests = () if any(name.lower() == b"cache-control" for name, _ in headers) else (_NO_STORE,)
    return [*headers, *rests, *SEALS]
