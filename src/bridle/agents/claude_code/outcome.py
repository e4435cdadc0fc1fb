"""How a run of Claude Code ended, by what the SDK reports and never by words in a text. Pure.

done       the model has answered
stopped    somebody has interrupted it
stale      the conversation that was to be resumed no longer exists: nothing has run
transient  the service failed in a way that may have passed at the next attempt
limit      a limit of turns or money was reached
failed     anything else: the content says what, and what to do
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from bridle.workspace.text import neutral, shorten

Kind = Literal["done", "stopped", "stale", "transient", "limit", "failed"]
UNAVAILABLE = "The AI service is temporarily unavailable. Please try again in a moment."
_SIGN_IN = (
    "Set ANTHROPIC_API_KEY to a valid key, or start `claude` once and sign in; "
    "what was done until then is in the log."
)
_CHANGE_REQUEST = (
    "The same would be refused again: try another model, a shorter prompt or a new session; "
    "what was done until then is in the log."
)
_TRANSIENT = ("server_error", "overloaded", "rate_limit")  # as the program names them
_REFUSED = ("authentication_failed", "billing_error", "oauth_org_not_allowed")
_LIMITS = {
    "error_max_turns": "It stopped at the limit of turns",
    "error_max_budget_usd": "It stopped at the limit of money",
}
_SHOWN = 1000  # characters of what the program says


class Outcome(Struct, frozen=True):
    """The outcome of one run. `total_cost`: of the whole conversation, if the program said so."""

    kind: Kind
    content: str = ""
    session_id: str = ""
    total_cost: float | None = None
    usage: dict[str, Any] = {}
    duration_ms: int = 0
    num_turns: int = 0


def outcome_of(result: Any, error: str, *, resumed: bool) -> Outcome:
    """Return the outcome of a run with a result. `error`: the error that the last message named."""
    kind, content = _kind(result, error, resumed=resumed)
    return Outcome(
        kind=kind,
        content=content,
        session_id=result.session_id or "",
        total_cost=result.total_cost_usd,
        usage=result.usage or {},
        duration_ms=result.duration_ms or 0,
        num_turns=result.num_turns or 0,
    )


def _kind(result: Any, error: str, *, resumed: bool) -> tuple[Kind, str]:
    text = shorten(neutral(result.result or "; ".join(result.errors or [])), _SHOWN)
    if not result.is_error and (result.num_turns or not resumed):
        return "done", result.result or ""
    if str(result.terminal_reason or "").startswith("aborted"):
        return "stopped", "It was stopped."
    if resumed and not (result.num_turns or result.api_error_status or error):
        return "stale", text  # a service that refused the first request is another matter
    if result.subtype in _LIMITS:
        return "limit", f"{_LIMITS[result.subtype]} ({text}). What was done until then is kept."
    if is_transient(result.api_error_status, error):
        return "transient", UNAVAILABLE
    if result.api_error_status in (401, 403) or error in _REFUSED:
        return "failed", f"Claude Code was refused by the service: {_sentence(text)} {_SIGN_IN}"
    if result.api_error_status in (400, 413, 422):
        return "failed", f"The service refused the request: {_sentence(text)} {_CHANGE_REQUEST}"
    return "failed", f"Claude Code reported an error: {text or result.subtype}"


def _sentence(text: str) -> str:
    text = text.rstrip() or "it did not say why"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def is_transient(status: int | None, error: str) -> bool:
    """May another attempt work? An error in the middle of a stream has a name, but no status."""
    if status is not None:
        return status == 429 or status >= 500
    return error in _TRANSIENT


def is_stale(report: Mapping[str, Any]) -> bool:
    """Is this the report of a program that could not resume, and ended before its first turn?"""
    return (
        bool(report.get("is_error"))
        and not report.get("num_turns")
        and report.get("api_error_status") is None
    )
