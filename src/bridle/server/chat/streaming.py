"""Answers of the chat as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from starlette.requests import Request

from bridle.chat.values import Reply
from bridle.server.auth import access_lease
from bridle.server.chat.context import ChatContext
from bridle.server.chat.problems import problem_for
from bridle.server.chat.schemas import ChatAnswer, EmptyEvent, ReplyText
from bridle.server.sse import EVENT_STREAM_HEADERS, KEEP_ALIVE, StreamResponse, event_bytes

_STREAM = "text/event-stream"
_QUIET = 10.0  # seconds


def wants_stream(accept: str) -> bool:
    """Does the client ask for a stream rather than for one value?"""
    return any(one.partition(";")[0].strip().lower() == _STREAM for one in accept.split(","))


async def events(
    pieces: AsyncGenerator[bytes, None], context: ChatContext, request: Request
) -> StreamResponse:
    """Send the pieces as long as the token is valid. Raise what the first of them raises."""
    return await StreamResponse.start(
        pieces, EVENT_STREAM_HEADERS, context.limits.stalled_seconds, access_lease(request)
    )


class ReplyFunction(Protocol):
    """Answers a message, and reports when it is accepted and what of the reply can be shown."""

    def __call__(
        self, *, on_accepted: Callable[[], None], on_text: Callable[[str], None]
    ) -> Coroutine[Any, Any, Reply]: ...


async def reply_events(ask: ReplyFunction) -> AsyncGenerator[bytes, None]:
    """Yield a reply as events: `accepted`, `text` as it is written, then `done` or `error`.

    An error before the message is accepted is raised. The texts add up to the response of `done`,
    unless another worker had to answer the message; `done` is always right.
    """
    ready: asyncio.Queue[str | None] = asyncio.Queue()  # None: accepted, and later: it is over
    asking = asyncio.create_task(
        ask(on_accepted=lambda: ready.put_nowait(None), on_text=ready.put_nowait)
    )
    asking.add_done_callback(lambda _: ready.put_nowait(None))
    try:
        await ready.get()
        if asking.done() and ready.empty():
            await asking  # refused
        yield event_bytes("accepted", EmptyEvent())
        sent = ""
        while (text := await _next_text(ready)) is not None:
            sent += text
            yield event_bytes("text", ReplyText(text)) if text else KEEP_ALIVE
        try:
            reply = asking.result()
        except Exception as error:  # the stream has begun, so the error is an event
            yield event_bytes("error", problem_for(error))
            return
        if rest := reply.response.removeprefix(sent):
            yield event_bytes("text", ReplyText(rest))
        yield event_bytes("done", ChatAnswer(reply.response, reply.conversation_id))
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await asking


async def _next_text(ready: "asyncio.Queue[str | None]") -> str | None:
    """Return the next text; empty if it is quiet for a while; None at the end."""
    try:
        async with asyncio.timeout(_QUIET):
            return await ready.get()
    except TimeoutError:
        return ""
