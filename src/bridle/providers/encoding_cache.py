"""Keeps what was encoded: each message is encoded once for a wire format, not once a request.

A cache belongs to one wire format and to transcripts that share messages
(`Transcript.encoding_caches`). It holds the joined bytes of all messages so far and where each one
ends, so that a request costs the new messages and one copy. It knows no API: a `MessageEncoder`
says how a message is written.

Thinking is sent back only inside the running turn. When the next turn begins, the messages of the
turn before are encoded once more without it, from the first one that had some.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Protocol

from msgspec import Struct

from bridle.messages import Message, Transcript
from bridle.protocols.json_schema import Schema, can_be_closed, literal_key
from bridle.protocols.provider import Request


class EncodedMessage(Struct, frozen=True, gc=False):
    """One message on the wire: the opening with its role, and its comma-separated items.

    A message without items is left out. Neighbours with the same opening become one entry; with an
    empty `opening`, each item is an entry by itself.
    """

    opening: bytes
    items: bytes
    thinks: bool = False


class MessageEncoder(Protocol):
    """Encodes messages as one API wants them."""

    key: str
    """The name of the format; two formats with other bytes have other names."""
    closing: bytes
    """What ends an entry that has an opening."""
    forewords: Mapping[bytes, bytes]
    """What goes before a first entry with such an opening, if the API wants another one first."""

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """Encode a message, with its thinking or without; `thinks` says if it has some."""
        ...


class EncodingCache:
    """The bytes of a growing conversation in one format. Not thread-safe."""

    __slots__ = ("_bytes", "_encoder", "_ends", "_first_thinking", "_openings", "_turn")

    def __init__(self, encoder: MessageEncoder) -> None:
        self._encoder = encoder
        self._bytes = bytearray()
        self._ends: list[int] = []  # where message i ends; its entry stays open
        self._openings: list[bytes | None] = []  # of the open entry there; None: no entry yet
        self._turn = 0
        self._first_thinking: int | None = None  # the first message encoded with thinking

    def join(self, transcript: Transcript, head: bytes, tail: bytes) -> bytes:
        """Return a request's body: `head`, which may have entries already, messages, `tail`."""
        self._set_turn(transcript.turn)
        length = len(transcript)
        for index in range(len(self._ends), length):
            self._append(index, transcript[index])
        if length == 0 or self._openings[length - 1] is None:
            return head + tail
        glue = b"" if head.endswith(b"[") else b","
        if self._openings[length - 1]:
            tail = self._encoder.closing + tail
        if length == len(self._ends):
            return b"".join((head, glue, self._bytes, tail))
        with memoryview(self._bytes) as view, view[: self._ends[length - 1]] as messages:
            return b"".join((head, glue, messages, tail))

    def _append(self, index: int, message: Message) -> None:
        encoded = self._encoder.write(message, index >= self._turn)
        opening, items = encoded.opening, encoded.items
        current = self._openings[-1] if self._openings else None
        if items:
            if current is None:
                self._bytes += self._encoder.forewords.get(opening, b"") + opening + items
            elif opening and opening == current:
                self._bytes += b"," + items
            else:
                closing = self._encoder.closing if current else b""
                self._bytes += closing + b"," + opening + items
            current = opening
        self._ends.append(len(self._bytes))
        self._openings.append(current)
        if encoded.thinks and self._first_thinking is None:
            self._first_thinking = index

    def _set_turn(self, turn: int) -> None:
        """Drop what is encoded differently in another turn."""
        if turn > self._turn and self._first_thinking is not None and self._first_thinking < turn:
            self._cut(self._first_thinking)
        elif turn < self._turn:  # a transcript that branched off earlier
            self._cut(turn)
        self._turn = turn

    def _cut(self, index: int) -> None:
        if index >= len(self._ends):
            return
        del self._bytes[self._ends[index - 1] if index else 0 :]
        del self._ends[index:]
        del self._openings[index:]
        if self._first_thinking is not None and self._first_thinking >= index:
            self._first_thinking = None


def cache_of(transcript: Transcript, encoder: MessageEncoder) -> EncodingCache:
    """Return the transcript's cache for this format."""
    cache = transcript.encoding_caches.get(encoder.key)
    if not isinstance(cache, EncodingCache):
        cache = transcript.encoding_caches[encoder.key] = EncodingCache(encoder)
    return cache


class RequestHead:
    """The part of a request that is the same from step to step, encoded once.

    It is encoded again if system prompt, tools or settings are other objects.
    """

    __slots__ = ("_bytes", "_encode", "_request")

    def __init__(self, encode: Callable[[Request], bytes]) -> None:
        self._encode = encode
        self._request: Request | None = None
        self._bytes = b""

    def of(self, request: Request) -> bytes:
        """Return the head of a request."""
        last = self._request
        if (
            last is None
            or last.tools is not request.tools
            or type(request.tools) is not tuple  # a list may have changed
            or last.config is not request.config
            or last.system is not request.system
        ):
            self._bytes = self._encode(request)
            # Kept without its messages: the objects must live as long as they are compared.
            self._request = Request((), request.tools, request.config, request.system)
        return self._bytes


# Ids of calls and names of tools as vendors accept them.
#
# A conversation may have begun with another server, whose ids look different, and models make up
# names that no tool has. Neither may have every later request refused. The same name always becomes
# the same name, so a call and its result still belong together, and two never become one.

_FITS = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def fit_name(name: str, longest: int) -> str:
    """Return the name if vendors accept it; otherwise what is left of it, and a hash of it."""
    if len(name) <= longest and _FITS(name):
        return name
    mark = blake2b(name.encode(errors="backslashreplace"), digest_size=6).hexdigest()
    return f"{_FOREIGN.sub('_', name)[: longest - len(mark) - 1]}-{mark}"


# A reply's JSON Schema as the vendors' schema modes take it. Pure.
#
# Every object is closed; what the modes do not know (bounds, lengths, patterns, defaults …) is said
# in the description, where the model reads it. The reply is checked against the original elsewhere.

_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)
_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def closed_schema(schema: Schema) -> Schema:
    """Close all objects; what Anthropic's schemas cannot express goes into the description."""
    rest = dict(schema)
    parts = {name: closed_schema(each) for name, each in (rest.pop("$defs", None) or {}).items()}
    out: Schema = {"$defs": parts} if parts else {}
    if "$ref" in rest:
        return {**out, "$ref": rest["$ref"]}
    out |= _choices(rest) or _literals(rest) or _typed_schema(rest)
    for name in ("description", "title"):
        if name in rest:
            out[name] = rest.pop(name)
    if rest:
        said = ", ".join(f"{name}: {value}" for name, value in rest.items())
        before = f"{out['description']}\n\n" if "description" in out else ""
        out["description"] = f"{before}{{{said}}}"
    return out


def _choices(rest: Schema) -> Schema:
    """One of several, or all of them; takes what it uses out of `rest`."""
    kinds = rest.get("type")
    if isinstance(kinds, list | tuple):
        each = {name: rest.pop(name) for name in list(rest) if name not in ("description", "title")}
        return {"anyOf": [closed_schema(_single_type(kind, each)) for kind in kinds]}
    found = [(name, rest.pop(name)) for name in ("anyOf", "oneOf", "allOf") if name in rest]
    if not found:
        return {}
    rest.pop("type", None)
    name, schemas = found[0]
    return {"allOf" if name == "allOf" else "anyOf": [closed_schema(each) for each in schemas]}


def _single_type(kind: Any, schema: Schema) -> Schema:
    """Return the schema for one of several types."""
    return {"type": kind} if kind == "null" else {**schema, "type": kind}


def _literals(rest: Schema) -> Schema:
    key = literal_key(rest)
    if not key:
        return {}
    rest.pop("type", None)
    return {key: rest.pop(key)}


def _typed_schema(rest: Schema) -> Schema:
    kind = rest.pop("type")
    out: Schema = {"type": kind}
    if kind == "object":
        keys = rest.pop("properties", {})
        out["properties"] = {name: closed_schema(each) for name, each in keys.items()}
        rest.pop("additionalProperties", None)
        out["additionalProperties"] = False
        if "required" in rest:
            out["required"] = rest.pop("required")
    elif kind == "array":
        out["items"] = closed_schema(rest.pop("items"))
        if rest.get("minItems") in (0, 1):
            out["minItems"] = rest.pop("minItems")
    elif kind == "string" and rest.get("format") in _FORMATS:
        out["format"] = rest.pop("format")
    return out


def strict_schema(schema: Schema) -> Schema | None:
    """Return it for OpenAI's strict mode: closed, all keys required, all values typed.

    None if it cannot be expressed like that.
    """
    if not can_be_closed(schema):
        return None
    found = closed_schema(schema)
    return _complete(found) if not _uses_keyword(found, "allOf") else None


def _complete(schema: Schema) -> Schema:
    out = dict(schema)
    for key in ("properties", "$defs"):
        if key in out:
            out[key] = {name: _complete(each) for name, each in out[key].items()}
    if "properties" in out:
        out["required"] = list(out["properties"])
    if "items" in out:
        out["items"] = _complete(out["items"])
    if "anyOf" in out:
        out["anyOf"] = [_complete(each) for each in out["anyOf"]]
    if out.get("format") == "uri":
        del out["format"]
    if values := out.get("enum") or ([out["const"]] if "const" in out else []):
        kinds = sorted({_NAMES[type(value)] for value in values})
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
    return out


def _uses_keyword(value: Any, key: str) -> bool:
    """Does any schema in it use this keyword? A property of that name counts, to be safe."""
    if isinstance(value, dict):
        return key in value or any(_uses_keyword(each, key) for each in value.values())
    return isinstance(value, list) and any(_uses_keyword(each, key) for each in value)
