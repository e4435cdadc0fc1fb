"""The values that pass through `SessionService`, and so also the JSON of the HTTP API.

The server sends exactly these, the client reads them, and the terminal shows them. Values that are
read have defaults wherever possible, so that a client works with a newer or older server.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from bridle.events import FileChange, Grant, Todo, When
from bridle.messages import Message, Part
from bridle.policy import Mode
from bridle.usage import ExecutionMetrics

STATES = ("idle", "running", "waiting", "done", "failed")
# Any text when it is read, so that a client works with a server that knows more states.
State = Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
Role = Literal["watch", "answer", "drive", "admin"]
ROLES: tuple[Role, ...] = ("watch", "answer", "drive", "admin")  # each includes those before it


class SessionInfo(Struct, frozen=True, rename="camel", kw_only=True):
    """A session, as a list shows it.

    `waiting` counts the pending approval requests; if there are any, `state` is `waiting`, whether
    the turn runs or is parked. `reason` says how the newest turn ended. `cost` is the sum of the
    replies that could be priced, and `unpriced` counts the others. `holder` is `here`, or describes
    the other process that owns the session, or is empty.
    """

    id: str
    title: str = ""
    workspace: str = ""
    model: str = ""
    agent: str = ""
    mode: str = ""
    state: State = "idle"
    reason: str = ""
    waiting: int = 0
    turn: int = 0
    seq: int = 0
    cost: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    created_at: str = ""
    updated_at: str = ""
    tags: tuple[str, ...] = ()
    parent: str = ""
    holder: str = ""


class SessionPage(Struct, frozen=True, rename="camel"):
    """Sessions, the newest first. `next` is the cursor of the next page, or empty."""

    sessions: tuple[SessionInfo, ...] = ()
    next: str = ""


class ApprovalRequest(Struct, frozen=True, rename="camel", kw_only=True):
    """An approval request that waits for a person.

    `asked` is the data of its `approval_asked` record. `diff` shows what the call would change in a
    file. `posted`: an answer is in the session's inbox and counts once a process owns the session.
    """

    session_id: str
    call_id: str
    shown: str
    seq: int = 0
    asked: dict[str, Any] = {}
    session_title: str = ""
    parent: str = ""
    diff: str = ""
    expires: str = ""
    posted: bool = False


class PendingApprovals(Struct, frozen=True, rename="camel"):
    """The pending approval requests of all sessions, the oldest first."""

    approvals: tuple[ApprovalRequest, ...] = ()


class QueuedPrompt(Struct, frozen=True, rename="camel"):
    """A prompt that waits for its turn. `seq` is the number of its record."""

    seq: int
    prompt: str
    by: str
    turn: int = 0


class ContextUsage(Struct, frozen=True, rename="camel"):
    """How full the model's context window is. 0 if it is not known."""

    tokens: int = 0
    window: int = 0


class SessionLimits(Struct, frozen=True, rename="camel", kw_only=True):
    """What a turn, a session and a day may use. None is no limit."""

    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_turn_tokens: int | None = None
    max_cost: float | None = None
    max_session_tokens: int | None = None
    max_session_cost: float | None = None
    max_day_tokens: int | None = None
    max_day_cost: float | None = None


class SessionDetail(SessionInfo, frozen=True, rename="camel", kw_only=True):
    """A session with everything that is shown beside its conversation."""

    todos: tuple[Todo, ...] = ()
    pending: tuple[ApprovalRequest, ...] = ()
    queued: tuple[QueuedPrompt, ...] = ()
    metrics: ExecutionMetrics = ExecutionMetrics()
    context: ContextUsage = ContextUsage()
    limits: SessionLimits = SessionLimits()
    grants: tuple[Grant, ...] = ()
    children: tuple[str, ...] = ()


class Budget(Struct, frozen=True, rename="camel"):
    """The limits of a session, and what it has used."""

    limits: SessionLimits = SessionLimits()
    metrics: ExecutionMetrics = ExecutionMetrics()
    context: ContextUsage = ContextUsage()


class NewSession(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A session to create. What is left out is as the server was started."""

    workspace_path: str = ""
    provider: str = ""
    model: str = ""
    agent: str = ""
    mode: Mode | None = None
    title: str = ""


class ResumeOptions(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How to resume a session. What is left out is as it was."""

    workspace_path: str = ""
    provider: str = ""
    model: str = ""


class SessionUpdate(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a session. None leaves a value as it is."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    mode: Mode | None = None
    provider: str | None = None
    model: str | None = None
    agent: str | None = None


class PromptRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt. `queue` waits for the running turn, like `when` "queue"."""

    prompt: str = ""
    parts: tuple[Part, ...] = ()
    queue: bool = False
    when: When = "idle"


class PromptAccepted(Struct, frozen=True, rename="camel"):
    """The prompt is on disk, and this is the number of its turn."""

    session_id: str
    turn: int


class ApprovalAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A person's answer to an approval request. `shown` is the hash of what they were shown.

    `scope` says what an approval allows. `once`: only this call. `session`: the same call in the
    same folder for this session; if the request `covers` `builds`, all tests and builds there.
    `rule`: whatever the rule in `rule` covers, or the proposed rule if that is empty.
    """

    allowed: bool
    shown: str
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    rule: str = ""


class ApprovalOutcome(Struct, frozen=True, rename="camel"):
    """The answer that counts, and who gave it."""

    call_id: str
    allowed: bool
    by: str = ""
    scope: str = "once"
    word: str = ""
    rule: str = ""


class RecordPage(Struct, frozen=True, rename="camel"):
    """Records as they are in the log. `next` is where the next page starts, or 0 at the end. `last`
    is the number of the newest record."""

    records: tuple[Raw, ...] = ()
    next: int = 0
    last: int = 0


class Transcript(Struct, frozen=True, rename="camel"):
    """The conversation as it is now."""

    messages: tuple[Message, ...] = ()
    seq: int = 0


class ForkRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The record to fork at. None: at the end."""

    at: int | None = None


class RewindRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The record to rewind to. 0 is an empty conversation."""

    to: int


class ChangedFile(FileChange, frozen=True, rename="camel"):
    """A file that an undo would restore, and its diff."""

    diff: str = ""


class UndoConflict(Struct, frozen=True, rename="camel", kw_only=True):
    """A file that an undo cannot simply put back, because it changed after the turn.

    `why` is the reason in words, and `diff` shows what would be lost if it is overwritten. `turn`
    and `session_id` name the later turn that changed it, if a turn did.
    """

    path: str
    why: str = ""
    diff: str = ""
    turn: int = 0
    session_id: str = ""


class UndoPreview(Struct, frozen=True, rename="camel", kw_only=True):
    """What an undo would do. `token` identifies this preview. Files in `clashes` are put back
    only if the request says so."""

    turn: int = 0
    files: tuple[ChangedFile, ...] = ()
    uncovered: tuple[str, ...] = ()
    clashes: tuple[UndoConflict, ...] = ()
    token: str = ""


class UndoRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which turn to undo (0: the newest that changed something), as it was previewed.

    `clashes` says what happens if a file changed after the turn: with `refuse` nothing is put back,
    with `skip` everything else is, and with `overwrite` that file, too.
    """

    turn: int = 0
    token: str = ""
    clashes: Literal["refuse", "skip", "overwrite"] = "refuse"


class UndoResult(Struct, frozen=True, rename="camel", kw_only=True):
    """What an undo did: files put back, and those that were left as they are. `undo` names what was
    kept, so that it can be taken back itself."""

    turn: int
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    undo: str = ""


class Grants(Struct, frozen=True, rename="camel"):
    """The grants of a session that are still valid, the oldest first."""

    grants: tuple[Grant, ...] = ()


class RuleRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A rule to preview before it is added."""

    rule: str


class FilePaths(Struct, frozen=True, rename="camel"):
    """Files of a workspace, the best match first."""

    paths: tuple[str, ...] = ()


class RulePreview(Struct, frozen=True, rename="camel"):
    """Past calls of the session that a rule would have covered, in words."""

    calls: tuple[str, ...] = ()


class SearchHit(Struct, frozen=True, rename="camel"):
    """A place where the words were found. `kind` says what it is, such as a prompt or a reply."""

    session_id: str
    seq: int
    title: str = ""
    text: str = ""
    kind: str = ""


class SearchHits(Struct, frozen=True, rename="camel"):
    """Where the words were found."""

    hits: tuple[SearchHit, ...] = ()


class Choice(Struct, frozen=True, rename="camel"):
    """A model, agent, workspace, tool, server or rule. `why_not` says why it cannot be chosen."""

    name: str
    label: str = ""
    default: bool = False
    why_not: str = ""


class Choices(Struct, frozen=True, rename="camel"):
    """What can be chosen."""

    choices: tuple[Choice, ...] = ()


class Report(Struct, frozen=True, rename="camel"):
    """What a check of the machine found, one line each."""

    lines: tuple[str, ...] = ()


class CallerInfo(Struct, frozen=True, rename="camel"):
    """Who is asking, and what they may do."""

    name: str
    role: Annotated[str, Meta(extra_json_schema={"enum": list(ROLES)})] = "watch"
    version: str = ""
    workspaces: tuple[str, ...] = ()
