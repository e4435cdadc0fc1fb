"""Takes secrets out of events before they are numbered, hashed, logged, broadcast or sent back.

Three kinds: known keys, which are handed in; tokens that look like those of well-known services
(`secret_patterns.py`); and what the person's own patterns match. Base64 data, and what a vendor
needs back word for word, are searched for known keys only: anything else would break them. A secret
that arrives in pieces is found, too: the end of a piece waits as long as it may be the beginning of
a secret, or until what it belongs to is over. Pure; knows neither log nor session.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from traceback import format_exception
from typing import Any, Literal, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from bridle import events, messages
from bridle.engine.secret_patterns import (
    BEGINNINGS,
    BY_START,
    LONGEST,
    Shape,
    anchor,
    look,
    screen_of,
)
from bridle.errors import AgentError
from bridle.events import (
    Event,
    Recorded,
    ResponseCompleted,
    StateTrace,
    Streamed,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import File, Image, Thinking, sound
from bridle.protocols.codec import encode_data

MARK = "[redacted]"
SHORTEST = 12  # characters: what is shorter may be a word that anybody writes
MOST = 16_384  # characters that wait; what is longer and begins like a secret counts as one
RUN = 512  # characters without a space that wait for a pattern of the person's own
_BRIEF = 8  # characters: no token is shorter
_LARGE = 65_536  # bytes of an event that is rather looked at value by value: it may hold a picture
_TOKEN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_NEAR = max(map(len, BY_START))  # characters in which the beginning of a literal can lie
_PLAIN = frozenset({TextDelta, ThinkingDelta})
_PIECES = _PLAIN | {ToolCallArgsDelta, ToolOutputDelta}
_ENDING = frozenset(
    {ToolCallStarted, ToolCallReady, ToolResultEvent, ResponseCompleted, TurnEnded}
)  # with these, something that came in pieces is over
_ENDS = " \t\r\n\"'\\"  # what no token holds

Span = tuple[int, int]
Record = Callable[[Event, bytes | None], object]
_Literal = tuple[str, int, tuple[Shape, ...]]  # itself, the place of its anchor, its rows


class Redactor:
    """Finds secrets in any value: known ones, tokens by their shapes, what the patterns say."""

    __slots__ = (
        "_anchors",
        "_ends",
        "_in_bytes",
        "_in_text",
        "_known",
        "_newest",
        "_patterns",
        "_shapes",
        "_spellings",
    )

    def __init__(
        self, secrets: Iterable[str] = (), patterns: Iterable[str] = (), *, shapes: bool = True
    ) -> None:
        found = {spelling for secret in secrets for spelling in _spellings(secret)}
        self._spellings = sorted(found, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, self._spellings)) or "(?!)")
        self._ends = _beginnings(self._spellings)
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._shapes = shapes
        self._newest: tuple[Event, bytes | None] | None = None  # found clean, and not yet said
        rows: dict[str, tuple[Shape, ...]] = dict.fromkeys(self._spellings, ())
        rows |= BY_START if shapes else {}
        self._anchors = _anchored(rows)
        self._in_text = re.compile(screen_of(rows))
        written = [_written(one).encode().decode("latin-1") for one in rows]
        self._in_bytes = re.compile(screen_of(written).encode("latin-1"))

    def __bool__(self) -> bool:
        return bool(self._spellings or self._shapes or self._patterns)

    def event(self, event: Event) -> Event:
        """The event without secrets: the same one where it holds none."""
        found = self.encoded(event)
        if found[1] is not None:
            self._newest = found  # whoever asks for it says it next
        return found[0]

    def encoded(self, event: Event) -> tuple[Event, bytes | None]:
        """The event without secrets, and as it is written where that is known already."""
        if (newest := self._newest) is not None and newest[0] is event:
            self._newest = None
            return newest
        try:
            data = encode_data(event)
        except UnicodeEncodeError:  # half a surrogate pair: it has no bytes
            return self._walk(event, self.text), None
        if len(data) < _LARGE and not self._patterns and self._in_bytes.search(data) is None:
            return event, data
        cleaned = self._walk(event, self.text)
        return cleaned, data if cleaned is event else None

    def value(self, value: Any) -> Any:
        """Any value without secrets, down to the last string; the same one where it holds none."""
        if isinstance(value, Streamed | Recorded):
            return self.event(value)
        return self._walk(value, self.text)

    def text(self, text: str) -> str:
        """Text without secrets."""
        if len(text) < _BRIEF or not (self._patterns or self._in_text.search(text)):
            return text
        return rendered(text, 0, len(text), self.find(text)[0])

    def error(self, error: AgentError | None) -> None:
        """Take the secrets out of what an error says."""
        if error is not None:
            error.message, error.hint = self.text(error.message), self.text(error.hint)
            error.args = (error.message,)
            for link in ("cause", "__cause__", "__context__"):
                cause = getattr(error, link)
                if cause is not None and self._shows(cause):
                    said = self.text(f"{type(cause).__name__}: {cause}")
                    setattr(error, link, AgentError("agent", said))

    def _shows(self, cause: BaseException) -> bool:
        """Would a traceback of it, or of what it came from in turn, show a secret?"""
        said = "".join([*format_exception(cause, limit=0), repr(cause)])
        return self.text(said) != said

    def suspects(self, text: str) -> bool:
        """Is there anything that has to be looked at closely?"""
        return bool(self._patterns) or self._in_text.search(text) is not None

    def find(self, text: str) -> tuple[list[Span], int]:
        """Where secrets lie, in order and apart; and from where on one may still be growing."""
        spans = [found.span() for found in self._known.finditer(text)] if self._holds(text) else []
        growing = len(text)
        reached: dict[str, int] = {}  # how far each row was tried: nothing is read over and over
        for hit in self._in_text.finditer(text):
            for literal, place, shapes in self._anchors[hit.group()]:
                start = hit.start() - place
                if start < 0 or not text.startswith(literal, start):
                    continue
                for shape in shapes:
                    if start >= reached.get(shape.name, 0):
                        span, grows, reached[shape.name] = look(shape, text, start, literal)
                        spans += [span] if span else []
                        growing = min(growing, grows) if grows >= 0 else growing
        for pattern in self._patterns:
            spans += [found.span() for found in pattern.finditer(text) if found.group()]
        return _apart(spans), growing

    def tail(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret."""
        if not text:
            return 0
        longest = self._begun(text) if self._shapes else 0
        ends = self._ends.get(text[-1], ())
        if text.endswith(ends):
            longest = max(longest, *(len(one) for one in ends if text.endswith(one)))
        if self._patterns:
            end = text[-RUN:]
            whole = not end[-1:].isspace() and len(end.split()) > 0
            longest = max(longest, len(end.rsplit(None, 1)[-1]) if whole else 0)
        return longest

    def _begun(self, text: str) -> int:
        """The last word, where it is the beginning of a token's literal."""
        if text[-1] not in _TOKEN:
            return 0
        end = text[-_NEAR:]
        word = end[len(end.rstrip(_TOKEN)) :]
        return len(word) if word in BEGINNINGS else 0

    def _walk(self, value: Any, clean: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, Struct):
            return self._walk_struct(value, clean)
        if isinstance(value, dict):
            return self._walk_mapping(value, clean)
        if isinstance(value, list | tuple | set | frozenset):
            cleaned = [self._walk(one, clean) for one in value]
            if all(map(_same, cleaned, value)):
                return value
            return tuple(cleaned) if isinstance(value, tuple) else cleaned
        if value is None or isinstance(value, bool | int | float):
            return value
        plain = as_written(value)
        found = self._walk(plain, clean)
        return value if found is plain or found == plain else found

    def _walk_struct(self, value: Struct, clean: Callable[[str], str]) -> Struct:
        kept = kept_fields(type(value))
        changed = {}
        for name in value.__struct_fields__:
            one = getattr(value, name)
            found = self._walk(one, self._without_known if name in kept else clean)
            if isinstance(value, StateTrace) and found is not one:
                found = with_letter(value, found)
            if found is not one:
                changed[name] = found
        return replace(value, **changed) if changed else value

    def _walk_mapping(self, value: dict[Any, Any], clean: Callable[[str], str]) -> dict[Any, Any]:
        cleaned = {self._walk(key, clean): self._walk(one, clean) for key, one in value.items()}
        same = all(map(_same, cleaned, value)) and all(map(_same, cleaned.values(), value.values()))
        return value if same and len(cleaned) == len(value) else cleaned

    def _without_known(self, text: str) -> str:
        return self._known.sub(MARK, text) if self._holds(text) else text

    def _holds(self, text: str) -> bool:
        return any(secret in text for secret in self._spellings)


class _Stream:
    """One text that comes in pieces: its end that was said, its end that waits."""

    __slots__ = ("before", "held", "within")

    def __init__(self) -> None:
        self.before = ""
        self.held = ""
        self.within = False  # the rest of an endless secret is still coming


class Redaction:
    """Hands events on to `record`, with their bytes where they are known."""

    __slots__ = ("_record", "_redactor", "_streams")

    def __init__(self, redactor: Redactor, record: Record) -> None:
        self._redactor = redactor
        self._record = record
        self._streams: dict[tuple[type, str], _Stream] = {}

    def take(self, event: Event) -> None:
        """One event."""
        if type(event) in _PIECES:
            self._take_piece(event)
            return
        if self._streams and type(event) in _ENDING:
            self._let_go(event)
        self._record(*self._redactor.encoded(event))

    def _take_piece(self, piece: Any) -> None:
        kind = type(piece)
        key = (kind, "" if kind in _PLAIN else piece.call_id)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
        said = self._next(stream, piece.text)
        if said:
            self._record(piece if said == piece.text else replace(piece, text=said), None)

    def _next(self, stream: _Stream, text: str) -> str:
        """What can be said of a stream, now that this has come."""
        if stream.within:
            text = _rest(text)
            stream.within = not text
        whole = stream.before + stream.held + text
        start = len(stream.before)
        redactor = self._redactor
        if not redactor.suspects(whole):
            cut = max(start, len(whole) - redactor.tail(whole))
            stream.before, stream.held = whole[max(0, cut - _NEAR) : cut], whole[cut:]
            return whole[start:cut]
        spans, cut = redactor.find(whole)
        cut = max(start, min(cut, len(whole) - redactor.tail(whole)))
        for first, last in reversed(spans):
            if first < cut < last:
                cut = max(start, first)
        if len(whole) - cut > MOST:
            cut = len(whole)
            stream.within = bool(spans) and spans[-1][1] == cut
        stream.before, stream.held = whole[max(0, cut - LONGEST) : cut], whole[cut:]
        return rendered(whole, start, cut, spans)

    def _let_go(self, event: Event) -> None:
        """Say the ends that waited: what they belong to is over, or a call stands behind it."""
        over: str | None = None  # all of it
        if isinstance(event, ToolCallReady):
            over = event.call.id
        elif isinstance(event, ToolResultEvent):
            over = event.output.call_id
        elif isinstance(event, ToolCallStarted):
            over = event.call_id
        called = isinstance(event, ToolCallReady | ToolCallStarted)
        for key, stream in list(self._streams.items()):
            kind, call_id = key
            if over is None or call_id == over or (called and kind in _PLAIN):
                self._say_held(kind, call_id, stream)
                if over is None or call_id:  # text may go on behind a call, and a secret with it
                    del self._streams[key]

    def _say_held(self, kind: Any, call_id: str, stream: _Stream) -> None:
        if stream.held:
            whole = stream.before + stream.held
            spans = self._redactor.find(whole)[0]
            text = rendered(whole, len(stream.before), len(whole), spans)
            stream.before, stream.held = whole[-LONGEST:], ""
            self._record(kind(*((call_id, text) if call_id else (text,))), None)


def rendered(text: str, start: int, end: int, spans: Iterable[Span]) -> str:
    """That part of a text, with the mark for each secret that reaches into it."""
    said: list[str] = []
    for first, last in spans:
        if last > start and first < end:
            said += [text[start : max(start, first)], MARK]
            start = last
    return "".join([*said, text[start:end]])


def holds_mark(arguments: dict[str, Any]) -> bool:
    """Was something taken out of these arguments, or copied from where it was taken out?"""
    return MARK in repr(arguments)


def _same(one: object, other: object) -> bool:
    return one is other


def _apart(spans: list[Span]) -> list[Span]:
    """In order; those that overlap as one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first < found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _anchored(rows: dict[str, tuple[Shape, ...]]) -> dict[str, list[_Literal]]:
    found: dict[str, list[_Literal]] = {}
    for literal, shapes in rows.items():
        place = anchor(literal)
        found.setdefault(literal[place], []).append((literal, place, shapes))
    return found


def _beginnings(secrets: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Every beginning of a secret, by its last character."""
    found: dict[str, tuple[str, ...]] = {}
    for secret in secrets:
        for end in range(1, len(secret)):
            found[secret[end - 1]] = (*found.get(secret[end - 1], ()), secret[:end])
    return found


def _spellings(secret: str) -> set[str]:
    """As it is, and as it stands within JSON. What has no UTF-8 can be nobody's key."""
    secret = secret.strip()
    if len(secret) < SHORTEST or sound(secret) != secret:
        return set()
    return {secret, _written(secret)}


def _written(text: str) -> str:
    return msgspec.json.encode(text)[1:-1].decode()


def _rest(text: str) -> str:
    """What stands behind the end of a secret that began long before."""
    for place, one in enumerate(text):
        if one in _ENDS:
            return text[place:]
    return ""


_VERBATIM: dict[type, frozenset[str]] = {
    Image: frozenset({"data"}),
    File: frozenset({"data"}),
    Thinking: frozenset({"meta"}),
}
_NAMES = frozenset(  # ids, hashes and times: what binds one record to another is nobody's secret
    [
        "id",
        "call_id",
        "session_id",
        "parent",
        "request_id",
        "shown",
        "letter",
        "letters",
        "previous",
        "hash",
        "arguments_hash",
        "expires",
        "until",
        "since",
        "group",
        "grant",
        "grants",
        "intents",
        "calls",
        "created_at",
        "cwd",
        "workspace",
        "mode",
        "kind",
    ]
)


@lru_cache(maxsize=256)
def kept_fields(kind: type[Struct]) -> frozenset[str]:
    """The fields of a value that only known keys are taken out of: any other change breaks it."""
    kept = _VERBATIM.get(kind, frozenset())
    if not kind.__module__.startswith((events.__name__, messages.__name__)):
        return kept
    chosen = {one.name for one in fields(kind) if get_origin(one.type) is Literal}
    return kept | chosen | (_NAMES & set(kind.__struct_fields__))


def with_letter(trace: StateTrace, cleaned: Any) -> Any:
    """Return a trace's cleaned detail with the id of the inbox message that it says is handled."""
    letter = trace.text("letter")
    return {**cleaned, "letter": letter} if letter else cleaned


def as_written(value: object) -> Any:
    """Anything else as it is written down: by its fields, where it has some that are."""
    if isinstance(value, bytes | bytearray | memoryview):
        return str(bytes(value))  # what is written is base64, in which nobody sees a key
    try:
        return msgspec.to_builtins(value, enc_hook=str, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return str(value)
