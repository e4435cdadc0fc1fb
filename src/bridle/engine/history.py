"""What the log adds up to: the conversation, the turns, the use. Pure folds.

Each record is applied once, and a turn costs the same at message 10 and at message 10,000.
Nothing here waits, writes or knows a provider. The conversation with its open calls is in
conversation.py, what was asked and allowed in permissions.py.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from bridle.engine.call_ids import CallIds
from bridle.engine.conversation import Conversation
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    ChildEnded,
    ChildOf,
    Compacted,
    Forked,
    GrantRevoked,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TagsChanged,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.messages import Message, Transcript
from bridle.promises.store import Record
from bridle.usage import ExecutionMetrics

_LETTERS = 256  # the newest that were done: a file that is still there may be one of them


class History(Conversation):
    """The folds of one session, grown record by record."""

    def __init__(self) -> None:
        super().__init__()
        self.title = self.workspace = ""
        self.parent = ""  # the session that began this one as its child
        self.tags: tuple[str, ...] = ()
        self.turn = 0  # the newest that was given a number
        self.running = 0  # the turn that has begun and not ended
        self.metrics = ExecutionMetrics()
        self.before = ExecutionMetrics()  # what had been used when the running turn began
        self.steps = 0  # the replies that it has had
        self.todos: tuple[Todo, ...] = ()
        self.waiting: dict[int, PromptReceived] = {}  # sent, and not yet in the conversation
        self.letters: dict[str, None] = {}
        self.attached: dict[str, AgentAttached] = {}  # the conversations of other agents, by agent
        self._begun = False

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record, record.event)

    def checkpoint(self, previous: str) -> Checkpoint:
        """Everything so far as one event; `previous` is the hash of the newest record."""
        if not self._ours:  # history brought in: nobody will answer its calls any more
            self._close()
        return Checkpoint(
            previous,
            tuple(self._settled),
            self.title,
            self.tags,
            self.workspace,
            self.turn,
            self.running,
            self.parked,
            self.metrics,
            self.todos,
            tuple(self.waiting.items()),
            tuple(self.pending.values()),
            tuple(self.answers.values()),
            (),
            self._open,
            tuple(filter(None, self._outputs.values())),
            tuple(self._intents.items()),
            tuple(self.letters),
            self.before,
            self.steps,
            self.mode,
            tuple(self.grants.values()),
            tuple(self.times.items()),
            tuple(self.attached.values()),
            self.parent,
        )

    def _start(self, record: Record, event: SessionStarted) -> None:
        self._begun = True
        self.workspace = self.workspace or event.workspace
        if event.resumed and self.mode == "auto":
            self.mode = ""  # a yes to everything ends with the process that it was given to

    def _prompt(self, record: Record, event: PromptReceived) -> None:
        self.turn = max(self.turn, event.turn)
        if event.turn:  # in a log of another program nothing waits: the message follows at once
            self.waiting[record.seq] = event
        self.title = self.title or " ".join(event.content.split())[:80]
        self._done(event.letter)

    def _withdrawn(self, record: Record, event: PromptWithdrawn) -> None:
        self.waiting.pop(event.prompt, None)

    def _message(self, record: Record, event: MessageAdded) -> None:
        prompt = self.waiting.pop(event.prompt, None)
        if prompt is not None:
            if not self.running:
                self.before, self.steps = self.metrics, 0
            self.running = event.turn or prompt.turn
            self.turn = max(self.turn, self.running)
        if event.message.role == "tool":
            for output in event.message.tool_results:
                self._answer(output, record.timestamp)
        elif event.message.parts:
            self._enter(_dated(event.message, record), ours=False)

    def _reply(self, record: Record, event: ResponseCompleted) -> None:
        self.steps += not event.grows
        if event.message is None or not event.message.parts:
            return
        if event.grows and (reply := self._open) is not None and self._ours:
            parts = reply.parts + event.message.parts
            self._open = replace(reply, parts=parts)
            self._outputs |= dict.fromkeys(call.id for call in event.message.tool_calls)
            self._missing = sum(one is None for one in self._outputs.values())
        else:
            self._enter(_dated(event.message, record), ours=True)

    def _result(self, record: Record, event: ToolResultEvent) -> None:
        self._answer(event.output, record.timestamp)

    def _intent(self, record: Record, event: CallIntended) -> None:
        self.metrics = replace(self.metrics, tool_calls=self.metrics.tool_calls + 1)
        self.parked = False
        if event.call_id in self._outputs:
            self._intents[event.call_id] = event.read_only

    def _usage(self, record: Record, event: UsageReported) -> None:
        context = self.metrics.context_tokens
        self.metrics = self.metrics.plus(event.usage, event.cost)
        if event.purpose != "turn":  # a title says nothing of how full the window is
            self.metrics = replace(self.metrics, context_tokens=context)
        elif event.estimated:  # what nobody has counted is not known
            self.metrics = replace(self.metrics, context_tokens=0)

    def _child(self, record: Record, event: ChildOf) -> None:
        self.parent = event.parent

    def _child_ended(self, record: Record, event: ChildEnded) -> None:
        """What it used was told on the way, but for its steps and calls."""
        calls = self.metrics.tool_calls + event.metrics.tool_calls
        self.metrics = replace(self.metrics, tool_calls=calls)
        self.steps += event.metrics.invocations

    def _todos(self, record: Record, event: TodosChanged) -> None:
        self.todos = event.todos

    def _attached(self, record: Record, event: AgentAttached) -> None:
        self.attached[event.agent] = event

    def _titled(self, record: Record, event: TitleChanged) -> None:
        self.title = event.title

    def _tagged(self, record: Record, event: TagsChanged) -> None:
        self.tags = event.tags

    def _trace(self, record: Record, event: TraceEvent) -> None:
        if not isinstance(event.detail, dict):
            return
        if event.kind in ("interrupt", "letter_refused"):
            self._done(str(event.detail.get("letter", "")))
        elif event.kind == "unknown_call":
            self.told.add(str(event.detail.get("callId", "")))

    def _done(self, letter: str) -> None:
        if letter:
            self.letters[letter] = None
            if len(self.letters) > _LETTERS:
                del self.letters[next(iter(self.letters))]

    def _ended(self, record: Record, event: TurnEnded) -> None:
        self.turn = max(self.turn, event.turn)
        if self._ours:  # each of its calls had a result before this
            self._close()
        self._idle()

    def _idle(self) -> None:
        self.running, self.parked = 0, False
        self.pending.clear()
        self.answers = {}

    def _parked(self, record: Record, event: TurnParked) -> None:
        self.parked = True

    def _forked(self, record: Record, event: Forked) -> None:
        """What was asked, allowed, sent or paid there is not this session's."""
        self._close()
        self._idle()
        self.mode = self.parent = ""
        theirs: tuple[dict[Any, Any], ...] = (self.lost, self.waiting, self.grants, self.times)
        for table in (*theirs, self.letters, self.attached):
            table.clear()
        self.metrics = ExecutionMetrics(context_tokens=self.metrics.context_tokens)

    def _rewound(self, record: Record, event: Rewound) -> None:
        self._replace(event.messages)
        self._idle()
        self.attached.clear()  # other agents' conversations still hold what is no more
        self.metrics = replace(self.metrics, context_tokens=0)  # counted of what is no more
        self.todos = event.todos
        self.waiting = {seq: one for seq, one in self.waiting.items() if seq <= event.to}

    def _compacted(self, record: Record, event: Compacted) -> None:
        self._replace(event.messages)
        self.metrics = replace(self.metrics, context_tokens=event.after)

    def _checkpoint(self, record: Record, event: Checkpoint) -> None:
        """Where it stands at the beginning it says everything; later it says what is known."""
        if self._begun:
            return
        self._begun = True
        self._settled, self._ids = Transcript(event.messages), CallIds(event.messages)
        self.title, self.tags, self.workspace = event.title, event.tags, event.workspace
        self.turn, self.running, self.parked = event.turn, event.running, event.parked
        self.metrics, self.todos = event.metrics, event.todos
        self.before, self.steps = event.before, event.steps
        self.waiting = dict(event.waiting)
        self._summed(record, event)
        self.letters, self.parent = dict.fromkeys(event.letters), event.parent
        self.attached = {one.agent: one for one in event.attached}
        if (reply := event.opened) is not None:
            self._open, self._ours = reply, True
            self._outputs = dict.fromkeys(call.id for call in reply.tool_calls)
            self._outputs |= {one.call_id: one for one in event.outputs}
            self._missing = sum(one is None for one in self._outputs.values())
            self._intents = dict(event.intents)


def _dated(message: Message, record: Record) -> Message:
    return Message(message.role, message.parts, f"m{record.seq}", record.timestamp)


_FOLDS: dict[type, Callable[[History, Record, Any], None]] = {
    SessionStarted: History._start,
    PromptReceived: History._prompt,
    PromptWithdrawn: History._withdrawn,
    MessageAdded: History._message,
    ResponseCompleted: History._reply,
    ToolResultEvent: History._result,
    CallIntended: History._intent,
    UsageReported: History._usage,
    ApprovalAsked: History._asked,
    ApprovalAnswered: History._answered,
    GrantRevoked: History._revoked,
    ModeChanged: History._moded,
    AgentAttached: History._attached,
    ChildOf: History._child,
    ChildEnded: History._child_ended,
    TodosChanged: History._todos,
    TitleChanged: History._titled,
    TagsChanged: History._tagged,
    TraceEvent: History._trace,
    TurnEnded: History._ended,
    TurnParked: History._parked,
    Forked: History._forked,
    Rewound: History._rewound,
    Compacted: History._compacted,
    Checkpoint: History._checkpoint,
}


def fold(records: Iterable[Record]) -> History:
    """The folds of a whole log, or of any beginning of one."""
    history = History()
    for record in records:
        history.apply(record)
    return history


def as_of(records: Iterable[Record], to: int) -> History:
    """The folds as they were at that record."""
    return fold(takewhile(lambda one: one.seq <= to, records))
