"""What a server refuses, and network failures, as our own errors.

A problem's `code` says which error it is; `origin.type` keeps the code for programs.
"""

from errno import ECONNREFUSED
from typing import TypeVar

from msgspec import DecodeError, Struct, json

from bridle.errors import (
    AgentError,
    BadStream,
    ConfigError,
    Origin,
    RateLimited,
    SessionBusy,
    SessionError,
    SessionLocked,
    StoreFailed,
    UnknownApproval,
    UnknownSession,
    Unreachable,
)

_KINDS: dict[str, type[SessionError]] = {
    "session_busy": SessionBusy,
    "session_locked": SessionLocked,
    "unknown_session": UnknownSession,
    "unknown_approval": UnknownApproval,
    "approval_answered": UnknownApproval,
    "approval_changed": UnknownApproval,
    "approval_expired": UnknownApproval,
}
_AWAY = ("server_stopping", "unavailable")
_MANY = ("rate_limited", "too_many_streams")
_NO_TOKEN = "Give its token with --token or --token-file, or in BRIDLE_TOKEN."
_WORDS = 300  # characters of an answer that is no problem detail
_T = TypeVar("_T")


class Problem(Struct):
    """Problem details as the server sends them."""

    title: str = ""
    detail: str = ""
    code: str = ""
    hint: str = ""
    by: str = ""


def read(body: bytes, of: type[_T]) -> _T:
    """Decode an answer. Raise `BadStream` if it is something else."""
    try:
        return json.decode(body, type=of)
    except (DecodeError, RecursionError) as problem:
        raise BadStream("the server's answer cannot be read", problem) from problem


def refusal(status: int, body: bytes, wait: str = "") -> AgentError:
    """Return the error that an answer stands for; `wait` is its Retry-After."""
    found = _read(body)
    message = found.detail or found.title or _unknown(status, body)
    seconds = float(wait) if wait.isdecimal() else None
    origin = Origin(status, found.code or None)
    if kind := _KINDS.get(found.code):
        return kind(message, hint=found.hint, origin=origin)
    if found.code in _AWAY or (not found.code and status in (502, 503, 504)):
        return Unreachable(message, hint=found.hint, retry_after=seconds, origin=origin)
    if found.code in _MANY:
        hint = found.hint or "Wait a little and try again."
        return RateLimited(message, hint=hint, retry_after=seconds, origin=origin)
    if status == 401:
        return ConfigError(message, hint=_NO_TOKEN, origin=origin)
    if status >= 500:
        return _broken(found, message, origin)
    return SessionError(message, hint=found.hint, origin=origin)


def _broken(found: Problem, message: str, origin: Origin) -> AgentError:
    if found.code == "store_failed":
        return StoreFailed(message, hint=found.hint, origin=origin)
    hint = found.hint or "The server's log says more."
    return AgentError("agent", message, hint=hint, origin=origin)


def _read(body: bytes) -> Problem:
    try:
        return json.decode(body, type=Problem)
    except (DecodeError, RecursionError):
        return Problem()


def _unknown(status: int, body: bytes) -> str:
    words = " ".join(body[:_WORDS].decode("utf-8", "replace").split())
    said = f": {words}" if words and not words.startswith("<") else ""
    return f"the server answered with status {status}{said}"


def broken(where: str, problem: BaseException) -> Unreachable:
    """Return the error for a connection that broke."""
    return Unreachable(
        f"the connection to {where} broke",
        problem,
        hint="It is opened again if possible. What was sent is kept.",
    )


def unreachable(where: str, problem: BaseException, hint: str = "") -> Unreachable:
    """Return the error for a connection that could not be made."""
    found = getattr(problem, "os_error", problem)  # as aiohttp keeps it
    why = getattr(found, "strerror", None) or str(found) or type(found).__name__
    if isinstance(problem, TimeoutError):
        why = "it did not answer in time"
    elif isinstance(found, ConnectionRefusedError) or getattr(found, "errno", 0) == ECONNREFUSED:
        why = "nobody listens there"
    return Unreachable(
        f"{where} cannot be reached: {why}",
        problem,
        hint=hint or "Is it running (`bridle serve`), and is the address right?",
    )
