"""What the server says no to, each with its status and code. How that is sent is not known here.

SessionError
└── Refusal                    status, code · more: what else a program may want to know
    ├── ServerStopping         503  server_stopping
    ├── Unavailable            503  unavailable          posted to who holds it; no outcome seen yet
    ├── UnknownWorkspace       403  unknown_workspace
    ├── ForbiddenChoice        403  forbidden_choice     an agent or a model that is not offered
    ├── OtherWorkspace         409  other_workspace
    ├── QueueFull              429  queue_full
    ├── PromptBegun            409  prompt_begun
    ├── UndoClash              409  undo_clash
    ├── BadRequest             400  invalid_request
    ├── ApprovalTaken          409  approval_answered    `more` has who won: by, allowed
    ├── ApprovalChanged        409  approval_changed
    ├── ApprovalExpired        410  approval_expired
    ├── IdempotencyConflict    409  idempotency_conflict
    └── NotFound               404  not_found

`SessionBusy`, `SessionLocked`, `UnknownSession`, `UnknownApproval` and `EmptyPrompt` are the
engine's own, and raised as they are.
"""

from typing import Any, ClassVar

from bridle.errors import SessionError


class Refusal(SessionError):
    """The server says no, and says it with a status of HTTP."""

    status_code: ClassVar[int] = 400
    code: ClassVar[str] = "invalid_request"

    def __init__(self, message: str, *, hint: str = "", more: dict[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.more = more or {}


class ServerStopping(Refusal):
    """The server is being stopped and takes nothing new."""

    status_code = 503
    code = "server_stopping"
    hint = "Everything that was accepted is kept: try again when the server is back."


class Unavailable(Refusal):
    """It cannot be done now, or nobody knows yet whether it was."""

    status_code = 503
    code = "unavailable"


class UnknownWorkspace(Refusal):
    """A folder that the server was not started with."""

    status_code = 403
    code = "unknown_workspace"
    hint = "GET /api/workspaces lists the folders that this server works in."


class ForbiddenChoice(Refusal):
    """An agent or a model that the server was not started with."""

    status_code = 403
    code = "forbidden_choice"


class OtherWorkspace(Refusal):
    """A session was to go on in another folder than its own, which is there."""

    status_code = 409
    code = "other_workspace"
    hint = "Leave workspacePath out, or begin a session in the other folder."


class QueueFull(Refusal):
    """As many prompts wait in the session as may."""

    status_code = 429
    code = "queue_full"
    hint = "Wait until some have had their turns, or take some back."


class PromptBegun(Refusal):
    """The prompt has had its turn, or has it."""

    status_code = 409
    code = "prompt_begun"
    hint = "Interrupt the turn, if it is still running."


class UndoClash(Refusal):
    """A file changed after the turn that is to be undone."""

    status_code = 409
    code = "undo_clash"


class BadRequest(Refusal):
    """What was asked for makes no sense."""


class ApprovalTaken(Refusal):
    """Somebody was faster: their answer counts."""

    status_code = 409
    code = "approval_answered"


class ApprovalChanged(Refusal):
    """What is asked now is not what was shown."""

    status_code = 409
    code = "approval_changed"
    hint = "Look at the question again: GET /api/approvals shows it as it is now."


class ApprovalExpired(Refusal):
    """The time to answer is over; it counts as a no."""

    status_code = 410
    code = "approval_expired"
    hint = "Send a prompt that asks for it again."


class IdempotencyConflict(Refusal):
    """The key was used for something else."""

    status_code = 409
    code = "idempotency_conflict"
    hint = "Use a new Idempotency-Key for every new prompt."


class NotFound(Refusal):
    """There is no such thing in this session."""

    status_code = 404
    code = "not_found"
