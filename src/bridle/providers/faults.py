"""An answer that is no reply, as a typed error: judged by status and by the vendor's own words
for it (`type`, `code`), not by searching prose; but for one thing that some have no word for.

Knows the error shapes of the vendors' APIs and of local servers. Knows no transport.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bridle.errors import (
    AgentError,
    BadStream,
    ContextTooLong,
    KeyRefused,
    Origin,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRefused,
    StreamStalled,
    UnknownModel,
)
from bridle.providers.reading import Unreadable

Headers = Mapping[str, str]

MESSAGE_LIMIT = 2000
SHORTEST_KEY = 8  # characters: a shorter one stands in ordinary words, and is no secret
_PAY = "The account has no credit left: check its plan and billing."

# Words that say more than the status they come with.
_PRECISE: dict[str, type[ProviderError]] = {
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "model_not_found": UnknownModel,
    "invalid_api_key": KeyRefused,
    "insufficient_quota": KeyRefused,
    "billing_error": KeyRefused,
}
# Anthropic, vLLM and others have no word for it: the sentence is all that tells it from any other
# request that is wrong, and what is done about it is another thing.
_TOO_LONG = re.compile(
    r"prompt is too long|exceed(s|ed)? (the )?(model's )?(maximum )?context (limit|length|window)"
    r"|maximum context length is \d",
    re.IGNORECASE,
)
# Words that stand alone, in the middle of a stream.
_WORDS: dict[str, type[ProviderError]] = {
    **_PRECISE,
    "invalid_request_error": RequestRefused,
    "invalid_prompt": RequestRefused,
    "authentication_error": KeyRefused,
    "permission_error": KeyRefused,
    "not_found_error": UnknownModel,
    "rate_limit_error": RateLimited,
    "rate_limit_exceeded": RateLimited,
    "timeout_error": Overloaded,
    "api_error": Overloaded,
    "overloaded_error": Overloaded,
    "server_error": Overloaded,
    "server_is_overloaded": Overloaded,
    "internal_server_error": Overloaded,
}
_STATUSES: dict[int, type[ProviderError]] = {
    401: KeyRefused,
    402: KeyRefused,
    403: KeyRefused,
    404: UnknownModel,
    408: StreamStalled,
    409: Overloaded,
    413: ContextTooLong,
    425: Overloaded,
    429: RateLimited,
}


def without_key(body: bytes, key: str) -> bytes:
    """What a server said, with `***` in the place of the key that it was sent."""
    return body.replace(key.encode(), b"***") if len(key) >= SHORTEST_KEY else body


def by_status(status: int, body: bytes, headers: Headers, host: str) -> ProviderError:
    """The error that an HTTP answer stands for."""
    words, message, number = _read(body)
    known = _PRECISE
    if status == 200:  # a document that reports an error: OpenRouter puts the status inside
        status, known = _inner_status(body) or status, _WORDS
    kind = next((known[word] for word in words if word in known), None) or _of(status)
    kind = _measured(kind, message)
    request_id = request_id_in(headers) or number
    said = f": {message}" if message else ""
    error = kind(
        f"{host} answered {status}{said}",
        hint=_hint(status, words),
        retry_after=retry_after(headers),
        origin=Origin(status, words[0] if words else None, request_id),
    )
    if (again := headers.get("x-should-retry")) in ("true", "false"):
        error.retryable = again == "true"
    return error


def hide(error: AgentError, secrets: Iterable[str]) -> None:
    """Take secrets out of an error's words: a vendor may repeat what it was sent."""
    error.message = hidden(error.message, secrets)
    error.hint = hidden(error.hint, secrets)
    error.args = (error.message,)
    status, kind, number = error.origin
    kind, number = (value and hidden(value, secrets) for value in (kind, number))
    error.origin = Origin(status, kind, number)


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` in the place of each secret."""
    for secret in secrets:
        if len(secret) >= SHORTEST_KEY:
            text = text.replace(secret, "***")
    return text


def request_id_in(headers: Headers) -> str | None:
    """The vendor's own number for the request."""
    return headers.get("request-id") or headers.get("x-request-id") or None


def _inner_status(body: bytes) -> int | None:
    error = msgspec.json.decode(body)["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 300 <= code < 600 else None


def names_error(body: bytes) -> bool:
    """Is this a document that reports an error?"""
    try:
        found = msgspec.json.decode(body)
    except Unreadable:
        return False
    return isinstance(found, Mapping) and "error" in found


def by_word(error: Any, request_id: str = "", status: int | None = None) -> ProviderError:
    """The error that the vendor reports in the middle of a stream."""
    words, message, number = _read_error(error)
    if not words and isinstance(error, Mapping) and isinstance(error.get("code"), int):
        status = error["code"]  # OpenRouter and llama.cpp put the HTTP status here
    kind = next((_WORDS[word] for word in words if word in _WORDS), None)
    if kind is None:
        kind = _of(status) if status else ProviderError
    kind = _measured(kind, message)
    said = message or "no reason was given"
    origin = Origin(status, words[0] if words else None, request_id or number)
    return kind(f"the model's server reports an error: {said}", origin=origin)


def _of(status: int) -> type[ProviderError]:
    if status >= 500:
        return Overloaded
    if 300 <= status < 400:
        return BadStream
    return _STATUSES.get(status, RequestRefused)


def _measured(kind: type[ProviderError], message: str) -> type[ProviderError]:
    """Is it wrong because it is too long?"""
    return ContextTooLong if kind is RequestRefused and _TOO_LONG.search(message) else kind


def _hint(status: int, words: tuple[str, ...]) -> str:
    if status == 402 or "insufficient_quota" in words or "billing_error" in words:
        return _PAY
    if 300 <= status < 400:
        return "The server sends elsewhere, and a key is not sent after it: check the base URL."
    if status == 404:
        return "Check the model's name and the base URL; `bridle doctor` says which are used."
    return ""


def _read(body: bytes) -> tuple[tuple[str, ...], str, str | None]:
    """The vendor's words for the error, its message, its number for the request."""
    try:
        found = msgspec.json.decode(body)
    except Unreadable:
        # A page or a line from something in between: the first words are worth showing.
        return (), " ".join(body.decode(errors="replace").split())[:200], None
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, Mapping):
        return (), "", None
    words, message, number = _read_error(found.get("error", found))
    return words, message, number or _text(found.get("request_id"))


def _read_error(error: Any) -> tuple[tuple[str, ...], str, str | None]:
    if isinstance(error, str):
        return (), error[:MESSAGE_LIMIT], None
    if not isinstance(error, Mapping):
        return (), "", None
    details = error.get("details")
    precise = details.get("error_code") if isinstance(details, Mapping) else None
    named = (precise, error.get("code"), error.get("type"))
    words = tuple(word for word in named if isinstance(word, str))
    message = _text(error.get("message")) or _text(error.get("detail")) or ""
    message += _upstream(error.get("metadata"), message)
    return words, message[:MESSAGE_LIMIT], _text(error.get("request_id"))


def _upstream(metadata: Any, message: str) -> str:
    """What the vendor behind OpenRouter says: its own message is often only that one said no."""
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    said = " ".join(raw.split()) if isinstance(raw, str) else ""
    return f": {said}" if said and said not in message else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def retry_after(headers: Headers) -> float | None:
    """How many seconds the vendor asks to wait: milliseconds, seconds or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return _until(headers.get("retry-after", ""))


def _until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
