"""The values that go over HTTP: what a client sends, and what it is shown. No routes, no engine.

They are the models of the API, and there is no second set: what is described is what is sent.
Records go out as the log has them, so that every event has one shape everywhere.
"""

from typing import Any, Literal

from msgspec import Raw, Struct

from bridle.events import FileChange, Grant, Todo, When
from bridle.messages import Message, Part
from bridle.policy import Mode
from bridle.usage import ExecutionMetrics

State = Literal["idle", "running", "waiting", "done", "failed"]
Role = Literal["watch", "answer", "drive", "admin"]
ROLES: tuple[Role, ...] = ("watch", "answer", "drive", "admin")  # each may what those before may


class SessionView(Struct, frozen=True, rename="camel", kw_only=True):
    """A session in one line.

    `waiting` counts the questions that nobody has answered; `state` is then `waiting`, whether the
    turn runs or is parked. `reason` is how the newest turn ended. `cost` is the sum of what could
    be priced, `unpriced` counts the replies that could not. `holder` is `here`, or the process
    that has the session, in words, or nobody.
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


class SessionList(Struct, frozen=True, rename="camel"):
    """Sessions, the newest first; `next` is the cursor of the page after, or empty."""

    sessions: tuple[SessionView, ...]
    next: str = ""


class PendingView(Struct, frozen=True, rename="camel", kw_only=True):
    """A question that waits for a person.

    `asked` is the `approval_asked` record's data. `diff` is what the call would change, where it
    edits files. `posted`: an answer lies in the inbox and counts once the session is taken up.
    """

    session_id: str
    call_id: str
    shown: str
    seq: int
    asked: dict[str, Any]
    session_title: str = ""
    parent: str = ""
    diff: str = ""
    expires: str = ""
    posted: bool = False


class Pendings(Struct, frozen=True, rename="camel"):
    """The open questions of all sessions."""

    approvals: tuple[PendingView, ...]


class Queued(Struct, frozen=True, rename="camel"):
    """A prompt that waits for its turn; `seq` is the record in which it came."""

    seq: int
    prompt: str
    by: str
    turn: int = 0


class Context(Struct, frozen=True, rename="camel"):
    """How full the model's window is; 0 where it is not known."""

    tokens: int = 0
    window: int = 0


class LimitsView(Struct, frozen=True, rename="camel", kw_only=True):
    """What a turn, a session and a day may use. None: no limit."""

    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_turn_tokens: int | None = None
    max_cost: float | None = None
    max_session_tokens: int | None = None
    max_session_cost: float | None = None
    max_day_tokens: int | None = None
    max_day_cost: float | None = None


class SessionDetail(SessionView, frozen=True, rename="camel", kw_only=True):
    """A session with all that a page shows beside the conversation."""

    todos: tuple[Todo, ...] = ()
    pending: tuple[PendingView, ...] = ()
    queued: tuple[Queued, ...] = ()
    metrics: ExecutionMetrics = ExecutionMetrics()
    context: Context = Context()
    limits: LimitsView = LimitsView()
    grants: tuple[Grant, ...] = ()
    children: tuple[str, ...] = ()


class Budget(Struct, frozen=True, rename="camel"):
    """What may be used, and what was."""

    limits: LimitsView
    metrics: ExecutionMetrics
    context: Context = Context()


class NewSession(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A session to begin. What is left out is as the server was started."""

    workspace_path: str = ""
    provider: str = ""
    model: str = ""
    agent: str = ""
    mode: Mode | None = None
    title: str = ""


class Resume(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How to take a session up again; what is left out is as it was."""

    workspace_path: str = ""
    provider: str = ""
    model: str = ""


class Change(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is to be another of a session; None stays as it is."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    mode: Mode | None = None
    provider: str | None = None
    model: str | None = None
    agent: str | None = None


class Chat(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt. `queue` waits for the turn that runs, as `when` "queue" does."""

    prompt: str = ""
    parts: tuple[Part, ...] = ()
    queue: bool = False
    when: When = "idle"


class ChatAccepted(Struct, frozen=True, rename="camel"):
    """The prompt is on disk, and this is its turn."""

    session_id: str
    turn: int


class ApprovalAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A person's answer to a question; `shown` is the hash of what they were shown.

    `scope` says what a yes allows. `once`: this call alone. `session`: the same call in the same
    folder for this session; if the question `covers` `builds`, all tests and builds there. `rule`:
    whatever the rule in `rule` covers, or the proposed rule if that is empty.
    """

    allowed: bool
    shown: str
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    rule: str = ""


class ApprovalOutcome(Struct, frozen=True, rename="camel"):
    """The answer that counts, and whose it is."""

    call_id: str
    allowed: bool
    by: str
    scope: str = "once"
    word: str = ""
    rule: str = ""


class Records(Struct, frozen=True, rename="camel"):
    """Records as the log has them; `next` is where to go on, 0 at the end; `last` is the newest."""

    records: tuple[Raw, ...]
    next: int = 0
    last: int = 0


class HistoryView(Struct, frozen=True, rename="camel"):
    """The conversation as it stands."""

    messages: tuple[Message, ...]
    seq: int = 0


class Fork(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where to fork; None: at the end."""

    at: int | None = None


class Rewind(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """To which record; 0 is an empty conversation."""

    to: int


class ChangedFile(FileChange, frozen=True, rename="camel"):
    """A file that an undo would put back, and how it differs."""

    diff: str = ""


class Clash(Struct, frozen=True, rename="camel", kw_only=True):
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

    turn: int
    files: tuple[ChangedFile, ...] = ()
    uncovered: tuple[str, ...] = ()
    clashes: tuple[Clash, ...] = ()
    token: str = ""


class Undo(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which turn to undo (0: the newest that changed something), as it was previewed.

    `clashes` says what happens if a file changed after the turn: with `refuse` nothing is put back,
    with `skip` everything else is, and with `overwrite` that file, too.
    """

    turn: int = 0
    token: str = ""
    clashes: Literal["refuse", "skip", "overwrite"] = "refuse"


class UndoOutcome(Struct, frozen=True, rename="camel", kw_only=True):
    """What an undo did: files put back, and those that were left as they are. `undo` names what was
    kept, so that it can be taken back itself."""

    turn: int
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    undo: str = ""


class Grants(Struct, frozen=True, rename="camel"):
    """What was allowed for the session and still holds, the oldest first."""

    grants: tuple[Grant, ...]


class RuleWanted(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A rule to look at before it is made."""

    rule: str


class Paths(Struct, frozen=True, rename="camel"):
    """Files of the workspace."""

    paths: tuple[str, ...]


class RulePreview(Struct, frozen=True, rename="camel"):
    """Past calls of the session that a rule would have covered, in words."""

    calls: tuple[str, ...]


class Hit(Struct, frozen=True, rename="camel"):
    """A place where the words were found; `kind` says what it is: a prompt, a reply, a result."""

    session_id: str
    seq: int
    title: str = ""
    text: str = ""
    kind: str = ""


class Hits(Struct, frozen=True, rename="camel"):
    """Where the words were found."""

    hits: tuple[Hit, ...]


class Named(Struct, frozen=True, rename="camel"):
    """A model, an agent or a workspace that can be chosen; `why_not` where it cannot."""

    name: str
    label: str = ""
    default: bool = False
    why_not: str = ""


class Choices(Struct, frozen=True, rename="camel"):
    """What can be chosen."""

    choices: tuple[Named, ...]


class Lines(Struct, frozen=True, rename="camel"):
    """What was found, a line each."""

    lines: tuple[str, ...]


class Me(Struct, frozen=True, rename="camel"):
    """Who is asking, and what they may."""

    name: str
    role: Role
    version: str = ""
    workspaces: tuple[str, ...] = ()
