"""What goes wrong in a route, as a problem. Knows Litestar's own errors; the rest is `problems`."""

from typing import Any

from litestar import Request, Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.typing import FieldDefinition
from msgspec.structs import replace

from bridle.errors import SessionBusy
from bridle.server import problems
from bridle.server.problems import MEDIA, Problem, Refused


def told(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The answer to a request that failed."""
    found = known(request, error) if isinstance(error, HTTPException) else problems.of(error)
    if isinstance(error, SessionBusy) and found.hint == SessionBusy.hint:
        found = replace(found, hint=_BUSY_CHAT if request.url.path.endswith("/chat") else _BUSY)
    headers = {"retry-after": "5"} if found.status == 429 else {}
    if isinstance(error, MethodNotAllowedException):
        headers = dict(error.headers or {})
    elif isinstance(error, Refused):
        headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(
        problems.encode(found), status_code=found.status, media_type=MEDIA, headers=headers
    )


def known(request: Request[Any, Any, Any], error: HTTPException) -> Problem:
    """What Litestar itself says no to, as a problem."""
    if isinstance(error, NotFoundException):
        return problems.problem("not_found", "There is nothing at this address.", _WHERE)
    if isinstance(error, MethodNotAllowedException):
        return problems.problem("method_not_allowed", "That cannot be done here.", _WHERE)
    if isinstance(error, ValidationException):
        return _misfit(request, error)
    if error.status_code < 500:
        return problems.problem("invalid_request", f"{error.detail}.", _WHERE)
    return problems.broken(error)


_BUSY_CHAT = 'Wait for it, interrupt it, or send the prompt with "queue": true.'
_BUSY = "Wait for it, or interrupt it, and try again."
_WHERE = "GET /api/openapi.json has every address and what it takes."


def _misfit(request: Request[Any, Any, Any], error: ValidationException) -> Problem:
    """What of a request does not fit, by the names that its sender knows."""
    extra = error.extra if isinstance(error.extra, list) else []
    found = {str(one.get("key", "it")): one["message"] for one in extra if "message" in one}
    if "data" in found:
        return problems.problem("invalid_json", "There is no body.", "Send one whole JSON value.")
    known = request.route_handler.parsed_fn_signature.parameters
    reasons = [f"{_name(known.get(key), key)}: {_said(why)}" for key, why in found.items()]
    detail = f"The request does not fit: {'; '.join(reasons)}." if reasons else f"{error.detail}."
    return problems.problem("invalid_request", detail, _WHERE)


def _said(why: str) -> str:
    """A reason in words; nobody has to read the pattern that something was to match."""
    why, pattern, _ = why.partition(" matching regex ")
    return f"{why} of another form" if pattern else why


def _name(parameter: FieldDefinition | None, key: str) -> str:
    return getattr(parameter and parameter.kwarg_definition, "name", None) or key
