"""The hash of a call and of what it is bound to: what an answer has to bring back. Pure."""

from hashlib import blake2b

import msgspec

from bridle.messages import ToolCall

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def fingerprint(call: ToolCall, *bound: str) -> str:
    """The hash of exactly this call and what it is bound to; what an answer has to bring back."""
    said = [call.id, call.name, call.arguments, bound]
    try:
        words = _encode(said)
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8, but a spelling of its own
        words = repr(said).encode("utf-8", "backslashreplace")
    return blake2b(words, digest_size=16).hexdigest()
