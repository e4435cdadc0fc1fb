"""What the chat refuses, as problem details: a stable code, a friendly sentence, what to do next.

The shape is the server's own. The chat's refusals have codes beside those of the server.
"""

import math

from msgspec.structs import replace

from bridle.chat import errors
from bridle.errors import AgentError, SessionClosed
from bridle.server import problems
from bridle.server.middleware import Scope
from bridle.server.problems import Headers, Problem, ProblemError

_OWN: dict[str, tuple[int, str]] = {
    "message_refused": (400, "The message cannot be answered as it is"),
    "other_user": (403, "That belongs to somebody else"),
    "unknown_conversation": (404, "There is no such conversation"),
}
_SHARED = (
    *("invalid_json", "invalid_request", "no_token", "wrong_origin", "not_found", "too_slow"),
    *("method_not_allowed", "idempotency_conflict", "too_large", "unsupported_media"),
    *("wrong_host", "rate_limited", "too_many_streams", "internal", "server_stopping"),
    "unavailable",
)
CODES = {**{code: problems.CODES[code] for code in _SHARED}, **_OWN}
_KNOWN: tuple[tuple[type[AgentError], str], ...] = (
    (errors.UnknownConversation, "unknown_conversation"),
    (errors.MessageRefused, "message_refused"),
    (errors.KeyReused, "idempotency_conflict"),
    (errors.TooManyMessages, "rate_limited"),
    (errors.QueueFull, "rate_limited"),
    (errors.AllowanceSpent, "rate_limited"),
    (errors.Unavailable, "unavailable"),
    (SessionClosed, "server_stopping"),
)
_THERE, _HERE = "/api/openapi.json", "/api/chat/openapi.json"
_KEPT = "What was accepted before is kept. Please try again in a moment."


def problem_error(code: str, detail: str, hint: str = "", headers: Headers = ()) -> ProblemError:
    """One of the chat's problems, to be raised."""
    return ProblemError(problem(code, detail, hint), headers)


def problem(code: str, detail: str, hint: str = "") -> Problem:
    """A problem of that code."""
    status, title = CODES[code]
    return Problem(
        type=f"urn:bridle:{code}", title=title, status=status, detail=detail, code=code, hint=hint
    )


def problem_for(error: BaseException) -> Problem:
    """What a client is told of an error."""
    for kind, code in _KNOWN:
        if isinstance(error, kind):
            return problem(code, error.message, error.hint)
    if isinstance(error, errors.ForeignRow):  # code of ours, never the person's fault
        return replace(problems.unexpected_problem(error), hint=_KEPT)
    found = problems.problem_for(error)
    if found.code not in CODES:
        found = problems.unexpected_problem(error)
    return replace(found, hint=_KEPT) if found.code == "internal" else found


def problem_and_headers(error: Exception, scope: Scope) -> tuple[Problem, dict[str, str]]:
    """What a client is told of an error, and the headers that go with it."""
    found = problem_for(error)
    found = replace(found, hint=found.hint.replace(_THERE, _HERE))
    return found, _headers(error, found)


def _headers(error: Exception, found: Problem) -> dict[str, str]:
    if isinstance(error, ProblemError):
        return problems.headers_of(error, found)
    seconds = getattr(error, "retry_after", None)
    if found.status in (429, 503):
        return {"retry-after": str(max(1, math.ceil(seconds or 5)))}
    return {}
