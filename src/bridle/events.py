"""What happened: one set of events for providers, the log, the network and every interface.

*Streamed* events tell of something that is still going on, such as a piece of text; the log keeps
them as `{"type": "event", "eventType": …}`. *Recorded* events are facts with a record type of their
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
    """Tells of something that is still going on, and is kept as a record of the type `event`."""


class Recorded(Struct, frozen=True, gc=False, tag_field="type", rename="camel", omit_defaults=True):
    """A fact with a record type of its own."""


class ApprovalAsked(Recorded, frozen=True, tag="approval_asked"):
    """A person has to say whether a call may run. `shown` binds the answer to what was shown.

    `commands` are those that were understood, `hosts` those of them that are no commands but
    machines to be reached, `paths` the files it would touch. `covers` is a class of calls
    (`builds`: tests and builds) that a yes for the session covers in this folder. `proposal` is the
    narrowest rule that would allow it, `times` how often the like was allowed before. Questions of
    one step with the same `group` belong together. `once_only`: it can only be allowed once.
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
    """The first answer to that question, which is known by its `shown`: call ids may repeat.

    `cwd` is the folder of which it was asked: a yes for one folder is none for another. `rule` is
    the one that was made of a yes; `until` is when what the yes grants ends: a yes for once grants
    nothing and has none.
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
    """A yes for the session: `what` it covers, in words, and the `rule` that was made of it."""

    id: str
    what: str = ""
    since: str = ""
    until: str = ""
    by: str = "me"
    cwd: str = ""
    rule: str = ""


class GrantRevoked(Recorded, frozen=True, tag="grant_revoked"):
    """A yes for the session was taken back; without a `grant`, all of them."""

    grant: str = ""
    by: str = "me"
    letter: str = ""


class ModeChanged(Recorded, frozen=True, tag="mode"):
    """From here on the session has this mode: plan, ask, edits or auto."""

    mode: str
    by: str = "me"
    reason: str = ""


def add_request(pending: dict[str, ApprovalAsked], asked: ApprovalAsked) -> None:
    """Add a request to the open ones, which are kept by what was shown.

    A call that is asked about again, because it would now do something else, has one request.
    """
    if asked.shown not in pending:
        for shown in [key for key, other in pending.items() if other.call.id == asked.call.id]:
            del pending[shown]
    pending[asked.shown] = asked


def take_request(
    pending: dict[str, ApprovalAsked], answer: ApprovalAnswered
) -> ApprovalAsked | None:
    """Remove the request that this answers from the open ones, and return it if there is one."""
    asked = pending.pop(answer.shown, None)
    if asked is None and not answer.shown:  # the oldest logs name only the call
        shown = next((key for key, other in pending.items() if other.call.id == answer.call_id), "")
        asked = pending.pop(shown, None)
    return asked


class AgentActivity(Streamed, frozen=True):
    """The agent works with this tool now; without a name, with none."""

    tool_name: str = ""
    description: str = ""


class AgentAttached(Recorded, frozen=True, tag="agent"):
    """From here on this agent carries the session's turns, in that conversation of its own.

    `session_id` is the agent's, empty where it has none, or has none any more. `state` is whatever
    else it wants to find again, such as what its conversation had cost so far.
    """

    agent: str
    session_id: str = ""
    state: dict[str, Any] = {}


class AgentResponded(Recorded, frozen=True, tag="agent_response"):
    """The agent's own account of a turn. `content` stands here where no message says it."""

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
    """This session was begun by a call of another one."""

    parent: str
    call_id: str = ""


class ChildStarted(Recorded, frozen=True, tag="child_start"):
    """A call handed work to a session of its own, whose log has the rest."""

    call_id: str
    session_id: str
    agent: str = ""
    prompt: str = ""
    mode: str = ""


class ChildEnded(Recorded, frozen=True, tag="child_end"):
    """... which is over; what it used is counted here, too."""

    call_id: str
    session_id: str
    reason: Reason
    metrics: ExecutionMetrics = ExecutionMetrics()


class TextDelta(Streamed, frozen=True):
    """The model wrote some more text."""

    text: str


class ThinkingDelta(Streamed, frozen=True):
    """The model thought some more."""

    text: str


class ToolCallStarted(Streamed, frozen=True):
    """The model began to write a call."""

    call_id: str
    name: str


class ToolCallArgsDelta(Streamed, frozen=True):
    """The arguments of a call grew by a fragment of JSON."""

    call_id: str
    text: str


class ToolCallReady(Streamed, frozen=True):
    """A call is whole: its arguments have all come, and parse."""

    call: ToolCall


class ToolOutputDelta(Streamed, frozen=True):
    """A running tool said something."""

    call_id: str
    text: str


class ReplyDiscarded(Streamed, frozen=True):
    """A reply broke off before any of its calls ran; what had arrived is discarded.

    The model is asked again, and a new reply follows.
    """

    reason: str = ""


class TraceEvent(Streamed, frozen=True):
    """Something for those who look closely: an unknown event, a parse_error, an error."""

    kind: str
    detail: Any = None


class StateTrace(TraceEvent, frozen=True, tag="TraceEvent"):
    """A trace that a session's state depends on. The log has it as a trace of its kind."""

    def text(self, key: str) -> str:
        """Return a text of the detail, or "" if there is none."""
        value = self.detail.get(key) if isinstance(self.detail, dict) else None
        return value if isinstance(value, str) else ""


class InterruptRequested(StateTrace, frozen=True, tag="TraceEvent"):
    """Somebody (`by`) wanted the turn to end; `letter` is the inbox message that brought it."""

    @classmethod
    def of(cls, by: str, letter: str = "") -> "InterruptRequested":
        """Return one for the log."""
        return cls("interrupt", {"by": by, "letter": letter} if letter else {"by": by})

    @property
    def letter(self) -> str:
        """The inbox message that was handled with it."""
        return self.text("letter")


class InboxMessageRefused(StateTrace, frozen=True, tag="TraceEvent"):
    """An inbox message was handled, and could not be obeyed; `message` says why."""

    @classmethod
    def of(cls, letter: str, verb: str, by: str, message: str) -> "InboxMessageRefused":
        """Return one for the log."""
        detail = {"letter": letter, "verb": verb, "by": by, "message": message}
        return cls("letter_refused", detail)

    @property
    def letter(self) -> str:
        """The inbox message that was handled."""
        return self.text("letter")

    @property
    def message(self) -> str:
        """Why it was refused."""
        return self.text("message")


class UnknownCallReported(StateTrace, frozen=True, tag="TraceEvent"):
    """A person was told that nobody knows whether a call ran."""

    @classmethod
    def of(cls, call: ToolCall, message: str) -> "UnknownCallReported":
        """Return one for the log."""
        return cls("unknown_call", {"callId": call.id, "name": call.name, "message": message})

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.text("callId")


class SettingsChanged(StateTrace, frozen=True, tag="TraceEvent"):
    """The session has other settings from its next turn on: those named, and this model."""

    @classmethod
    def of(cls, changed: list[str], model: str) -> "SettingsChanged":
        """Return one for the log."""
        return cls("settings", {"changed": changed, "model": model})

    @property
    def model(self) -> str:
        """Provider and model, as people write them."""
        return self.text("model")


class LimitsNarrowed(StateTrace, frozen=True, tag="TraceEvent"):
    """Somebody (`by`) gave the session narrower limits, from its next turn on."""

    @classmethod
    def of(cls, by: str, limits: dict[str, Any]) -> "LimitsNarrowed":
        """Return one for the log."""
        return cls("limits", {"by": by, "limits": limits})

    @property
    def limits(self) -> Any:
        """The limits, by name."""
        return self.detail.get("limits") if isinstance(self.detail, dict) else None


STATE_TRACES: dict[str, type[StateTrace]] = {
    "interrupt": InterruptRequested,
    "letter_refused": InboxMessageRefused,
    "limits": LimitsNarrowed,
    "settings": SettingsChanged,
    "unknown_call": UnknownCallReported,
}


class SessionStarted(Recorded, frozen=True, tag="session_start", omit_defaults=False):
    """A session began, or was taken up again by a new process. `mode` is the face's name.

    `effort` is how long the model was told to think, if it was told.
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

    `letter` is what brought it, where it came from another process.
    """

    content: str
    turn: int = 0
    by: str = "me"
    when: When = "idle"
    parts: tuple[Part, ...] = ()
    letter: str = ""


class PromptWithdrawn(Recorded, frozen=True, tag="prompt_withdrawn"):
    """A prompt that waited was taken back before its turn began; no model will read it.

    `prompt` is the number of the record in which it was received, `turn` the one it was given.
    """

    prompt: int
    turn: int = 0
    by: str = "me"


class MessageAdded(Recorded, frozen=True, tag="message:user"):
    """A message that no model wrote entered the conversation: a prompt, or history brought in.

    `prompt` is the number of the record in which a prompt was received; it enters exactly once.
    `turn` is the turn that it enters. `by` is "bridle" if no person sent it: it asks the model to
    continue.
    """

    message: Message
    prompt: int = 0
    turn: int = 0
    by: str = ""


class ResponseCompleted(Recorded, frozen=True, tag="message:assistant"):
    """One reply of the model is over. With `error` there may be no message.

    `grows`: its parts belong to the reply before it, whose calls are not all answered yet, or were
    answered before the model could read it. Another agent may ask for one after the other.
    """

    stop_reason: StopReason
    message: Message | None = None
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""
    stop_detail: str = ""
    grows: bool = False


class ToolResultEvent(Recorded, frozen=True, tag="message:tool"):
    """A call has its one result. `foreign`: another agent made the call by its own means."""

    output: ToolOutput
    foreign: bool = False


class CallIntended(Recorded, frozen=True, tag="intent"):
    """A call was allowed and is about to run; after a crash, no result means *unknown*.

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
    """What a call changed in the workspace, and what undo does not cover of it, in words."""

    turn: int
    call_id: str = ""
    files: tuple[FileChange, ...] = ()
    uncovered: tuple[str, ...] = ()


class Undone(Recorded, frozen=True, tag="undo"):
    """Somebody took back what a turn had changed (`undo` names what was kept, to take it back)."""

    turn: int
    by: str = "me"
    files: tuple[str, ...] = ()
    undo: str = ""


class UsageReported(Recorded, frozen=True, tag="usage"):
    """What a reply has used so far. `cost` is None where the price is unknown.

    `priced`: who answered has set the cost already, known or not. `estimated`: the figures are
    ours, because none came. A `task` is a child session's use, which its own log says as well.
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
    """The model wrote its todo list anew."""

    todos: tuple[Todo, ...] = ()


class TitleChanged(Recorded, frozen=True, tag="title"):
    """The session has a new title."""

    title: str


class TagsChanged(Recorded, frozen=True, tag="tags"):
    """The session has these tags from here on."""

    tags: tuple[str, ...] = ()


class TurnParked(Recorded, frozen=True, tag="turn_parked"):
    """The turn waits for answers and nothing runs; it goes on from the log when they are there."""

    turn: int
    calls: tuple[str, ...] = ()


class Forked(Recorded, frozen=True, tag="fork"):
    """Everything before is another session's log, up to its record `at`.

    What waited or was asked there is that session's business and not this one's.
    """

    session_id: str
    at: int


class Rewound(Recorded, frozen=True, tag="rewind"):
    """The conversation is again what it was at record `to` (0: empty). What was done stays done.

    The messages stand here whole, so that a reader needs nothing from before.
    """

    to: int
    by: str = "me"
    messages: tuple[Message, ...] = ()
    todos: tuple[Todo, ...] = ()


class Compacted(Recorded, frozen=True, tag="compaction"):
    """The conversation was shortened; `messages` is what the model is told from here on.

    `dropped` messages went (into a `summary`, where there is one), `shortened` outputs were cut.
    `before` and `after` estimate the tokens. The original stays in the log.
    """

    messages: tuple[Message, ...]
    dropped: int = 0
    shortened: int = 0
    summary: bool = False
    before: int = 0
    after: int = 0


class BrokenLine(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A line that could not be read, or was altered: where it stands, and the hash of its bytes."""

    after: int
    size: int
    hash: str
    why: str = ""


class Repaired(Recorded, frozen=True, tag="repair"):
    """Somebody took the log up and found it damaged: bytes `torn` off its end, lines skipped."""

    torn: int = 0
    broken: tuple[BrokenLine, ...] = ()


class Checkpoint(Recorded, frozen=True, tag="checkpoint"):
    """What everything before adds up to, so that a large log is taken up from its tail.

    `previous` is the hash of the record before. `waiting` are prompts by their numbers; `opened` is
    a reply whose calls are not all answered, `outputs` the answers that it has, `intents` the calls
    that were begun, by call id: did they only read? `letters` are those that came last. `before` is
    what had been used when the running turn began, `steps` are the replies that it has had.
    `grants` are from before they had an end; `times`: how often the like was allowed.
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
    """From a prompt to silence: how the turn ended, and why."""

    turn: int
    reason: Reason
    detail: str = ""
    error_kind: str = ""
    hint: str = ""


class UnknownEvent(Recorded, frozen=True, tag="unknown"):
    """A record of a type that this version does not know, kept as data."""

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
