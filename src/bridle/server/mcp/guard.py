"""Who gets in over HTTP: this machine's own programs, by the right name, with the token.

An ASGI wrapper around the whole application. A page in a browser cannot pass: it would come with
its own Origin, or by another Host, and it does not know the token.
"""

from collections.abc import Callable

from bridle.server.asgi import App
from bridle.server.caller import OWNER, Caller
from bridle.server.guard import Guard, Names, same
from bridle.server.limits import Limits, WholeBody


def guarded(app: App, port: int, token: str) -> Guard:
    """The application, for those who know the token; no path is free."""
    whole = WholeBody(app, Limits().chat_bytes)
    return Guard(whole, Names(port), _One(token), lambda path: False)


class _One:
    """One token, and no signing in."""

    def __init__(self, token: str) -> None:
        self._token = token

    def caller(self, token: str) -> Caller | None:
        """Its owner."""
        return Caller(OWNER, "admin") if same(token, self._token) else None

    def signed_in(self, cookie: str, key: str) -> Caller | None:
        """Nobody."""
        return None

    def leavers(self, cookie: str) -> set[Callable[[], object]]:
        """Nobody leaves."""
        return set()
