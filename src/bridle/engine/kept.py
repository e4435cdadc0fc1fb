"""What redaction leaves as it is: the fields by which one record is bound to another.

Ids, hashes, times and words from a fixed list are nobody's secret, and a change would break what
they hold together: an answer and its question, a result and its call. Only known keys are taken
out of them, as out of base64 data and of what a vendor wants back word for word.
"""

from functools import lru_cache
from typing import Any, Literal, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from bridle import events, messages
from bridle.events import TraceEvent
from bridle.messages import File, Image, Thinking

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
_LETTERED = frozenset({"interrupt", "letter_refused"})  # traces that say which letter is done


@lru_cache(maxsize=256)
def kept_fields(kind: type[Struct]) -> frozenset[str]:
    """The fields of a value that only known keys are taken out of: any other change breaks it."""
    kept = _VERBATIM.get(kind, frozenset())
    if not kind.__module__.startswith((events.__name__, messages.__name__)):
        return kept
    chosen = {one.name for one in fields(kind) if get_origin(one.type) is Literal}
    return kept | chosen | (_NAMES & set(kind.__struct_fields__))


def with_letter(trace: TraceEvent, cleaned: Any) -> Any:
    """What was made of a trace's detail, with the letter's name where it says that one is done."""
    detail = trace.detail
    if trace.kind not in _LETTERED or not isinstance(detail, dict) or "letter" not in detail:
        return cleaned
    return {**cleaned, "letter": detail["letter"]}


def as_written(value: object) -> Any:
    """Anything else as it is written down: by its fields, where it has some that are."""
    if isinstance(value, bytes | bytearray | memoryview):
        return str(bytes(value))  # what is written is base64, in which nobody sees a key
    try:
        return msgspec.to_builtins(value, enc_hook=str, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return str(value)
