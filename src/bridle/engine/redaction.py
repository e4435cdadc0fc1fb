r"""Takes secrets out of events before they are numbered, hashed, logged, broadcast or sent back.

There are three kinds of secrets: known keys, which are passed in; tokens that look like those of
well-known services (`SHAPES`); and whatever the user's own patterns match. Base64 data, and what a
vendor needs back word for word, are searched for known keys only: any other change would break
them. A secret that arrives in pieces is found, too: the end of a piece waits as long as it may be
the beginning of a secret, or until the text that it belongs to is over.

A token's shape is tried only where one of its literals stands, so ordinary text costs one search
(`anchor_pattern`) and no more. The repeats in the patterns are possessive: no text makes them slow.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from math import log2
from traceback import format_exception
from typing import Any, Literal, NamedTuple, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from bridle import events, messages
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
from bridle.messages import File, Image, Thinking, escape_surrogates
from bridle.protocols.codec import encode_data

# What tokens of well-known services look like, and how one shape is tried on a text.

_WORD = "[A-Za-z0-9]"
_DASHED = "[A-Za-z0-9_-]"
_SAYS = r"""\\*+["']?[ \t]{0,3}[=:>][ \t]{0,3}\\*+["']?"""
_VALUE = r"""[^\s"'\\`<>(){}\[\],;|]"""
_HEAD = r"[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = r"(?:\\++[nrt]|\s)++(?:[0-9]{1,6}(?:\\++t|[\t|:]) ?)?"  # and the number of a line
_DEFAULTS = frozenset({"", "password", "passwd", "pass", "secret", "changeme", "example"})


def _accept_any(value: str) -> bool:
    return True


def _has_digit_and_letter(value: str) -> bool:
    """Return whether it has a digit and a letter: a random value has, joined words have not."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _looks_random(value: str) -> bool:
    """Return whether it looks random: more than a number, a name or a dotted path of names."""
    if re.fullmatch(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++", value) or value[0] in "$%*":
        return False
    mixes_cases = not value.islower() and not value.isupper() and len(value) >= 20
    varied = _has_digit_and_letter(value) or mixes_cases
    return any(map(str.isalpha, value)) and varied and entropy(value) >= 2.75


def _looks_chosen(value: str) -> bool:
    """Return whether it is a password that somebody chose, not a variable or the word itself."""
    return value.lower() not in _DEFAULTS and value[0] not in "$%*{<[" and len(set(value)) > 1


def entropy(value: str) -> float:
    """Return the bits per character, by how often each character occurs."""
    total = len(value)
    shares = [value.count(character) / total for character in set(value)]
    return -sum(share * log2(share) for share in shares)


class Shape(NamedTuple):
    """One kind of token.

    `body` is matched after one of the `starts`. The secret is its group if it has one, and
    otherwise the whole match with its start. `partial` matches what is there of a secret whose end
    has not arrived. `alone`: no letter or digit may come before it.
    """

    name: str
    starts: tuple[str, ...]
    body: str
    partial: str
    accepts: Callable[[str], bool] = _has_digit_and_letter
    alone: bool = False


def _token(name: str, starts: str, kind: str, least: int, *, alone: bool = False) -> Shape:
    """Return the shape of a start, and at least so many characters of one kind."""
    return Shape(name, tuple(starts.split()), f"{kind}{{{least},}}+", f"{kind}*+", alone=alone)


def _labelled(name: str, starts: tuple[str, ...], value: str, least: int, between: str) -> Shape:
    """Return the shape of a label, something in between, and a value, which alone is the secret."""
    return Shape(
        name,
        starts,
        rf"{between}({value}{{{least},}}+)(?![(\[{{])",
        f"{between}({value}*+)",
        accepts=_looks_random,
    )


SHAPES = (
    Shape("Anthropic", ("sk-",), f"ant-{_DASHED}{{20,}}+", f"{_DASHED}*+", alone=True),
    Shape(
        "OpenAI",
        ("sk-",),
        f"(?:(?:proj|svcacct|admin|None)-{_DASHED}{{20,}}+|{_WORD}{{20,}}+)",
        f"{_DASHED}*+",
        alone=True,
    ),
    Shape("OpenRouter", ("sk-",), f"or-(?:v[0-9]-)?{_WORD}{{32,}}+", f"{_DASHED}*+", alone=True),
    _token("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "[A-Za-z0-9_]", 22),
    Shape(
        "GitLab",
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-"),
        rf"{_DASHED}{{20,}}+(?:\.{_DASHED}++)*+",
        "[A-Za-z0-9_.-]*+",
    ),
    Shape(
        "AWS key id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        f"[A-Z0-9]{{16}}(?!{_WORD})",
        "[A-Z0-9]{0,16}",
        accepts=_accept_any,
    ),
    Shape(
        "AWS secret key",
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"),
        f"{_SAYS}([A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])",
        f"{_SAYS}([A-Za-z0-9/+]{{0,40}})",
    ),
    _token("Google", "AIza", _DASHED, 35),
    _token("Google client", "GOCSPX-", _DASHED, 20),
    _token("Slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", "[A-Za-z0-9-]", 16),
    Shape(
        "Slack hook",
        ("://",),
        r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,}+)",
        r"hooks\.slack\.com/services/([A-Za-z0-9/]*+)",
    ),
    _token("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", _WORD, 16),
    _token("npm", "npm_", _WORD, 36),
    _token("PyPI", "pypi-AgE", _DASHED, 16),
    _token("Hugging Face", "hf_", _WORD, 30, alone=True),
    Shape(
        "JWT",
        ("eyJ",),
        rf"{_DASHED}{{8,}}+\.(?:eyJ{_DASHED}{{8,}}+\.{_DASHED}*+|(?:{_DASHED}*+\.){{3}}{_DASHED}*+)",
        "[A-Za-z0-9_.-]*+",
    ),
    Shape(
        "private key",
        ("-----BEGIN",),
        rf"{_HEAD}(?:(?:[^-]++|-(?!----(?:END|BEGIN)))*+-----END[ A-Z0-9]{{0,40}}-----"
        rf"|(?:{_BREAK}[A-Za-z0-9+/=]{{16,}}+)++(?:{_BREAK}[A-Za-z0-9+/]++={{1,2}}+)?)",
        rf"(?:{_HEAD}(?:[A-Za-z0-9+/=\s\\:,.()@|]++|-(?!----(?:END[ A-Z0-9]{{0,40}}-----|BEGIN)))*+"
        r"|[ A-Z0-9]{0,60}-{0,4})",
        accepts=_accept_any,
    ),
    _labelled("bearer token", ("Bearer ", ": bearer "), "[A-Za-z0-9._~+/=-]", 16, " ?"),
    _labelled(
        "basic login", ("Authorization: Basic ", "authorization: Basic "), "[A-Za-z0-9+/=]", 12, ""
    ),
    Shape(
        "password in a URL",
        ("://",),
        r"""([^\s/@:"'<>\\]{0,64}):(?!\1@)([^\s@"'<>/\\]{1,256}+)@(?=[\w\[.-])""",
        r"""([^\s/@:"'<>\\]{0,64}):([^\s@"'<>/\\]{1,256}+)@?""",
        accepts=_looks_chosen,
    ),
    _labelled(
        "variable",
        ("_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_API_KEY", "_ACCESS_KEY"),
        _VALUE,
        8,
        f"(?:_KEY)?{_SAYS}",
    ),
    Shape(
        "short variable",
        ("TOKEN", "SECRET", "PASSWORD", "API_KEY"),
        rf"(?:_KEY)?{_SAYS}({_VALUE}{{16,}}+)(?![(\[{{])",
        rf"(?:_KEY)?{_SAYS}({_VALUE}*+)",
        accepts=_looks_random,
        alone=True,
    ),
)

SHAPES_BY_START: dict[str, tuple[Shape, ...]] = {
    start: tuple(shape for shape in SHAPES if start in shape.starts)
    for start in dict.fromkeys(start for shape in SHAPES for start in shape.starts)
}
_PARTIAL_STARTS = frozenset(
    start[:end] for start in SHAPES_BY_START for end in range(1, len(start))
)
_START_LENGTH = max(map(len, SHAPES_BY_START))
_LOOKBEHIND = 96  # characters before a secret that its shape may have to see
_RARE = "_-JA:B" + "QZXKVWGYUPFHNLDCMRTSIOE" + "0123456789" + "qzjxkvbpygfwmucldrhsnioate"
_RANK = {character: rank for rank, character in enumerate(_RARE)}
_ESCAPE = re.compile(  # what ends in a letter and is not one: an escape of JSON, a colour
    r"(?:\\[nrtbfv]|\\u[0-9A-Fa-f]{4}|(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[0-9;]{0,8}[mK])\Z"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # when it is first needed: most programs never meet a token


def anchor_index(literal: str) -> int:
    """Return the index of the literal's rarest character, its anchor: the one to search for."""
    ranks = [(_RANK.get(character, len(_RANK)), -index) for index, character in enumerate(literal)]
    return -min(ranks)[1]


def anchor_pattern(literals: Iterable[str]) -> str:
    """Return a pattern that finds the anchor of each literal: one pass over a text for all of them.

    Where a character could be an anchor, its neighbour is compared first: most are in no literal.
    """
    by_anchor: dict[str, list[str]] = {}
    for literal in literals:
        by_anchor.setdefault(literal[anchor_index(literal)], []).append(literal)
    patterns: list[str] = []
    for anchor, group in by_anchor.items():
        leading = [literal for literal in group if not anchor_index(literal)]
        inner = [literal for literal in group if anchor_index(literal)]
        choices = [f"(?={re.escape(literal[1:])})" if literal[1:] else "" for literal in leading]
        if leading and all(choices):
            neighbours = "".join(sorted({re.escape(literal[1]) for literal in leading}))
            choices = [f"(?=[{neighbours}])(?:{'|'.join(choices)})"]
        if inner:
            neighbours = "".join(
                sorted({re.escape(literal[anchor_index(literal) - 1]) for literal in inner})
            )
            sides: list[str] = []
            for literal in inner:
                end = anchor_index(literal) + 1
                ahead = f"(?={re.escape(literal[end:])})" if literal[end:] else ""
                sides.append(f"(?<={re.escape(literal[:end])}){ahead}")
            choices.append(f"(?<=[{neighbours}]{re.escape(anchor)})(?:{'|'.join(sides)})")
        patterns.append(f"{re.escape(anchor)}(?:{'|'.join(choices)})")
    return "|".join(patterns) or "(?!)"


class ShapeMatch(NamedTuple):
    """The secret at a literal, the start of one that may continue (-1: none), the end of both."""

    secret: tuple[int, int] | None
    partial_start: int
    end: int


def match_shape(shape: Shape, text: str, at: int, start: str) -> ShapeMatch:
    """Try a shape where one of its starts stands."""
    if shape.alone:
        before = text[max(0, at - 20) : at]
        if before and before[-1].isalnum() and _ESCAPE.search(before) is None:
            return ShapeMatch(None, -1, 0)
    partial = _compiled(shape.partial).match(text, at + len(start))
    partial_start, end = -1, 0
    if partial is not None:
        end = partial.end()
        if end == len(text):
            partial_start = partial.start(partial.re.groups) if partial.re.groups else at
    whole = _compiled(shape.body).match(text, at + len(start))
    if whole is None:
        return ShapeMatch(None, partial_start, end)
    span = whole.span(whole.re.groups) if whole.re.groups else (at, whole.end())
    return ShapeMatch(span if shape.accepts(text[slice(*span)]) else None, partial_start, end)


# Redact values and streams.

MARK = "[redacted]"
MAX_PENDING = 16_384  # characters that wait; a longer text that begins like a secret is one
_MIN_KEY = 12  # characters: a shorter one may be a word that anybody writes
_MIN_SECRET = 8  # characters: no token is shorter
_MAX_PENDING_WORD = 512  # characters without a space that wait for a pattern of the user's own
_LARGE = 65_536  # bytes of an event that is searched value by value: it may have a picture in it
_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_TOKEN_ENDS = " \t\r\n\"'\\"  # characters that are in no token
_PLAIN = frozenset({TextDelta, ThinkingDelta})
_PIECES = _PLAIN | {ToolCallArgsDelta, ToolOutputDelta}
_ENDING = frozenset(
    {ToolCallStarted, ToolCallReady, ToolResultEvent, ResponseCompleted, TurnEnded}
)  # with these, something that came in pieces is over

Span = tuple[int, int]
Record = Callable[[Event, bytes | None], object]


class _Literal(NamedTuple):
    """A text to search for: a known key, or the start of some shapes."""

    text: str
    anchor_index: int
    shapes: tuple[Shape, ...]


class Redactor:
    """Takes secrets out of any value: known keys, tokens by their shapes, the user's patterns."""

    __slots__ = (
        "_byte_anchors",
        "_is_key",
        "_key_prefixes",
        "_keys",
        "_latest",
        "_literals",
        "_patterns",
        "_shapes",
        "_text_anchors",
    )

    def __init__(
        self, secrets: Iterable[str] = (), patterns: Iterable[str] = (), *, shapes: bool = True
    ) -> None:
        keys = {spelling for secret in secrets for spelling in _spellings(secret)}
        self._keys = sorted(keys, key=len, reverse=True)
        self._is_key = re.compile("|".join(map(re.escape, self._keys)) or "(?!)")
        self._key_prefixes: dict[str, tuple[str, ...]] = {}  # by their last character
        for key in self._keys:
            for end in range(1, len(key)):
                last = key[end - 1]
                self._key_prefixes[last] = (*self._key_prefixes.get(last, ()), key[:end])
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._shapes = shapes
        self._latest: tuple[Event, bytes | None] | None = None  # without secrets, not recorded yet
        literals: dict[str, tuple[Shape, ...]] = dict.fromkeys(self._keys, ())
        literals |= SHAPES_BY_START if shapes else {}
        self._literals: dict[str, list[_Literal]] = {}  # by their anchors
        for text, rows in literals.items():
            index = anchor_index(text)
            self._literals.setdefault(text[index], []).append(_Literal(text, index, rows))
        self._text_anchors = re.compile(anchor_pattern(literals))
        encoded = [_json_text(text).encode().decode("latin-1") for text in literals]
        self._byte_anchors = re.compile(anchor_pattern(encoded).encode("latin-1"))

    def __bool__(self) -> bool:
        return bool(self._keys or self._shapes or self._patterns)

    def event(self, event: Event) -> Event:
        """Return the event without secrets: the same one if it has none."""
        cleaned = self.encoded(event)
        if cleaned[1] is not None:
            self._latest = cleaned  # whoever asks for it records it next
        return cleaned[0]

    def encoded(self, event: Event) -> tuple[Event, bytes | None]:
        """Return the event without secrets, and its encoded form if that is known already."""
        if (latest := self._latest) is not None and latest[0] is event:
            self._latest = None
            return latest
        try:
            data = encode_data(event)
        except UnicodeEncodeError:  # half a surrogate pair: it has no bytes
            return self._walk(event, self.text), None
        if len(data) < _LARGE and not self._patterns and self._byte_anchors.search(data) is None:
            return event, data
        cleaned = self._walk(event, self.text)
        return cleaned, data if cleaned is event else None

    def value(self, value: Any) -> Any:
        """Return a value without secrets, down to the last string: the same one if it has none."""
        if isinstance(value, Streamed | Recorded):
            return self.event(value)
        return self._walk(value, self.text)

    def text(self, text: str) -> str:
        """Return text without secrets."""
        if len(text) < _MIN_SECRET or not (self._patterns or self._text_anchors.search(text)):
            return text
        return replace_spans(text, 0, len(text), self.find(text)[0])

    def error(self, error: AgentError) -> None:
        """Take the secrets out of an error's message, hint and causes."""
        error.message, error.hint = self.text(error.message), self.text(error.hint)
        error.args = (error.message,)
        for link in ("cause", "__cause__", "__context__"):
            cause = getattr(error, link)
            if cause is None:
                continue
            shown = "".join([*format_exception(cause, limit=0), repr(cause)])
            if self.text(shown) != shown:  # a traceback would show a secret
                text = self.text(f"{type(cause).__name__}: {cause}")
                setattr(error, link, AgentError("agent", text))

    def needs_search(self, text: str) -> bool:
        """Return whether anything in the text has to be looked at closely."""
        return bool(self._patterns) or self._text_anchors.search(text) is not None

    def find(self, text: str) -> tuple[list[Span], int]:
        """Return the spans of secrets, in order, and where one starts that may still continue."""
        spans: list[Span] = []
        if self._has_key(text):
            spans = [match.span() for match in self._is_key.finditer(text)]
        partial_start = len(text)
        ends: dict[str, int] = {}  # how far each shape was tried: nothing is read over and over
        for hit in self._text_anchors.finditer(text):
            for literal in self._literals[hit.group()]:
                start = hit.start() - literal.anchor_index
                if start < 0 or not text.startswith(literal.text, start):
                    continue
                for shape in literal.shapes:
                    if start >= ends.get(shape.name, 0):
                        secret, begun, ends[shape.name] = match_shape(
                            shape, text, start, literal.text
                        )
                        spans += [secret] if secret else []
                        partial_start = min(partial_start, begun) if begun >= 0 else partial_start
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text) if match.group()]
        return _merge_overlaps(spans), partial_start

    def pending_length(self, text: str) -> int:
        """Return how many characters at the end may be the beginning of a secret."""
        if not text:
            return 0
        longest = 0
        if self._shapes and text[-1] in _TOKEN_CHARACTERS:
            end = text[-_START_LENGTH:]
            word = end[len(end.rstrip(_TOKEN_CHARACTERS)) :]
            longest = len(word) if word in _PARTIAL_STARTS else 0
        prefixes = self._key_prefixes.get(text[-1], ())
        if text.endswith(prefixes):
            longest = max(longest, *(len(part) for part in prefixes if text.endswith(part)))
        if self._patterns:
            end = text[-_MAX_PENDING_WORD:]
            ends_in_word = not end[-1:].isspace() and len(end.split()) > 0
            longest = max(longest, len(end.rsplit(None, 1)[-1]) if ends_in_word else 0)
        return longest

    def _walk(self, value: Any, clean: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, Struct):
            return self._walk_struct(value, clean)
        if isinstance(value, dict):
            return self._walk_mapping(value, clean)
        if isinstance(value, list | tuple | set | frozenset):
            cleaned = [self._walk(item, clean) for item in value]
            if all(map(_is_same, cleaned, value)):
                return value
            return tuple(cleaned) if isinstance(value, tuple) else cleaned
        if value is None or isinstance(value, bool | int | float):
            return value
        plain = to_plain(value)
        walked = self._walk(plain, clean)
        return value if walked is plain or walked == plain else walked

    def _walk_struct(self, value: Struct, clean: Callable[[str], str]) -> Struct:
        verbatim = verbatim_fields(type(value))
        changed = {}
        for name in value.__struct_fields__:
            field = getattr(value, name)
            walked = self._walk(field, self._without_keys if name in verbatim else clean)
            if isinstance(value, StateTrace) and walked is not field:
                walked = with_inbox_id(value, walked)
            if walked is not field:
                changed[name] = walked
        return replace(value, **changed) if changed else value

    def _walk_mapping(self, value: dict[Any, Any], clean: Callable[[str], str]) -> dict[Any, Any]:
        cleaned = {self._walk(key, clean): self._walk(item, clean) for key, item in value.items()}
        same = all(map(_is_same, cleaned, value)) and all(
            map(_is_same, cleaned.values(), value.values())
        )
        return value if same and len(cleaned) == len(value) else cleaned

    def _without_keys(self, text: str) -> str:
        return self._is_key.sub(MARK, text) if self._has_key(text) else text

    def _has_key(self, text: str) -> bool:
        return any(key in text for key in self._keys)


class _PieceStream(Struct):
    """One text that comes in pieces: its newest recorded characters, and those that wait."""

    recorded: str = ""
    pending: str = ""
    in_secret: bool = False  # the rest of a secret that is too long to wait for is still coming


class Redaction:
    """Redacts the events of one session, and passes them to `record` with their encoded form."""

    __slots__ = ("_record", "_redactor", "_streams")

    def __init__(self, redactor: Redactor, record: Record) -> None:
        self._redactor = redactor
        self._record = record
        self._streams: dict[tuple[type, str], _PieceStream] = {}

    def take(self, event: Any) -> None:
        """Redact the next event and record it. Of a piece of text, the end may have to wait."""
        kind = type(event)
        if kind in _PIECES:
            key = (kind, "" if kind in _PLAIN else event.call_id)
            stream = self._streams.get(key)
            if stream is None:
                stream = self._streams[key] = _PieceStream()
            text = self._add(stream, event.text)
            if text:
                self._record(event if text == event.text else replace(event, text=text), None)
            return
        if self._streams and kind in _ENDING:
            self._flush(event)
        self._record(*self._redactor.encoded(event))

    def _add(self, stream: _PieceStream, text: str) -> str:
        """Add a piece to a stream, and return what can be recorded of it now."""
        if stream.in_secret:
            text = _after_secret(text)
            stream.in_secret = not text
        whole = stream.recorded + stream.pending + text
        start = len(stream.recorded)
        redactor = self._redactor
        if not redactor.needs_search(whole):
            cut = max(start, len(whole) - redactor.pending_length(whole))
            stream.recorded, stream.pending = whole[max(0, cut - _START_LENGTH) : cut], whole[cut:]
            return whole[start:cut]
        spans, cut = redactor.find(whole)
        cut = max(start, min(cut, len(whole) - redactor.pending_length(whole)))
        for first, last in reversed(spans):
            if first < cut < last:
                cut = max(start, first)
        if len(whole) - cut > MAX_PENDING:
            cut = len(whole)
            stream.in_secret = bool(spans) and spans[-1][1] == cut
        stream.recorded, stream.pending = whole[max(0, cut - _LOOKBEHIND) : cut], whole[cut:]
        return replace_spans(whole, start, cut, spans)

    def _flush(self, event: Event) -> None:
        """Record what waits of the streams that end with this event, and of text before a call."""
        call: str | None = None  # the call whose streams end; None: all streams do
        if isinstance(event, ToolCallReady):
            call = event.call.id
        elif isinstance(event, ToolResultEvent):
            call = event.output.call_id
        elif isinstance(event, ToolCallStarted):
            call = event.call_id
        is_call = isinstance(event, ToolCallReady | ToolCallStarted)
        for key, stream in list(self._streams.items()):
            kind: Any = key[0]
            call_id = key[1]
            if not (call is None or call_id == call or (is_call and kind in _PLAIN)):
                continue
            if stream.pending:
                whole = stream.recorded + stream.pending
                spans = self._redactor.find(whole)[0]
                text = replace_spans(whole, len(stream.recorded), len(whole), spans)
                stream.recorded, stream.pending = whole[-_LOOKBEHIND:], ""
                self._record(kind(call_id, text) if call_id else kind(text), None)
            if call is None or call_id:  # text may continue after a call, and a secret with it
                del self._streams[key]


def replace_spans(text: str, start: int, end: int, spans: Iterable[Span]) -> str:
    """Return this part of a text, with the mark for each secret that overlaps it."""
    parts: list[str] = []
    for first, last in spans:
        if last > start and first < end:
            parts += [text[start : max(start, first)], MARK]
            start = last
    return "".join([*parts, text[start:end]])


def _is_same(value: object, other: object) -> bool:
    return value is other


def _merge_overlaps(spans: list[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one."""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _spellings(secret: str) -> set[str]:
    """Return a key as it is and as JSON writes it. Text that has no UTF-8 form is not a key."""
    secret = secret.strip()
    if len(secret) < _MIN_KEY or escape_surrogates(secret) != secret:
        return set()
    return {secret, _json_text(secret)}


def _json_text(text: str) -> str:
    return msgspec.json.encode(text)[1:-1].decode()


def _after_secret(text: str) -> str:
    """Return what comes after the end of a secret that began long before."""
    for index, character in enumerate(text):
        if character in _TOKEN_ENDS:
            return text[index:]
    return ""


_VERBATIM: dict[type, frozenset[str]] = {
    Image: frozenset({"data"}),
    File: frozenset({"data"}),
    Thinking: frozenset({"meta"}),
}
_NAMES = frozenset(  # ids, hashes and times: what binds one record to another is not a secret
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
def verbatim_fields(kind: type[Struct]) -> frozenset[str]:
    """Return the fields from which only known keys are taken out: any other change breaks them."""
    verbatim = _VERBATIM.get(kind, frozenset())
    if not kind.__module__.startswith((events.__name__, messages.__name__)):
        return verbatim
    literals = {field.name for field in fields(kind) if get_origin(field.type) is Literal}
    return verbatim | literals | (_NAMES & set(kind.__struct_fields__))


def with_inbox_id(trace: StateTrace, cleaned: Any) -> Any:
    """Return a trace's cleaned detail with the id of the inbox message that it handles."""
    inbox_id = trace.text("letter")
    return {**cleaned, "letter": inbox_id} if inbox_id else cleaned


def to_plain(value: object) -> Any:
    """Return any other value as it is encoded: by its fields, if it has some that can be."""
    if isinstance(value, bytes | bytearray | memoryview):
        return str(bytes(value))  # it is encoded as base64, in which nobody sees a key
    try:
        return msgspec.to_builtins(value, enc_hook=str, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return str(value)
