"""What a `SessionService` refuses, each with its code and its HTTP status.

SessionError
└── Refusal                    status, code · more: details for programs
    ├── ServerStopping         503  server_stopping
    ├── Unavailable            503  unavailable          sent to the owner; no outcome seen yet
    ├── UnknownWorkspace       403  unknown_workspace
    ├── ForbiddenChoice        403  forbidden_choice     an agent or a model that is not allowed
    ├── OtherWorkspace         409  other_workspace
    ├── QueueFull              429  queue_full
    ├── PromptBegun            409  prompt_begun
    ├── UndoClash              409  undo_clash
    ├── BadRequest             400  invalid_request
    ├── ApprovalTaken          409  approval_answered    `more` says who answered: by, allowed
    ├── ApprovalChanged        409  approval_changed
    ├── ApprovalExpired        410  approval_expired
    ├── IdempotencyConflict    409  idempotency_conflict
    └── NotFound               404  not_found

`SessionBusy`, `SessionLocked`, `UnknownSession`, `UnknownApproval` and `EmptyPrompt` are the
engine's own errors, and raised as they are.
"""

from typing import Any, ClassVar

from bridle.errors import SessionError


class Refusal(SessionError):
    """A request that the service refuses, with its HTTP status."""

    status_code: ClassVar[int] = 400
    code: ClassVar[str] = "invalid_request"

    def __init__(self, message: str, *, hint: str = "", more: dict[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.more = more or {}


class ServerStopping(Refusal):
    """The service is being stopped and accepts nothing new."""

    status_code = 503
    code = "server_stopping"
    hint = "Everything that was accepted is kept. Try again when the server is back."


class Unavailable(Refusal):
    """It cannot be done now, or it is not known yet whether it was."""

    status_code = 503
    code = "unavailable"


class UnknownWorkspace(Refusal):
    """A folder that the service does not work in."""

    status_code = 403
    code = "unknown_workspace"
    hint = "GET /api/workspaces lists the folders that this server works in."


class ForbiddenChoice(Refusal):
    """An agent or a model that callers may not choose."""

    status_code = 403
    code = "forbidden_choice"


class OtherWorkspace(Refusal):
    """A session cannot continue in another folder, because its own exists."""

    status_code = 409
    code = "other_workspace"
    hint = "Leave out workspacePath, or start a session in the other folder."


class QueueFull(Refusal):
    """The session's queue of prompts is full."""

    status_code = 429
    code = "queue_full"
    hint = "Wait until some have run, or withdraw some."


class PromptBegun(Refusal):
    """The prompt no longer waits."""

    status_code = 409
    code = "prompt_begun"
    hint = "Interrupt the turn if it is still running."


class UndoClash(Refusal):
    """A file changed after the turn that is to be undone."""

    status_code = 409
    code = "undo_clash"


class BadRequest(Refusal):
    """The request makes no sense."""


class ApprovalTaken(Refusal):
    """Somebody else answered first, and their answer counts."""

    status_code = 409
    code = "approval_answered"


class ApprovalChanged(Refusal):
    """The request has changed since it was shown."""

    status_code = 409
    code = "approval_changed"
    hint = "Look at the request again: GET /api/approvals shows it as it is now."


class ApprovalExpired(Refusal):
    """The time to answer is over, which counts as a denial."""

    status_code = 410
    code = "approval_expired"
    hint = "Send a prompt that asks for it again."


class IdempotencyConflict(Refusal):
    """The idempotency key was used for another request."""

    status_code = 409
    code = "idempotency_conflict"
    hint = "Use a new Idempotency-Key for each new prompt."


class NotFound(Refusal):
    """There is no such thing in this session."""

    status_code = 404
    code = "not_found"
