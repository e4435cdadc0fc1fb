"""Joins what streams in small pieces, so that a thousand deltas are a few records.

The first pieces are passed on with the next round of the event loop (what came in one go is one
record), then at most one record every 30 ms. Order is kept: anything that is not a piece waits
behind the pieces before it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from bridle.events import (
    Event,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolOutputDelta,
)

_PAUSE = 0.03
Piece = TextDelta | ThinkingDelta | ToolCallArgsDelta | ToolOutputDelta
_PLAIN = frozenset({TextDelta, ThinkingDelta})
_PIECES = _PLAIN | {ToolCallArgsDelta, ToolOutputDelta}


class Deltas:
    """Stands before `record` and hands on fewer, larger pieces."""

    __slots__ = ("_call", "_clock", "_first", "_kind", "_newest", "_record", "_texts")

    def __init__(self, record: Callable[[Event], object]) -> None:
        self._record = record
        self._first: Piece | None = None
        self._kind: type | None = None
        self._call = ""
        self._texts: list[str] = []
        self._clock: asyncio.Handle | None = None
        self._newest = 0.0  # when a piece was last handed on

    def add(self, event: Event) -> None:
        """One event, piece or not."""
        kind = type(event)
        if kind not in _PIECES:
            if self._first is not None:
                self.flush()
            self._record(event)
            return
        piece: Any = event
        if self._kind is kind and (kind in _PLAIN or self._call == piece.call_id):
            self._texts.append(piece.text)
        else:
            self._begin(piece)

    def flush(self) -> None:
        """Hand on what is held."""
        first = self._first
        if first is None:
            return
        self._first = self._kind = None
        texts, self._texts = self._texts, []
        if len(texts) > 1:
            kind: Any = type(first)
            text = "".join(texts)
            first = kind(text) if kind in _PLAIN else kind(self._call, text)
        self._record(first)

    def close(self) -> None:
        """Hand on what is held, and stop the clock."""
        self.flush()
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _begin(self, event: Piece) -> None:
        self.flush()
        self._first, self._kind = event, type(event)
        self._call = getattr(event, "call_id", "")
        self._texts.append(event.text)
        if self._clock is None:
            loop = asyncio.get_running_loop()
            wait = self._newest + _PAUSE - loop.time()
            self._clock = (
                loop.call_later(wait, self._tick) if wait > 0 else loop.call_soon(self._tick)
            )

    def _tick(self) -> None:
        self._clock = None
        if self._first is not None:
            self._newest = asyncio.get_running_loop().time()
            self.flush()
