"""What the log adds up to: the conversation, the use, the calls that are open. Pure folds.

Each record is applied once, and a turn costs the same at message 10 and at message 10,000.
Nothing here waits, writes or knows a provider. What was asked and allowed is in permissions.py.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.call_ids import CallIds
from bridle.engine.permissions import Permissions
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
from bridle.messages import Message, ToolCall, ToolOutput, Transcript
from bridle.promises.store import Record
from bridle.usage import ExecutionMetrics

UNKNOWN = "no result was recorded: it is not known whether this call ran"
NOT_RUN = "not run: the turn ended before it began"
_LETTERS = 256  # the newest that were done: a file that is still there may be one of them


class OpenCall(Struct, frozen=True):
    """A call without a result. Where it may have run, nobody knows whether it did."""

    call: ToolCall
    state: Literal["not started", "unknown"]
    reads: bool = False


class History(Permissions):
    """The folds of one session, grown record by record."""

    def __init__(self) -> None:
        super().__init__()
        self.title = self.workspace = ""
        self.parent = ""  # the session that began this one as its child
        self.tags: tuple[str, ...] = ()
        self.turn = 0  # the newest that was given a number
        self.running = 0  # the turn that has begun and not ended
        self.parked = False
        self.metrics = ExecutionMetrics()
        self.before = ExecutionMetrics()  # what had been used when the running turn began
        self.steps = 0  # the replies that it has had
        self.todos: tuple[Todo, ...] = ()
        self.waiting: dict[int, PromptReceived] = {}  # sent, and not yet in the conversation
        self.letters: dict[str, None] = {}
        self.attached: dict[str, AgentAttached] = {}  # the conversations of other agents, by agent
        self._settled = Transcript()
        self._ids = CallIds()  # of the calls in it
        self._open: Message | None = None  # a reply whose calls are not all answered
        self._ours = False  # ... which our own loop asked for, so that its intents are recorded
        self._outputs: dict[str, ToolOutput | None] = {}  # of its calls, in their order
        self._intents: dict[str, bool] = {}  # its calls that were begun: do they only read?
        self.lost: dict[str, OpenCall] = {}  # went on without a result: a line of the log is gone
        self._begun = False
        self._view: tuple[tuple[Message, int, int], Transcript] | None = None

    @property
    def transcript(self) -> Transcript:
        """The conversation as a valid request: a call that is still open gets a stand-in result."""
        if self._open is None:
            return self._settled
        state = (self._open, len(self._intents), sum(map(bool, self._outputs.values())))
        if self._view is None or self._view[0] != state:  # on a shelf of its own: it will not last
            reply, answers = self._step(self._open)
            self._view = state, self._settled.apart().plus(reply).plus(answers)
        return self._view[1]

    @property
    def newest_text(self) -> str:
        """What the newest message says, if the model wrote it."""
        newest = self._open or (self._settled[-1] if len(self._settled) else None)
        return newest.content if newest is not None and newest.role == "assistant" else ""

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls of the newest reply that have no result yet."""
        if self._open is None:
            return ()
        calls = [one for one in self._open.tool_calls if self._outputs.get(one.id) is None]
        return tuple(
            OpenCall(call, self._state(call.id), self._intents.get(call.id, False))
            for call in calls
        )

    @property
    def open_ids(self) -> set[str]:
        """The ids of all calls of the reply that is open, answered or not."""
        return set(self._outputs) if self._open is not None else set()

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

    def _state(self, call_id: str) -> Literal["not started", "unknown"]:
        return "not started" if self._ours and call_id not in self._intents else "unknown"

    def _stand_in(self, call: ToolCall) -> ToolOutput:
        words = UNKNOWN if self._state(call.id) == "unknown" else NOT_RUN
        return ToolOutput(call.id, words, True, call.name)

    def _step(self, reply: Message) -> tuple[Message, Message]:
        """A reply and the answers to its calls, with stand-ins where there are none."""
        calls = reply.tool_calls
        outputs = tuple(filter(None, self._outputs.values()))
        if len(outputs) != len(calls):
            outputs = tuple(self._outputs.get(one.id) or self._stand_in(one) for one in calls)
        reply, outputs = self._ids.apart(reply, outputs)
        return reply, Message("tool", outputs, f"{reply.id}r")

    def _close(self) -> None:
        if self._open is not None:
            if self._ours and None in self._outputs.values():
                self.lost |= {one.call.id: one for one in self.open_calls}
            reply, answers = self._step(self._open)
            self._settled = self._settled.plus(reply).plus(answers)
            self._ids.take(reply)
            self._forget_questions(*self._outputs)
            self._open = self._view = None
            self._outputs = {}
            self._intents = {}
            self.answers = {}

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
                self._answer(output)
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
        else:
            self._enter(_dated(event.message, record), ours=True)

    def _enter(self, message: Message, *, ours: bool) -> None:
        """The next message; one with calls stays open until they are answered."""
        self._close()
        if calls := message.tool_calls:
            self._open, self._ours = message, ours
            self._outputs = dict.fromkeys(call.id for call in calls)
        else:
            self._settled = self._settled.plus(message)

    def _result(self, record: Record, event: ToolResultEvent) -> None:
        self._answer(event.output)

    def _answer(self, output: ToolOutput) -> None:
        self.parked = False
        if self._outputs.get(output.call_id, output) is not None:
            self.lost.pop(output.call_id, None)
            return  # a second result, or one that nobody asked for: the first stands
        self._outputs[output.call_id] = output
        self._forget_questions(output.call_id)
        if None not in self._outputs.values():
            self._close()

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
        if event.kind in ("interrupt", "letter_refused") and isinstance(event.detail, dict):
            self._done(str(event.detail.get("letter", "")))

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

    def _replace(self, messages: tuple[Message, ...]) -> None:
        self._close()
        self._settled, self._ids = Transcript(messages), CallIds(messages)

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
