"""Known secrets, taken out of what is said before it is numbered, hashed, told or read again.

Pure: the secrets are handed in, and an event goes in and out. A secret that comes in pieces is
found, too: the end of a piece waits as long as it may be the beginning of one. Where there is no
secret, nothing of this stands in the way of an event.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.errors import AgentError
from bridle.events import (
    Event,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolOutputDelta,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import sound
from bridle.promises.codec import encode_data

MARK = "[redacted]"
SHORTEST = 12  # characters: what is shorter may be a word that anybody writes
_PIECES = frozenset({TextDelta, ThinkingDelta, ToolCallArgsDelta, ToolOutputDelta})


class Redactor:
    """Finds the secrets that it was made with, in any value."""

    __slots__ = ("_in_bytes", "_in_text", "_spellings")

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {spelling for secret in secrets for spelling in _spellings(secret)}
        self._spellings = sorted(found, key=len, reverse=True)
        self._in_text = re.compile("|".join(map(re.escape, self._spellings)) or "(?!)")
        written = [re.escape(_written(one).encode()) for one in self._spellings]
        self._in_bytes = re.compile(b"|".join(written) or b"(?!)")

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def event(self, event: Event) -> Event:
        """The event without secrets: the same one where it holds none."""
        try:
            if self._in_bytes.search(encode_data(event)) is None:
                return event
        except UnicodeEncodeError:
            pass  # half a surrogate pair: it has no bytes, so it is looked at value by value
        cleaned: Event = self.value(event)
        return cleaned

    def value(self, value: Any) -> Any:
        """Any value without secrets, down to the last string."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            return replace(value, **{name: self.value(one) for name, one in fields.items()})
        if isinstance(value, dict):
            return {self.value(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            cleaned = [self.value(one) for one in value]
            return tuple(cleaned) if isinstance(value, tuple) else cleaned
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(spelled) if self._in_text.search(spelled := str(value)) else value

    def text(self, text: str) -> str:
        """Text without secrets."""
        return self._in_text.sub(MARK, text)

    def error(self, error: AgentError | None) -> None:
        """Take the secrets out of what an error says."""
        if error is not None and self._in_text.search(f"{error.message}\n{error.hint}"):
            error.message, error.hint = self.text(error.message), self.text(error.hint)
            error.args = (error.message,)

    def tail(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret."""
        longest = 0
        for secret in self._spellings:
            start = max(0, len(text) - len(secret) + 1)
            while (start := text.find(secret[0], start)) >= 0:
                if secret.startswith(text[start:]):
                    longest = max(longest, len(text) - start)
                    break
                start += 1
        return longest


class Redaction:
    """Stands before `record`: every event goes on without secrets, and no piece ends within one."""

    __slots__ = ("_held", "_record", "_redactor")

    def __init__(self, redactor: Redactor, record: Callable[[Event], object]) -> None:
        self._redactor = redactor
        self._record = record
        self._held: dict[tuple[type, str], str] = {}

    def take(self, event: Event) -> None:
        """One event."""
        kind = type(event)
        if kind in _PIECES:
            self._take_piece(event)
            return
        if self._held:
            self._let_go(event)
        self._record(self._redactor.event(event))

    def _take_piece(self, piece: Any) -> None:
        key = (type(piece), getattr(piece, "call_id", ""))
        text = self._redactor.text(self._held.pop(key, "") + piece.text)
        if tail := self._redactor.tail(text):
            self._held[key] = text[-tail:]
            text = text[:-tail]
        if text:
            self._record(piece if text == piece.text else replace(piece, text=text))

    def _let_go(self, event: Event) -> None:
        """Say the ends that turned out to be harmless: what they belong to is over."""
        over: str | None = None
        if isinstance(event, ToolCallReady):
            over = event.call.id
        elif isinstance(event, ToolResultEvent):
            over = event.output.call_id
        elif not isinstance(event, ResponseCompleted | TurnEnded):
            return
        for kind, call_id in list(self._held):
            if over is None or call_id == over:
                text = self._held.pop((kind, call_id))
                said = (call_id, text) if call_id else (text,)
                self._record(kind(*said))


def holds_mark(arguments: dict[str, Any]) -> bool:
    """Was something taken out of these arguments, or copied from where it was taken out?"""
    return MARK in repr(arguments)


def _spellings(secret: str) -> set[str]:
    """As it is, and as it stands within JSON. What has no UTF-8 can be nobody's key."""
    secret = secret.strip()
    if len(secret) < SHORTEST or sound(secret) != secret:
        return set()
    return {secret, _written(secret)}


def _written(text: str) -> str:
    return msgspec.json.encode(text)[1:-1].decode()
