"""Who gets in: by one of our names, from one of our own pages, with a token that names a user.

An ASGI wrapper before anything is routed, as the server's own guard is. A token counts from the
Authorization header alone: there are no cookies, so that no foreign page can use them.
"""

from collections.abc import Callable

from bridle.server.asgi import App, Pairs, Receive, Scope, Send, values
from bridle.server.caller import Caller, Stay
from bridle.server.chatting.bearing import Bearing, Unknown
from bridle.server.chatting.faults import problem
from bridle.server.guard import STAY, Names, bearer, elsewhere, refuse
from bridle.server.problems import Problem

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="bridle chat"'),)
_AGAIN = "Sign in again, or send `Authorization: Bearer TOKEN` with a token of your own."


class ChatGuard:
    """Refuses a wrong Host (421), a wrong Origin (403), and who is not known (401)."""

    def __init__(
        self, app: App, names: Names, bearing: Bearing, free: Callable[[str], bool]
    ) -> None:
        self._app, self._names, self._bearing, self._free = app, names, bearing, free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            refusal = elsewhere(self._names, scope) or self._unknown(scope)
            if refusal is not None:
                await refuse(scope, send, refusal, _CHALLENGE if refusal.status == 401 else ())
                return
        await self._app(scope, receive, send)

    def _unknown(self, scope: Scope) -> Problem | None:
        """Put into the scope who asks; a problem where that is not known and has to be."""
        if self._free(scope["path"]):
            return None
        return self._named(scope, scope["headers"])

    def _named(self, scope: Scope, headers: Pairs) -> Problem | None:
        token = bearer(headers)
        try:
            user = self._bearing.user(token)
        except Unknown as error:
            if error.expired:
                return problem("no_token", "Your sign-in has expired.", _AGAIN)
            wrong = bool(values(headers, b"authorization"))
            said = "That token is not valid here." if wrong else "Who is asking? There is no token."
            return problem("no_token", said, _AGAIN)
        scope["user"] = Caller(user, "watch")
        scope[STAY] = Stay(lambda: self._is_still(token, user))
        return None

    def _is_still(self, token: str, user: str) -> bool:
        try:
            return self._bearing.user(token) == user
        except Unknown:
            return False
