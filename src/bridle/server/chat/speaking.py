"""A reply as a stream: accepted, then its text in pieces, then the whole of it. Bytes, no HTTP.

A reply is checked as a whole before any of it may be shown (the guard of the chat repairs what a
model says), so that its pieces come once it is there; until then the stream says that it lives.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from bridle.chat.values import Reply
from bridle.server.chat.problems import of
from bridle.server.chat.schemas import ChatAnswer, Nothing, Piece
from bridle.server.sse import KEEP_ALIVE, told

_QUIET = 10.0  # seconds
_WORD = re.compile(r"\S+\s*|\s+")
_WORDS = 4  # of a piece
Ask = Callable[[Callable[[str], None]], Coroutine[Any, Any, Reply]]


async def spoken(ask: Ask) -> AsyncGenerator[bytes, None]:
    """Ask, and tell how it goes. What is refused before it is accepted is raised."""
    accepted = asyncio.Event()
    asking = asyncio.create_task(ask(lambda _: accepted.set()))
    waiting = asyncio.create_task(accepted.wait())
    try:
        await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not accepted.is_set():
            await asking
        yield told("accepted", Nothing())
        while not asking.done():
            done, _ = await asyncio.wait({asking}, timeout=_QUIET)
            if not done:
                yield KEEP_ALIVE
        for piece in _outcome(asking):
            yield piece
    finally:
        for one in (asking, waiting):
            one.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await asyncio.gather(asking, waiting, return_exceptions=True)


def _outcome(asking: "asyncio.Task[Reply]") -> list[bytes]:
    try:
        reply = asking.result()
    except Exception as error:  # the edge: the stream has begun, so that it is said in it
        return [told("error", of(error))]
    pieces = [told("text", Piece(one)) for one in in_pieces(reply.response)]
    return [*pieces, told("done", ChatAnswer(reply.response, reply.conversation_id))]


def in_pieces(text: str) -> list[str]:
    """A text in parts of a few words, nothing left out."""
    words = _WORD.findall(text)
    return ["".join(words[at : at + _WORDS]) for at in range(0, len(words), _WORDS)]
