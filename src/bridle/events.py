"""What happened: one set of events for providers, the log, the network and every interface.

*Streamed* events report something that is still going on, such as a piece of text; in the log they
are `{"type": "event", "eventType": …}`. *Recorded* events are facts with a record type of their
own.

Field names are written in camelCase. The garbage collector does not track these values
(`gc=False`), because they cannot contain themselves: a server with a thousand sessions would spend
a quarter of its time there.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from bridle.messages import Message, Part, ToolCall, ToolOutput
from bridle.usage import ExecutionMetrics, Usage

StopReason = Literal["complete", "tool_use", "max_tokens", "refusal", "interrupted", "error"]
When = Literal["idle", "queue", "next_step"]
Reason = Literal[
    "done", "failed", "timeout", "interrupted", "budget", "stuck", "max_tokens", "parked"
]


class Streamed(
    Struct, frozen=True, gc=False, tag_field="eventType", rename="camel", omit_defaults=True
):
    """Something that is still going on; in the log a record of the type `event`."""


class Recorded(Struct, frozen=True, gc=False, tag_field="type", rename="camel", omit_defaults=True):
    """A fact with a record type of its own."""


class ApprovalAsked(Recorded, frozen=True, tag="approval_asked"):
    """A call needs a person's approval. `shown` is the hash of what the person is shown.

    `commands` are those that were understood, `hosts` those of them that are not commands but
    machines to be reached, `paths` the files it would touch. `covers` is a class of calls
    (`builds`: tests and builds) that an approval for the session covers in this folder. `proposal`
    is the narrowest rule that would allow it, `times` how often similar calls were allowed before.
    Requests of one step with the same `group` belong together. `once_only`: it can only be allowed
    once.
    `sandbox`: its level. `network`: the command needs the network, which the sandbox does not have,
    and gets it if the call is allowed.
    """

    call: ToolCall
    shown: str
    reason: str = ""
    rule: str = ""
    cwd: str = ""
    expires: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    covers: str = ""
    proposal: str = ""
    times: int = 0
    group: str = ""
    once_only: bool = field(default=False, name="lasting")
    sandbox: str = ""
    hosts: tuple[str, ...] = ()
    network: bool = False


class ApprovalAnswered(Recorded, frozen=True, tag="approval_answered"):
    """The first answer to an approval request, identified by `shown`: call ids may repeat.

    `cwd` is the folder of the request: an approval for one folder does not hold for another. `rule`
    is the rule that the approval added. `until` is when the grant of the approval ends; approving a
    call once grants nothing. `word` is the person's note, `letter` the id of the inbox message that
    brought the answer.
    """

    call_id: str
    allowed: bool
    by: str = "me"
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    shown: str = ""
    letter: str = ""
    cwd: str = ""
    rule: str = ""
    until: str = ""


class Grant(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An approval for the session: `what` it covers, for a person, and the `rule` it added."""

    id: str
    what: str = ""
    since: str = ""
    until: str = ""
    by: str = "me"
    cwd: str = ""
    rule: str = ""


class GrantRevoked(Recorded, frozen=True, tag="grant_revoked"):
    """A grant was revoked; without a `grant`, all of them."""

    grant: str = ""
    by: str = "me"
    letter: str = ""


class ModeChanged(Recorded, frozen=True, tag="mode"):
    """From here on the session has this mode: plan, ask, edits or auto."""

    mode: str
    by: str = "me"
    reason: str = ""


def add_request(pending: dict[str, ApprovalAsked], asked: ApprovalAsked) -> None:
    """Add a request to the open ones, by `shown`.

    It replaces earlier requests for the same call, which would have done something else.
    """
    if asked.shown not in pending:
        for shown in [key for key, other in pending.items() if other.call.id == asked.call.id]:
            del pending[shown]
    pending[asked.shown] = asked


def take_request(
    pending: dict[str, ApprovalAsked], answer: ApprovalAnswered
) -> ApprovalAsked | None:
    """Remove the request that this answers from the open ones. Return it, or None."""
    asked = pending.pop(answer.shown, None)
    if asked is None and not answer.shown:  # the oldest logs name only the call
        shown = next((key for key, other in pending.items() if other.call.id == answer.call_id), "")
        asked = pending.pop(shown, None)
    return asked


class AgentActivity(Streamed, frozen=True):
    """The agent is using this tool; without a name, none."""

    tool_name: str = ""
    description: str = ""


class AgentAttached(Recorded, frozen=True, tag="agent"):
    """From here on this agent runs the session's turns, in a conversation of its own.

    `session_id` is the agent's id of that conversation, or empty. `state` is what else the agent
    stores, such as what its conversation has cost so far.
    """

    agent: str
    session_id: str = ""
    state: dict[str, Any] = {}


class AgentResponded(Recorded, frozen=True, tag="agent_response"):
    """The agent's own report of a turn. It has `content` only if no message does."""

    agent: str
    turn: int
    session_id: str = ""
    content: str = ""
    cost: float = 0.0
    duration_ms: int = 0
    num_turns: int = 0
    tools_used: tuple[str, ...] = ()
    is_error: bool = False


class ChildOf(Recorded, frozen=True, tag="child_of"):
    """This session was started by a call of another one."""

    parent: str
    call_id: str = ""


class ChildStarted(Recorded, frozen=True, tag="child_start"):
    """A call started a child session, which has its own log."""

    call_id: str
    session_id: str
    agent: str = ""
    prompt: str = ""
    mode: str = ""


class ChildEnded(Recorded, frozen=True, tag="child_end"):
    """A child session ended; what it used counts in this session, too."""

    call_id: str
    session_id: str
    reason: Reason
    metrics: ExecutionMetrics = ExecutionMetrics()


class TextDelta(Streamed, frozen=True):
    """The model wrote some more text."""

    text: str


class ThinkingDelta(Streamed, frozen=True):
    """The model produced some more thinking."""

    text: str


class ToolCallStarted(Streamed, frozen=True):
    """The model started to write a call."""

    call_id: str
    name: str


class ToolCallArgsDelta(Streamed, frozen=True):
    """The arguments of a call grew by a fragment of JSON."""

    call_id: str
    text: str


class ToolCallReady(Streamed, frozen=True):
    """A call is complete: all of its arguments have arrived, and they parse."""

    call: ToolCall


class ToolOutputDelta(Streamed, frozen=True):
    """A running tool produced some output."""

    call_id: str
    text: str


class ReplyDiscarded(Streamed, frozen=True):
    """A reply broke off before any of its calls ran; what has arrived of it is discarded.

    The request is sent again, and a new reply follows.
    """

    reason: str = ""


class TraceEvent(Streamed, frozen=True):
    """Something for diagnosis, such as an unknown event, a parse_error or an error."""

    kind: str
    detail: Any = None


class StateTrace(TraceEvent, frozen=True, tag="TraceEvent"):
    """A trace that changes a session's state. In the log it is a trace of its kind."""

    def text(self, key: str) -> str:
        """Return a text of the detail, or "" if there is none."""
        value = self.detail.get(key) if isinstance(self.detail, dict) else None
        return value if isinstance(value, str) else ""


class InterruptRequested(StateTrace, frozen=True, tag="TraceEvent"):
    """Somebody (`by`) interrupted the turn; `letter` is the inbox message, if it came by one."""

    @classmethod
    def of(cls, by: str, letter: str = "") -> "InterruptRequested":
        """Make one with this detail."""
        return cls("interrupt", {"by": by, "letter": letter} if letter else {"by": by})

    @property
    def letter(self) -> str:
        """The id of the inbox message, or ""."""
        return self.text("letter")


class InboxMessageRefused(StateTrace, frozen=True, tag="TraceEvent"):
    """An inbox message was handled, but its command could not be done; `message` says why."""

    @classmethod
    def of(cls, letter: str, verb: str, by: str, message: str) -> "InboxMessageRefused":
        """Make one with this detail."""
        detail = {"letter": letter, "verb": verb, "by": by, "message": message}
        return cls("letter_refused", detail)

    @property
    def letter(self) -> str:
        """The id of the inbox message."""
        return self.text("letter")

    @property
    def message(self) -> str:
        """Why it was refused."""
        return self.text("message")


class UnknownCallReported(StateTrace, frozen=True, tag="TraceEvent"):
    """It is unknown whether a call ran, and a person was told."""

    @classmethod
    def of(cls, call: ToolCall, message: str) -> "UnknownCallReported":
        """Make one with this detail."""
        return cls("unknown_call", {"callId": call.id, "name": call.name, "message": message})

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.text("callId")


class SettingsChanged(StateTrace, frozen=True, tag="TraceEvent"):
    """From the next turn on these settings differ, and the session uses this model."""

    @classmethod
    def of(cls, changed: list[str], model: str) -> "SettingsChanged":
        """Make one with this detail."""
        return cls("settings", {"changed": changed, "model": model})

    @property
    def model(self) -> str:
        """Provider and model, as a person writes them."""
        return self.text("model")


_EARLIER_LIMIT_NAMES = {
    "steps": "max_steps",
    "tool_calls": "max_tool_calls",
    "seconds": "max_seconds",
    "tokens": "max_turn_tokens",
    "money": "max_cost",
    "session_tokens": "max_session_tokens",
    "session_money": "max_session_cost",
    "day_tokens": "max_day_tokens",
    "day_money": "max_day_cost",
}


class LimitsNarrowed(StateTrace, frozen=True, tag="TraceEvent"):
    """Somebody (`by`) gave the session narrower limits, from its next turn on."""

    @classmethod
    def of(cls, by: str, limits: dict[str, Any]) -> "LimitsNarrowed":
        """Make one with this detail."""
        return cls("limits", {"by": by, "limits": limits})

    @property
    def limits(self) -> Any:
        """The limits, by name. Logs of earlier versions have other names for them."""
        limits = self.detail.get("limits") if isinstance(self.detail, dict) else None
        if not isinstance(limits, dict):
            return limits
        return {_EARLIER_LIMIT_NAMES.get(name, name): value for name, value in limits.items()}


STATE_TRACES: dict[str, type[StateTrace]] = {
    "interrupt": InterruptRequested,
    "letter_refused": InboxMessageRefused,
    "limits": LimitsNarrowed,
    "settings": SettingsChanged,
    "unknown_call": UnknownCallReported,
}


class SessionStarted(Recorded, frozen=True, tag="session_start", omit_defaults=False):
    """A session was created, or resumed by a new process. `mode` is the name of the interface.

    `effort` is how much the model shall think, if that was set.
    """

    session_id: str
    mode: str = "library"
    resumed: bool = False
    format: int = 1
    workspace: str = ""
    model: str = ""
    version: str = ""
    effort: str | UnsetType = UNSET


class PromptReceived(Recorded, frozen=True, tag="user_prompt"):
    """A person sent a prompt. It reaches the model when a `MessageAdded` follows.

    `letter` is the id of the inbox message, if it came from another process.
    """

    content: str
    turn: int = 0
    by: str = "me"
    when: When = "idle"
    parts: tuple[Part, ...] = ()
    letter: str = ""


class PromptWithdrawn(Recorded, frozen=True, tag="prompt_withdrawn"):
    """A queued prompt was withdrawn before its turn began; no model will read it.

    `prompt` is the number of the record in which it was received, `turn` that of its turn.
    """

    prompt: int
    turn: int = 0
    by: str = "me"


class MessageAdded(Recorded, frozen=True, tag="message:user"):
    """A message that no model wrote entered the conversation: a prompt, or imported history.

    `prompt` is the number of the record in which a prompt was received; it enters exactly once.
    `turn` is the turn that it belongs to. `by` is "bridle" if no person sent it: it asks the model
    to continue.
    """

    message: Message
    prompt: int = 0
    turn: int = 0
    by: str = ""


class ResponseCompleted(Recorded, frozen=True, tag="message:assistant"):
    """One reply of the model is complete. If the stop reason is `error` it may have no message.

    `grows`: its parts belong to the reply before it, because another agent reports the calls of
    one reply one after the other.
    """

    stop_reason: StopReason
    message: Message | None = None
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""
    stop_detail: str = ""
    grows: bool = False


class ToolResultEvent(Recorded, frozen=True, tag="message:tool"):
    """A call has its one result. `foreign`: another agent made the call with its own tool."""

    output: ToolOutput
    foreign: bool = False


class CallIntended(Recorded, frozen=True, tag="intent"):
    """A call was allowed and is about to run. Without a result after a crash it is *unknown*.

    `network`: it runs in the sandbox, but with the network, which a person or their rule allowed.
    """

    call_id: str
    name: str
    read_only: bool = False
    arguments_hash: str = ""
    network: bool = False


class FileChange(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A file of the workspace that a call changed."""

    path: str
    how: Literal["added", "changed", "deleted"] = "changed"


class FilesChanged(Recorded, frozen=True, tag="files"):
    """What a call changed in the workspace; `uncovered` says what of it cannot be undone."""

    turn: int
    call_id: str = ""
    files: tuple[FileChange, ...] = ()
    uncovered: tuple[str, ...] = ()


class Undone(Recorded, frozen=True, tag="undo"):
    """Somebody undid what a turn had changed. `undo` is the id by which that can be undone."""

    turn: int
    by: str = "me"
    files: tuple[str, ...] = ()
    undo: str = ""


class UsageReported(Recorded, frozen=True, tag="usage"):
    """What a reply has used so far. `cost` is None if the price is unknown.

    `priced`: the cost is the vendor's or the agent's own, even if it is unknown. `estimated`: the
    figures are ours, because none came. The purpose `task` is the use of a child session, which is
    in its own log as well.
    """

    usage: Usage
    model: str = ""
    cost: float | None = None
    purpose: Literal["turn", "title", "summary", "task"] = "turn"
    priced: bool = False
    estimated: bool = False


class Todo(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One line of the todo list."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class TodosChanged(Recorded, frozen=True, tag="todo"):
    """The model replaced its todo list."""

    todos: tuple[Todo, ...] = ()


class TitleChanged(Recorded, frozen=True, tag="title"):
    """The session has a new title."""

    title: str


class TagsChanged(Recorded, frozen=True, tag="tags"):
    """The session has these tags from here on."""

    tags: tuple[str, ...] = ()


class TurnParked(Recorded, frozen=True, tag="turn_parked"):
    """The turn waits for approvals and nothing runs; once they are there it can be resumed."""

    turn: int
    calls: tuple[str, ...] = ()


class Forked(Recorded, frozen=True, tag="fork"):
    """Everything before is the log of another session, up to its record `at`.

    Prompts and approval requests that were open there are not open here.
    """

    session_id: str
    at: int


class Rewound(Recorded, frozen=True, tag="rewind"):
    """The conversation is again what it was at record `to` (0: empty). Effects are not undone.

    All messages are repeated here, so that a reader needs nothing from before.
    """

    to: int
    by: str = "me"
    messages: tuple[Message, ...] = ()
    todos: tuple[Todo, ...] = ()


class Compacted(Recorded, frozen=True, tag="compaction"):
    """The conversation was shortened; `messages` is what the model gets from here on.

    `dropped` messages were left out (or became a `summary`), `shortened` outputs were cut.
    `before` and `after` estimate the tokens. The original stays in the log.
    """

    messages: tuple[Message, ...]
    dropped: int = 0
    shortened: int = 0
    summary: bool = False
    before: int = 0
    after: int = 0


class BrokenLine(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A line that is unreadable or altered: the record before it, and the hash of its bytes."""

    after: int
    size: int
    hash: str
    why: str = ""


class Repaired(Recorded, frozen=True, tag="repair"):
    """The log was damaged when it was resumed: bytes `torn` off its end, lines skipped."""

    torn: int = 0
    broken: tuple[BrokenLine, ...] = ()


class Checkpoint(Recorded, frozen=True, tag="checkpoint"):
    """The state after all records before it, so that a large log is resumed from its end.

    `previous` is the hash of the record before. `waiting` are prompts by their numbers; `opened` is
    a reply whose calls do not all have results, `outputs` the results so far, `intents` the calls
    that were started, by id, and whether each only reads. `letters` are the newest inbox messages.
    `before` is what had been used when the running turn began, `steps` counts its replies. `grants`
    are those of earlier versions, which had no end; `times`: how often similar calls were allowed.
    """

    previous: str
    messages: tuple[Message, ...] = ()
    title: str = ""
    tags: tuple[str, ...] = ()
    workspace: str = ""
    turn: int = 0
    running: int = 0
    parked: bool = False
    metrics: ExecutionMetrics = ExecutionMetrics()
    todos: tuple[Todo, ...] = ()
    waiting: tuple[tuple[int, PromptReceived], ...] = ()
    asked: tuple[ApprovalAsked, ...] = ()
    answered: tuple[ApprovalAnswered, ...] = ()
    grants: tuple[str, ...] = ()
    opened: Message | None = None
    outputs: tuple[ToolOutput, ...] = ()
    intents: tuple[tuple[str, bool], ...] = ()
    letters: tuple[str, ...] = ()
    before: ExecutionMetrics = ExecutionMetrics()
    steps: int = 0
    mode: str = ""
    granted: tuple[Grant, ...] = ()
    times: tuple[tuple[str, int], ...] = ()
    attached: tuple[AgentAttached, ...] = ()
    parent: str = ""


class TurnEnded(Recorded, frozen=True, tag="turn_end"):
    """How a turn ended, and why."""

    turn: int
    reason: Reason
    detail: str = ""
    error_kind: str = ""
    hint: str = ""


class UnknownEvent(Recorded, frozen=True, tag="unknown"):
    """A record of a type that this version does not know."""

    data: dict[str, Any]


ModelEvent = (
    TextDelta
    | ThinkingDelta
    | ToolCallStarted
    | ToolCallArgsDelta
    | ToolCallReady
    | TraceEvent
    | UsageReported
    | ResponseCompleted
)
Event = Streamed | Recorded
