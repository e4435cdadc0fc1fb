"""Streams as answers of the chat's routes, by the server's own `Flow`."""

from collections.abc import AsyncGenerator

from starlette.requests import Request

from bridle.server.auth import stay_of
from bridle.server.chat.context import ChatRoom
from bridle.server.sse import EVENTS, Flow

_STREAM = "text/event-stream"


def wants_stream(accept: str) -> bool:
    """Does the client ask for a stream rather than for one value?"""
    return any(one.partition(";")[0].strip().lower() == _STREAM for one in accept.split(","))


async def events(pieces: AsyncGenerator[bytes, None], context: ChatRoom, request: Request) -> Flow:
    """The pieces on their way, as long as the token is good. Raise what the first of them does."""
    return await Flow.begun(pieces, EVENTS, context.limits.stalled_seconds, stay_of(request))
