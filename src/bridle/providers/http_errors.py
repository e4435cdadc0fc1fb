"""Turns an answer that is not a reply into a typed error.

It is judged by its status and by the vendor's own words for it (`type`, `code`), not by searching
prose, except for one error that some vendors have no word for. Knows the error shapes of the
vendors' APIs and of local servers. Knows no transport.
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

Headers = Mapping[str, str]

DecodeErrors = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding a vendor's event can raise."""

MESSAGE_LIMIT = 2000
SHORTEST_KEY = 8  # characters; a shorter one may be part of an ordinary word
_PAY = "The account has no credit left: check its plan and billing."

# Words that are more precise than the status.
_PRECISE: dict[str, type[ProviderError]] = {
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "model_not_found": UnknownModel,
    "invalid_api_key": KeyRefused,
    "insufficient_quota": KeyRefused,
    "billing_error": KeyRefused,
}
# Anthropic, vLLM and others have no word for this one, and it is handled differently from any other
# refused request.
_TOO_LONG = re.compile(
    r"prompt is too long|exceed(s|ed)? (the )?(model's )?(maximum )?context (limit|length|window)"
    r"|maximum context length is \d",
    re.IGNORECASE,
)
# Words that come without a status, in the middle of a stream.
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


def remove_key(body: bytes, key: str) -> bytes:
    """Return a body with `***` instead of the key that was sent."""
    return body.replace(key.encode(), b"***") if len(key) >= SHORTEST_KEY else body


def error_from_status(status: int, body: bytes, headers: Headers, host: str) -> ProviderError:
    """Return the error for an HTTP answer."""
    words, message, number = _read(body)
    known = _PRECISE
    if status == 200:  # a document that reports an error: OpenRouter puts the status inside
        status, known = _inner_status(body) or status, _WORDS
    kind = next((known[word] for word in words if word in known), None) or _error_type(status)
    kind = _length_error_or(kind, message)
    request_id = request_id_in(headers) or number
    reason = f": {message}" if message else ""
    error = kind(
        f"{host} answered {status}{reason}",
        hint=_hint(status, words),
        retry_after=retry_after(headers),
        origin=Origin(status, words[0] if words else None, request_id),
    )
    if (again := headers.get("x-should-retry")) in ("true", "false"):
        error.retryable = again == "true"
    return error


def remove_secrets(error: AgentError, secrets: Iterable[str]) -> None:
    """Remove secrets from an error: a vendor may repeat what it was sent."""
    error.message = without_secrets(error.message, secrets)
    error.hint = without_secrets(error.hint, secrets)
    error.args = (error.message,)
    status, kind, number = error.origin
    kind, number = (value and without_secrets(value, secrets) for value in (kind, number))
    error.origin = Origin(status, kind, number)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text with `***` instead of each secret."""
    for secret in secrets:
        if len(secret) >= SHORTEST_KEY:
            text = text.replace(secret, "***")
    return text


def request_id_in(headers: Headers) -> str | None:
    """Return the vendor's own id of the request."""
    return headers.get("request-id") or headers.get("x-request-id") or None


def _inner_status(body: bytes) -> int | None:
    error = msgspec.json.decode(body)["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 300 <= code < 600 else None


def is_error_document(body: bytes) -> bool:
    """Is this a document with an error?"""
    try:
        found = msgspec.json.decode(body)
    except DecodeErrors:
        return False
    return isinstance(found, Mapping) and "error" in found


def error_from_event(error: Any, request_id: str = "", status: int | None = None) -> ProviderError:
    """Return the error that a vendor reports in the middle of a stream."""
    words, message, number = _read_error(error)
    if not words and isinstance(error, Mapping) and isinstance(error.get("code"), int):
        status = error["code"]  # OpenRouter and llama.cpp put the HTTP status here
    kind = next((_WORDS[word] for word in words if word in _WORDS), None)
    if kind is None:
        kind = _error_type(status) if status else ProviderError
    kind = _length_error_or(kind, message)
    reason = message or "no reason was given"
    origin = Origin(status, words[0] if words else None, request_id or number)
    return kind(f"the model's server reports an error: {reason}", origin=origin)


def _error_type(status: int) -> type[ProviderError]:
    if status >= 500:
        return Overloaded
    if 300 <= status < 400:
        return BadStream
    return _STATUSES.get(status, RequestRefused)


def _length_error_or(kind: type[ProviderError], message: str) -> type[ProviderError]:
    """Return `ContextTooLong` if the request was refused for its length."""
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
    """Return the vendor's words for the error, its message, and its id of the request."""
    try:
        found = msgspec.json.decode(body)
    except DecodeErrors:
        # A page from something in between: show its first words.
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
    message += _upstream_message(error.get("metadata"), message)
    return words, message[:MESSAGE_LIMIT], _text(error.get("request_id"))


def _upstream_message(metadata: Any, message: str) -> str:
    """Return what the vendor behind OpenRouter says, as OpenRouter's own message says little."""
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    said = " ".join(raw.split()) if isinstance(raw, str) else ""
    return f": {said}" if said and said not in message else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def retry_after(headers: Headers) -> float | None:
    """Return how many seconds the vendor asks to wait: from milliseconds, seconds or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
