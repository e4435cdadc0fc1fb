"""Every no of the server as a problem detail (RFC 9457): a stable code, a sentence, a hint.

Knows the tree of errors and the statuses of HTTP; knows no framework. What is not foreseen is
`internal`, with a number that the log has too, and nothing else of it reaches a client.
"""

import logging
import secrets
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bridle import errors
from bridle.protocols.session_errors import Refusal

MEDIA = "application/problem+json"
Headers = tuple[tuple[bytes, bytes], ...]

_log = logging.getLogger("bridle.server")

CODES: dict[str, tuple[int, str]] = {
    "invalid_json": (400, "The body is not valid JSON"),
    "invalid_request": (400, "Invalid request"),
    "no_token": (401, "Not signed in"),
    "wrong_origin": (403, "This origin is not allowed"),
    "forbidden_role": (403, "This needs another role"),
    "forbidden_choice": (403, "The server was not started with that"),
    "unknown_workspace": (403, "The server does not work in that folder"),
    "unknown_session": (404, "There is no such session"),
    "unknown_approval": (404, "There is no such question"),
    "not_found": (404, "There is nothing here"),
    "method_not_allowed": (405, "That cannot be done here"),
    "too_slow": (408, "The request did not come in time"),
    "session_busy": (409, "A turn is running"),
    "session_locked": (409, "Another process holds the session"),
    "other_workspace": (409, "The session belongs to another folder"),
    "other_name": (409, "The code is somebody else's"),
    "prompt_begun": (409, "The prompt waits no more"),
    "undo_clash": (409, "A file changed after the turn"),
    "approval_answered": (409, "Somebody has answered already"),
    "approval_changed": (409, "That is not what is asked now"),
    "idempotency_conflict": (409, "The key was used for something else"),
    "approval_expired": (410, "The time to answer is over"),
    "too_large": (413, "That is too much"),
    "unsupported_media": (415, "The body is to be JSON"),
    "wrong_host": (421, "The server does not answer under that name"),
    "rate_limited": (429, "Too many requests"),
    "queue_full": (429, "Too many prompts wait"),
    "too_many_streams": (429, "Too many streams"),
    "store_failed": (500, "The log could not be written or read"),
    "internal": (500, "Something broke"),
    "server_stopping": (503, "The server is being stopped"),
    "unavailable": (503, "That cannot be had now"),
}


class Problem(Struct, frozen=True, kw_only=True):
    """What a client is told when the answer is no.

    `by` and `allowed` are of the answer that counts, where somebody was faster. `incident` is the
    number under which the log has what broke.
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


class Refused(Exception):
    """The answer is this problem."""

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


def refused(code: str, detail: str, hint: str = "", headers: Headers = ()) -> Refused:
    """That problem, to be raised."""
    return Refused(problem(code, detail, hint), headers)


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


def of(error: BaseException) -> Problem:
    """What a client is told of an error; one that nobody foresaw is logged under a number."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, Refusal):
        more = {name: error.more[name] for name in _SHOWN if name in error.more}
        return problem(error.code, error.message, error.hint, status=error.status_code, **more)
    if isinstance(error, errors.AgentError):
        for kind, code in _KNOWN:
            if isinstance(error, kind):
                return problem(code, error.message, error.hint)
    return broken(error)


def broken(error: BaseException) -> Problem:
    """Nobody foresaw this one: it is logged, and the client gets the number of that."""
    incident = secrets.token_hex(6)
    _log.error("incident %s", incident, exc_info=error)
    return problem(
        "internal",
        f"The server could not do that; its log has the reason under {incident}.",
        "What was accepted before is kept: look at the session, and try again.",
        incident=incident,
    )


def headers_of(error: BaseException, found: Problem) -> dict[str, str]:
    """The headers that go with a problem."""
    if isinstance(error, Refused):
        return {name.decode(): value.decode() for name, value in error.headers}
    return {"retry-after": "5"} if found.status == 429 else {}


encode = msgspec.json.Encoder().encode


def answer(
    found: Problem, headers: Iterable[tuple[bytes, bytes]] = ()
) -> tuple[dict[str, Any], bytes]:
    """The start of a response that says it, and its body."""
    body = encode(found)
    head = [
        (b"content-type", MEDIA.encode()),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    return {"type": "http.response.start", "status": found.status, "headers": head}, body
