"""Hash a tool call together with whatever an approval, a grant or a record of it is bound to."""

from hashlib import blake2b

import msgspec

from bridle.messages import ToolCall

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def fingerprint(call: ToolCall, *bound: str) -> str:
    """Return the hash of exactly this call and of the texts that it is bound to."""
    content = [call.id, call.name, call.arguments, bound]
    try:
        data = _encode(content)
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form; its repr is still unambiguous
        data = repr(content).encode("utf-8", "backslashreplace")
    return blake2b(data, digest_size=16).hexdigest()
