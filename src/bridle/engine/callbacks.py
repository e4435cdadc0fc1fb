"""Callbacks, for those who want no stream: a turn's records are followed, and somebody is called.

A callback is a plain function or a coroutine function. One that raises ends neither the turn nor
the others: it is logged. Nothing else is known here than what the records say.
"""

import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from bridle.errors import AgentError, BudgetReached
from bridle.events import (
    MessageAdded,
    ReplyDiscarded,
    TextDelta,
    ToolCallReady,
    ToolResultEvent,
    TurnEnded,
    TurnParked,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.promises.session import TurnResult
from bridle.promises.store import Record

log = logging.getLogger(__name__)


class StreamCallbacks(Struct, frozen=True):
    """Who is called: for each piece of text, each call, each result; then for the end, once.

    `on_reply_discarded`: a reply broke off; what has arrived since the last result is discarded,
    and the model is asked again.

    The end is `on_complete`, or `on_error` for a turn that ended in any other way. What they give
    back is awaited where that can be done, and is of no consequence.
    """

    on_text_delta: Callable[[str], Any] | None = None
    on_tool_call: Callable[[ToolCall], Any] | None = None
    on_tool_result: Callable[[ToolOutput], Any] | None = None
    on_complete: Callable[[], Any] | None = None
    on_error: Callable[[AgentError], Any] | None = None
    on_reply_discarded: Callable[[], Any] | None = None

    async def stream(self, event: Any) -> None:
        """Something was said while the turn ran."""
        kind = type(event)
        if kind is TextDelta:
            await _call(self.on_text_delta, event.text)
        elif kind is ToolCallReady:
            await _call(self.on_tool_call, event.call)
        elif kind is ToolResultEvent:
            await _call(self.on_tool_result, event.output)
        elif kind is ReplyDiscarded:
            await _call(self.on_reply_discarded)

    async def end(self, result: TurnResult) -> AgentError | None:
        """The turn is over: the error, where there is one. A parked turn is not over."""
        if result.reason == "parked":
            return None
        if result.reason == "done":
            await _call(self.on_complete)
            return None
        error = to_error(result)
        await _call(self.on_error, error)
        return error

    async def fail(self, error: AgentError) -> None:
        """There was no turn."""
        await _call(self.on_error, error)


async def play(
    turn: int, records: AsyncGenerator[Record, None], callbacks: StreamCallbacks
) -> None:
    """Call back for what the records say of this turn, until it ends or is parked."""
    begun = False
    async with aclosing(records):
        async for record in records:
            event = record.event
            begun = begun or (isinstance(event, MessageAdded) and event.turn == turn)
            if begun:
                await callbacks.stream(event)
            if isinstance(event, TurnEnded | TurnParked) and event.turn == turn:
                return


def to_error(result: TurnResult) -> AgentError:
    """Why a turn did not come to its end, as an error also where a limit or a person ended it."""
    if result.error is not None:
        return result.error
    words = result.detail or f"the turn ended: {result.reason}"
    return BudgetReached(words) if result.reason == "budget" else AgentError("agent", words)


async def _call(callback: Callable[..., Any] | None, *values: Any) -> None:
    if callback is None:
        return
    try:
        said = callback(*values)
        if inspect.isawaitable(said):
            await said
    except Exception:  # it is somebody else's code, and the turn is not theirs to end
        log.warning("the callback %r broke", callback, exc_info=True)
