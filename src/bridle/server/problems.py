"""Errors as problem details (RFC 9457): a stable code, a sentence, a hint.

An error that nobody foresaw is `internal`, with a number that the log has, too. Nothing else of it
reaches a client.
"""

import logging
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bridle import errors
from bridle.protocols.session_errors import Refusal

MEDIA = "application/problem+json"
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")  # of the request being answered
Headers = tuple[tuple[bytes, bytes], ...]

_log = logging.getLogger("bridle.server")

CODES: dict[str, tuple[int, str]] = {
    "invalid_json": (400, "The body is not valid JSON"),
    "invalid_request": (400, "Invalid request"),
    "no_token": (401, "Not signed in"),
    "wrong_origin": (403, "This origin is not allowed"),
    "forbidden_role": (403, "Your role does not allow this"),
    "forbidden_choice": (403, "The server does not offer this"),
    "unknown_workspace": (403, "The server does not work in this folder"),
    "unknown_session": (404, "Unknown session"),
    "unknown_approval": (404, "Unknown approval request"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "Method not allowed"),
    "too_slow": (408, "The request took too long"),
    "session_busy": (409, "A turn is running"),
    "session_locked": (409, "Another process owns the session"),
    "other_workspace": (409, "The session belongs to another folder"),
    "other_name": (409, "The code belongs to someone else"),
    "prompt_begun": (409, "The prompt is no longer queued"),
    "undo_clash": (409, "A file changed after the turn"),
    "approval_answered": (409, "Already answered"),
    "approval_changed": (409, "The approval request has changed"),
    "idempotency_conflict": (409, "The Idempotency-Key was used for another request"),
    "approval_expired": (410, "The approval request has expired"),
    "too_large": (413, "Too large"),
    "unsupported_media": (415, "The body must be JSON"),
    "wrong_host": (421, "Unknown host name"),
    "rate_limited": (429, "Too many requests"),
    "queue_full": (429, "Too many queued prompts"),
    "too_many_streams": (429, "Too many streams"),
    "store_failed": (500, "The log could not be written or read"),
    "internal": (500, "Internal error"),
    "server_stopping": (503, "The server is stopping"),
    "unavailable": (503, "Not available at the moment"),
}


class Problem(Struct, frozen=True, kw_only=True):
    """An error, as a client gets it.

    `by` and `allowed` are those of the answer that counts, if someone was faster. `incident` is the
    number of an internal error in the log. `request` is the ID of the request.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    by: str | UnsetType = UNSET
    allowed: bool | UnsetType = UNSET
    incident: str | UnsetType = UNSET
    request: str | UnsetType = UNSET


class ProblemError(Exception):
    """An error that is answered with this problem."""

    def __init__(self, problem: Problem, headers: Headers = ()) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers


def problem(code: str, detail: str, hint: str = "", **more: Any) -> Problem:
    """A problem of that code."""
    status, title = CODES[code]
    return Problem(
        type=f"urn:bridle:{code}",
        title=title,
        status=more.pop("status", status),
        detail=detail,
        code=code,
        hint=hint,
        **more,
    )


def problem_error(code: str, detail: str, hint: str = "", headers: Headers = ()) -> ProblemError:
    """An error that is answered with a problem of that code."""
    return ProblemError(problem(code, detail, hint), headers)


_KNOWN: tuple[tuple[type[errors.AgentError], str], ...] = (
    (errors.UnknownSession, "unknown_session"),
    (errors.UnknownApproval, "unknown_approval"),
    (errors.SessionBusy, "session_busy"),
    (errors.SessionLocked, "session_locked"),
    (errors.SessionClosed, "unavailable"),
    (errors.SessionError, "invalid_request"),
    (errors.StoreFailed, "store_failed"),
    (errors.MissingKey, "unavailable"),
    (errors.MissingModel, "unavailable"),
    (errors.MissingExtra, "unavailable"),
    (errors.ConfigError, "invalid_request"),
    (errors.OutsideWorkspace, "unknown_workspace"),
    (errors.ToolError, "invalid_request"),
    (errors.BudgetReached, "invalid_request"),
    (errors.ProviderError, "unavailable"),
    (errors.TimedOut, "unavailable"),
)
_SHOWN = ("by", "allowed")  # what of a refusal's `more` a client is told


def problem_for(error: BaseException) -> Problem:
    """The problem that a client gets for an error. Log an error that nobody foresaw."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, Refusal):
        more = {name: error.more[name] for name in _SHOWN if name in error.more}
        return problem(error.code, error.message, error.hint, status=error.status_code, **more)
    if isinstance(error, errors.AgentError):
        for kind, code in _KNOWN:
            if isinstance(error, kind):
                return problem(code, error.message, error.hint)
    return unexpected_problem(error)


def unexpected_problem(error: BaseException) -> Problem:
    """The problem for an error that nobody foresaw, which is logged under a number."""
    incident = secrets.token_hex(6)
    _log.error("incident %s in request %s", incident, REQUEST_ID.get() or "-", exc_info=error)
    return problem(
        "internal",
        f"Something went wrong on the server. Its log has the reason under {incident}.",
        "What was accepted before is kept. Look at the session and try again.",
        incident=incident,
    )


def headers_of(error: BaseException, found: Problem) -> dict[str, str]:
    """The headers that go with a problem."""
    if isinstance(error, ProblemError):
        return {name.decode(): value.decode() for name, value in error.headers}
    return {"retry-after": "5"} if found.status == 429 else {}


encode = msgspec.json.Encoder().encode


def encode_problem(found: Problem) -> bytes:
    """A problem as JSON, with the ID of the request."""
    request = REQUEST_ID.get()
    return encode(replace(found, request=request) if request else found)


def problem_messages(
    found: Problem, headers: Iterable[tuple[bytes, bytes]] = ()
) -> tuple[dict[str, Any], bytes]:
    """The start of a response that says it, and its body."""
    body = encode_problem(found)
    head = [
        (b"content-type", MEDIA.encode()),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    return {"type": "http.response.start", "status": found.status, "headers": head}, body
