"""Approvals: list the pending ones, answer one; what was allowed for a session."""

from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    Grants,
    PendingApprovals,
    RulePreview,
    RuleRequest,
)
from bridle.server.auth import Caller, check_reach, check_role
from bridle.server.context import ServerContext
from bridle.server.routing import Routes

routes = Routes("Approvals")

_BUSY = ("session_busy", "session_locked", "unavailable")


@routes.get("/api/approvals", role="watch")
async def list_approvals(context: ServerContext) -> PendingApprovals:
    """List the pending approval requests of all sessions."""
    return await context.sessions.pending()


@routes.post(
    "/api/sessions/{session_id}/approvals/{call_id}",
    role="answer",
    refuses=(
        "unknown_approval",
        "approval_answered",
        "approval_changed",
        "approval_expired",
        "session_locked",
        "unavailable",
    ),
)
async def answer_approval(
    context: ServerContext, caller: Caller, session_id: str, call_id: str, body: ApprovalAnswer
) -> ApprovalOutcome:
    """Answer an approval request.

    The first answer wins, and the result says who gave it.
    """
    if body.scope == "rule":
        check_role(caller, "drive", "An answer that becomes a rule")
    await check_reach(context.sessions, caller, session_id, call_id, body)
    return await context.sessions.answer(session_id, call_id, body, caller.name)


@routes.get("/api/sessions/{session_id}/grants", role="watch")
async def list_grants(context: ServerContext, session_id: str) -> Grants:
    """List what was granted for a session and is still valid."""
    return await context.sessions.grants(session_id)


@routes.delete("/api/sessions/{session_id}/grants", role="drive", status=204, refuses=_BUSY)
async def revoke_all_grants(context: ServerContext, caller: Caller, session_id: str) -> None:
    """Revoke everything that was granted for a session."""
    await context.sessions.revoke(session_id, "", caller.name)


@routes.delete(
    "/api/sessions/{session_id}/grants/{grant}",
    role="drive",
    status=204,
    refuses=("not_found", *_BUSY),
)
async def revoke_grant(context: ServerContext, caller: Caller, session_id: str, grant: str) -> None:
    """Revoke one grant."""
    await context.sessions.revoke(session_id, grant, caller.name)


@routes.post("/api/sessions/{session_id}/preview-rule", role="answer")
async def preview_rule(context: ServerContext, session_id: str, body: RuleRequest) -> RulePreview:
    """List past calls of the session that a rule would have covered."""
    return await context.sessions.preview_rule(session_id, body.rule)
