"""Streams as answers of the chat's routes, by the server's own `Flow`."""

from collections.abc import AsyncGenerator
from typing import Any

from litestar import Request, Response
from litestar.types import ASGIApp

from bridle.server.chatting.room import ChatRoom
from bridle.server.flowing import EVENTS, Flow
from bridle.server.guard import STAY

_STREAM = "text/event-stream"


def wants_stream(accept: str) -> bool:
    """Does the client ask for a stream rather than for one value?"""
    return any(one.partition(";")[0].strip().lower() == _STREAM for one in accept.split(","))


async def events(
    pieces: AsyncGenerator[bytes, None], room: ChatRoom, request: Request[Any, Any, Any]
) -> Flow:
    """The pieces on their way, as long as the token is good. Raise what the first of them does."""
    stay = request.scope[STAY]  # type: ignore[literal-required] # the guard's own
    return await Flow.begun(pieces, EVENTS, room.limits.stalled_seconds, stay)


class Streaming(Response[Any]):
    """An answer that is a flow, where the same route may also answer with one value."""

    def __init__(self, flow: ASGIApp) -> None:
        super().__init__(None)
        self._flow = flow

    @classmethod
    async def begun(
        cls, pieces: AsyncGenerator[bytes, None], room: ChatRoom, request: Request[Any, Any, Any]
    ) -> "Streaming":
        """One whose first piece has come."""
        return cls(await events(pieces, room, request))

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """The flow itself."""
        return self._flow
