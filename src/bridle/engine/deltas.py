"""Joins what streams in small pieces, so that a thousand deltas are a few records.

The first piece is passed on at once, then at most one record every 30 ms. Order is kept: anything
that is not a piece waits behind the pieces before it.
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

    def __init__(self, record: Callable[[Event], object]) -> None:
        self._record = record
        self._first: Piece | None = None
        self._kind: type | None = None
        self._call = ""
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, event: Event) -> None:
        """One event, piece or not."""
        kind = type(event)
        if kind not in _PIECES:
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
        self._record(_joined(first, "".join(texts)))

    def close(self) -> None:
        """Hand on what is held, and stop the clock."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, event: Piece) -> None:
        self.flush()
        if self._timer is None:
            self._record(event)
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._tick)
        else:
            self._first, self._kind = event, type(event)
            self._call = getattr(event, "call_id", "")
            self._texts.append(event.text)

    def _tick(self) -> None:
        self._timer = None
        if self._first is not None:
            self.flush()
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._tick)


def _joined(first: Piece, text: str) -> Piece:
    match first:
        case ToolCallArgsDelta(call_id=call_id):
            return ToolCallArgsDelta(call_id, text)
        case ToolOutputDelta(call_id=call_id):
            return ToolOutputDelta(call_id, text)
        case _:
            return type(first)(text)
