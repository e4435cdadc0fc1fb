"""The shapes of ASGI, and the little that every layer does with them."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from bridle.server.problems import Problem, answer

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
Pairs = Iterable[tuple[bytes, bytes]]


def values(headers: Pairs, name: bytes) -> list[bytes]:
    """All values that a header has."""
    return [value for key, value in headers if key.lower() == name]


def only(headers: Pairs, name: bytes) -> bytes | None:
    """The value of a header that is there exactly once, or None."""
    found = values(headers, name)
    return found[0] if len(found) == 1 else None


async def say(send: Send, problem: Problem, headers: Pairs = ()) -> None:
    """Answer with a problem."""
    start, body = answer(problem, headers)
    await send(start)
    await send({"type": "http.response.body", "body": body})
