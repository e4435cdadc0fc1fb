"""A session's log as a tree of spans: what took time, and what it used. A pure fold.

    session > turn > step > model call, tool call (> task), wait for a person

`Tracing` reads records one by one and reports spans as they begin and end; only open spans are
held, so a log of any size can be read and a running session followed. Any beginning of a log gives
a proper tree: children lie within their parents, whatever the clock did.

A request has no record of its own: a model call begins when the turn could have made it, at its
prompt or after the last result. A tool call begins with its intent; the wait for an approval is a
span beside it. A turn that is parked ends, and continues in another span with its number; in
between is a wait of the session. What a killed process left open ends with its last record.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    ChildEnded,
    ChildStarted,
    Compacted,
    Forked,
    InterruptRequested,
    MessageAdded,
    PromptReceived,
    Repaired,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.messages import Outcome, ToolCall, ToolOutput, outcome_of
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics, Usage
from bridle.workspace.text import quantity

Kind = Literal["session", "turn", "step", "model", "tool", "task", "wait", "mark"]
Status = Literal[
    "open",  # it has not ended, or nobody knows that it has
    "ok",
    "failed",
    "refused",  # it was not let through: by a rule, by a person, by what it is
    "interrupted",
    "unknown",  # it had begun, and nothing says whether it ended
    "not_run",
    "parked",
    "timeout",
    "budget",
    "stuck",
    "max_tokens",
]


NOTHING = ExecutionMetrics()


class Span(Struct, eq=False):
    """From `start` to `end`, in milliseconds since 1970. It grows until it is `over`.

    `seq` is the record that showed it. `number` is the turn's or the step's. `used` is what it and
    everything below it used. `asked` and `answer` are what was said, for readers that may show it:
    a turn's prompt; a call and its output; a model's reply. `child` is a task's session. `detail`
    is what kind of error it was, what a model was asked for besides the turn, who carries a turn,
    what a mark says. `first` is when the first of a reply was there. `retries` were tries that
    failed before it.
    """

    kind: Kind
    name: str
    parent: "Span | None" = None
    seq: int = 0
    start: int = 0
    end: int = 0
    over: bool = False
    status: Status = "open"
    number: int = 0
    used: ExecutionMetrics = NOTHING
    model: str = ""
    stop_reason: str = ""
    request_id: str = ""
    error: str = ""
    call_id: str = ""
    child: str = ""
    detail: str = ""
    first: int = 0
    retries: int = 0
    asked: Any = None
    answer: Any = None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1000

    @property
    def id(self) -> str:
        """Its name in its session: one record can show several spans, of one kind each or call."""
        return f"{self.kind}-{self.seq}" + (f"-{self.call_id}" if self.call_id else "")


Tell = Callable[[Span], None]


def summed(one: ExecutionMetrics, other: ExecutionMetrics) -> ExecutionMetrics:
    """Both together; `context_tokens` is the newer one's."""
    return ExecutionMetrics(
        one.total_input_tokens + other.total_input_tokens,
        one.total_output_tokens + other.total_output_tokens,
        one.invocations + other.invocations,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        other.context_tokens,
        one.tool_calls + other.tool_calls,
        one.cost + other.cost,
        one.unpriced + other.unpriced,
        one.tokens + other.tokens,
    )


def spend(used: ExecutionMetrics, *spans: Span | None) -> None:
    """Count it for each of them."""
    if used is not NOTHING:
        for span in spans:
            if span is not None:
                span.used = summed(span.used, used)


class Node(Struct, eq=False):
    """A span and what is below it, in the order in which it began."""

    span: Span
    below: "list[Node]" = field(default_factory=list)

    def walk(self) -> "Iterator[Node]":
        """This one and all below, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.below)


class Growing:
    """Puts spans into a tree as they begin. It keeps all of them: for logs that are not huge."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: dict[int, Node] = {}

    def tell(self, span: Span) -> None:
        """A span has begun, or is over."""
        if span.over:
            self._open.pop(id(span), None)
            return
        node = self._open[id(span)] = Node(span)
        above = self._open.get(id(span.parent))
        if above is not None:
            above.below.append(node)
        else:
            self.root = node


_STATUS: dict[Outcome, Status] = {
    "not_run": "not_run",
    "unknown": "unknown",
    "interrupted": "interrupted",
    "not_stopped": "interrupted",
}


def _status(output: ToolOutput, *, begun: bool) -> Status:
    if not output.is_error:
        return "ok"
    return _STATUS.get(outcome_of(output)) or ("failed" if begun else "refused")


class Tracing:
    """Takes the records of one session in order, and reports each span when it begins and ends."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.root = Span("session", "")
        self._now = 0
        self._seq = 0
        self._turn: Span | None = None
        self._step: Span | None = None
        self._model: Span | None = None
        self._steps = 0  # of the newest turn
        self._ready = 0  # when the next request could be made
        self._asked: dict[str, ToolCall] = {}  # calls of the step that have not begun
        self._calls: dict[str, Span] = {}  # ... that have
        self._tasks: dict[str, Span] = {}  # of those, by child session
        self._waits: dict[str, Span] = {}  # questions, by call id
        self._unplaced = NOTHING  # used by a reply of which nothing has come
        self._owed: Usage | None = None  # a reply said it itself; its report may come after it
        self._stamp = ""  # of the newest record
        self._dead = False  # what is said now is said of a process that is gone
        self._rest: Span | None = None  # a turn is parked
        self._number = 0  # the newest turn
        self._parked = False
        self._prompts: dict[int, int] = {}  # the turns of prompts that wait, by record
        self._agent = ""

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _FOLDS.get(type(record.event))
        if fold is None or (fold is _PIECE and self._model is not None and self._model.first):
            self._stamp = record.timestamp  # one of very many
            return
        if fold is _TAKEN_UP and self._turn is not None:
            self._look()
            self._dead = True  # before the clock goes on: what was open ended with its process
        self._stamp, self._seq = record.timestamp, record.seq
        self._look()
        if not self.root.seq:
            self.root.seq, self.root.start = record.seq, self._now
            self._tell(self.root)
        fold(self, record.event)

    def close(self, at: int = 0) -> None:
        """No more records: what is under way ends with the newest of them, and is called open.

        Where somebody is known to be at it still, it is measured up to then (`at`).
        """
        self._look()
        self._now = max(self._now, at)
        self._end_step("open")
        left = [one for one in (self._turn, self._rest) if one is not None]
        for span in left:
            self._end(span, "open")
        if self.root.seq:
            self._end(self.root, "open" if left else "ok")
        self._turn = self._rest = None

    def begin_anew(self) -> None:
        """What comes now is another process's: under a session span of its own."""
        self.root = Span("session", self.root.name, model=self.root.model)

    def _look(self) -> None:
        """The clock of the records. It never goes back, and stands still for the dead."""
        if self._dead:
            return
        try:
            moment = datetime.fromisoformat(self._stamp).timestamp()
        except (ValueError, OverflowError):
            return  # no time that we know: then it is as late as before
        self._now = max(self._now, round(moment * 1000))

    def _open_turn(self, number: int = 0, asked: Any = None) -> Span:
        """The turn that is under way; where it rested, one more span of it."""
        if self._turn is None:
            if not self._parked:
                self._number, self._steps = number or self._number + 1, 0
                self._asked.clear()
            self._wake()
            self._ready = self._now
            name, told = f"turn {self._number}", {"model": self.root.model, "asked": asked}
            told |= {"number": self._number, "detail": self._agent}
            self._turn = self._begin("turn", name, self.root, **told)
        return self._turn

    def _end_turn(self, status: Status, error: str = "") -> None:
        if (turn := self._turn) is not None:
            self._end_step(status if status in ("parked", "interrupted") else "unknown")
            turn.error = error
            self._end(turn, status)
            self._turn = None
        self._dead = False
        self._look()

    def _wake(self, status: Status = "ok") -> None:
        """The turn rests no longer: it goes on, or was ended."""
        self._parked = False
        if self._rest is not None:
            self._end(self._rest, status)
            self._rest = None

    def _mark(self, name: str, detail: str = "") -> None:
        span = self._begin("mark", name, self._turn or self.root, detail=detail)
        self._end(span, "ok")

    def _taken_up(self, event: SessionStarted | Repaired) -> None:
        if isinstance(event, SessionStarted):
            self.root.name, self.root.model = event.session_id, event.model
        else:
            self._mark("repair")

    def _prompt(self, event: PromptReceived) -> None:
        if event.turn:
            self._prompts[self._seq] = event.turn
        else:  # another program's log: a turn ends where the next begins
            self._end_turn("ok")
            self._open_turn(asked=event.content)

    def _message(self, event: MessageAdded) -> None:
        number = self._prompts.pop(event.prompt, 0)
        number = event.turn or number
        if not event.prompt:
            self._foreign(event)
            return
        if self._turn is not None and number not in (0, self._number):
            self._end_turn("unknown")  # its end is lost
        self._parked = self._parked and number in (0, self._number)
        self._open_turn(number, event.message.content)

    def _foreign(self, event: MessageAdded) -> None:
        """A reply in another program's log; history that is brought in comes between turns."""
        if self._turn is not None and event.message.role == "assistant":
            stop = "tool_use" if event.message.tool_calls else "complete"
            self._whole(ResponseCompleted(stop, event.message))  # type: ignore[arg-type] # literals

    def _ended(self, event: TurnEnded) -> None:
        self._number = max(self._number, event.turn)
        status: Status = "ok" if event.reason == "done" else event.reason
        self._end_turn(status, event.error_kind)
        self._wake(status)
        self._asked.clear()

    def _park(self, event: TurnParked) -> None:
        self._number = event.turn or self._number
        self._end_turn("parked")
        self._parked = True
        if self._rest is None:
            name, number = f"turn {self._number} parked", self._number
            self._rest = self._begin("wait", name, self.root, number=number)

    def _other(self, event: Forked | Rewound) -> None:
        """The conversation is another one from here on."""
        self._end_turn("unknown")
        self._wake()
        self._asked.clear()
        if isinstance(event, Forked):
            self.root.used = NOTHING
            self._mark("fork", f"of {event.session_id}, record {event.at}")
        else:
            self._mark("rewind", f"to record {event.to}")

    def _compacted(self, event: Compacted) -> None:
        count, what = (event.dropped, "message") if event.dropped else (event.shortened, "output")
        self._mark("compaction", f"of {quantity(count, what)}")

    def _checkpoint(self, event: Checkpoint) -> None:
        """Where nothing is before it, it says what is under way."""
        if self.root.name or self._number:
            return
        self._number, self._steps = event.running or event.turn, event.steps
        self._prompts = {seq: one.turn for seq, one in event.waiting}
        self._parked = event.parked or event.running > 0
        self._agent = event.attached[-1].agent if event.attached else ""
        if event.opened is not None:
            done = {one.call_id for one in event.outputs}
            self._asked = {one.id: one for one in event.opened.tool_calls if one.id not in done}

    def _attached(self, event: AgentAttached) -> None:
        self._agent = event.agent
        if self._turn is not None:
            self._turn.detail = event.agent

    def _begin(self, kind: Kind, name: str, parent: Span, start: int = 0, **told: Any) -> Span:
        start = min(self._now, max(start or self._now, parent.start))
        span = Span(kind, name, parent, self._seq, start, **told)
        self._tell(span)
        return span

    def _end(self, span: Span, status: Status) -> None:
        span.end, span.status, span.over = self._now, status, True
        self._tell(span)

    def _open_step(self, start: int = 0) -> Span:
        """The step that is under way: the next one, unless calls of the last are left."""
        turn = self._open_turn()
        if self._step is None:
            if not self._asked:
                self._steps += 1
            number = self._steps = max(1, self._steps)
            start = start or self._ready
            self._step = self._begin("step", f"step {number}", turn, start, number=number)
        return self._step

    def _end_step(self, status: Status) -> None:
        """The step is over; what is still open in it ends with it."""
        if self._model is not None:
            self._end(self._model, "interrupted" if status == "unknown" else status)
            self._model = None
        for span in (*self._tasks.values(), *self._calls.values()):
            self._end(span, "open" if status == "open" else "unknown")
        for span in self._waits.values():
            self._end(span, status)
        self._tasks, self._calls, self._waits = {}, {}, {}
        if self._step is not None:
            self._end(self._step, status)
            self._step = None
        self._unplaced, self._owed = NOTHING, None

    def _close_step(self, status: Status = "ok") -> None:
        """Close it if nothing is left to come of it."""
        if not (self._asked or self._calls or self._waits or self._model):
            self._end_step(status)
        self._ready = self._now

    # -- replies

    def _piece(self, event: Any = None) -> None:
        """Something of a reply."""
        model = self._reply()
        model.first = model.first or self._now

    def _reply(self) -> Span:
        if self._model is None:
            step, name = self._open_step(), self.root.model
            start = self._now if self._calls or self._asked else self._ready
            self._model = self._begin("model", name, step, start, model=name)
            spend(self._unplaced, step, self._model)
            self._unplaced = NOTHING
        return self._model

    def _whole(self, event: ResponseCompleted) -> None:
        self._piece()
        model, self._model = self._reply(), None
        model.model = event.model or model.model
        model.stop_reason, model.request_id = event.stop_reason, event.request_id
        model.answer, self._owed = event.message, None
        if not model.used.invocations and event.usage.total_tokens:
            spend(NOTHING.plus(event.usage, None), model)
            self._owed = event.usage
        status: Status = "failed" if event.stop_reason == "error" else "ok"
        self._end(model, "interrupted" if event.stop_reason == "interrupted" else status)
        calls = event.message.tool_calls if event.message is not None else ()
        self._asked |= {call.id: call for call in calls}
        owed, self._ready = self._owed, self._now
        self._close_step(model.status)
        self._owed = owed

    def _used(self, event: UsageReported) -> None:
        used = NOTHING.plus(event.usage, event.cost)
        spend(used, self.root, self._turn)
        if event.purpose in ("title", "summary"):
            self._aside(event, used)
            return
        spend(used, self._step)
        if event.purpose == "task":
            return
        if self._model is not None:
            spend(used, self._model)
            self._model.model = event.model or self._model.model
        elif self._step is None and event.usage != self._owed:
            self._unplaced = summed(self._unplaced, used)
        self._owed = None

    def _aside(self, event: UsageReported, used: ExecutionMetrics) -> None:
        """A request beside the conversation: for a title, or for a summary of what was before."""
        start, parent = self._now, self._turn or self.root
        if self._turn is not None:
            start = self._turn.start if event.purpose == "title" else self._ready
        told = {"model": event.model, "detail": event.purpose}
        self._end(self._begin("model", event.purpose, parent, start, used=used, **told), "ok")
        if event.purpose == "summary":
            self._ready = self._now

    def _trace(self, event: TraceEvent) -> None:
        if event.kind == "retry":
            self._reply().retries += 1
        elif event.kind == "error" and isinstance(event.detail, dict):
            self._reply().error = str(event.detail.get("kind", "")) or "agent"

    def _interrupted(self, event: InterruptRequested) -> None:
        if self._turn and not (self._step or self._asked):
            self._reply()  # it was asked, and nothing of its reply had come

    # -- calls

    def _question(self, event: ApprovalAsked) -> None:
        call = event.call
        step = self._open_step(self._now)
        if call.id not in self._waits:
            told: dict[str, Any] = {"call_id": call.id, "asked": call}
            self._waits[call.id] = self._begin("wait", f"approval of {call.name}", step, **told)

    def _answered(self, event: ApprovalAnswered) -> None:
        if (wait := self._waits.pop(event.call_id, None)) is not None:
            self._end(wait, "ok" if event.allowed else "refused")
            self._close_step()

    def _intended(self, event: CallIntended) -> None:
        step = self._open_step(self._now)
        call = self._asked.pop(event.call_id, None)
        if event.call_id not in self._calls:
            told: dict[str, Any] = {"call_id": event.call_id, "asked": call}
            self._calls[event.call_id] = self._begin("tool", event.name, step, **told)

    def _child(self, event: ChildStarted) -> None:
        if (above := self._calls.get(event.call_id)) is not None:
            child, call_id = event.session_id, event.call_id
            told: dict[str, Any] = {"child": child, "detail": event.agent, "call_id": call_id}
            self._tasks[child] = self._begin("task", f"task {child}", above, **told)

    def _child_ended(self, event: ChildEnded) -> None:
        """What it used was counted on the way, of the step and above; here of the task."""
        if (task := self._tasks.pop(event.session_id, None)) is not None:
            spend(event.metrics, task, task.parent)
            self._end(task, "ok" if event.reason == "done" else event.reason)

    def _result(self, event: ToolResultEvent) -> None:
        output = event.output
        known, span = self._asked.get(output.call_id), self._calls.pop(output.call_id, None)
        if span is None and known is None and self._step is None:
            return  # a second result, or that of a call that ended with its process
        status = _status(output, begun=span is not None)
        for task in [one for one in self._tasks.values() if one.parent is span]:
            self._end(self._tasks.pop(task.child), "unknown")
        if (wait := self._waits.pop(output.call_id, None)) is not None:
            self._end(wait, "interrupted")
        if span is None:
            name = output.name or (known.name if known is not None else "")
            start = self._ready if status == "ok" else self._now
            told = {"call_id": output.call_id, "asked": known}
            span = self._begin("tool", name, self._open_step(self._now), start, **told)
        self._asked.pop(output.call_id, None)
        span.answer = output
        self._end(span, status)
        self._close_step()


_PIECE: Callable[[Tracing, Any], None] = Tracing._piece
_TAKEN_UP: Callable[[Tracing, Any], None] = Tracing._taken_up
_FOLDS: dict[type, Callable[[Tracing, Any], None]] = {
    SessionStarted: _TAKEN_UP,
    Repaired: _TAKEN_UP,
    PromptReceived: Tracing._prompt,
    MessageAdded: Tracing._message,
    TextDelta: _PIECE,
    ThinkingDelta: _PIECE,
    ToolCallStarted: _PIECE,
    ToolCallArgsDelta: _PIECE,
    ToolCallReady: _PIECE,
    TraceEvent: Tracing._trace,
    InterruptRequested: Tracing._interrupted,
    UsageReported: Tracing._used,
    ResponseCompleted: Tracing._whole,
    ApprovalAsked: Tracing._question,
    ApprovalAnswered: Tracing._answered,
    CallIntended: Tracing._intended,
    ToolResultEvent: Tracing._result,
    ChildStarted: Tracing._child,
    ChildEnded: Tracing._child_ended,
    TurnEnded: Tracing._ended,
    TurnParked: Tracing._park,
    AgentAttached: Tracing._attached,
    Forked: Tracing._other,
    Rewound: Tracing._other,
    Compacted: Tracing._compacted,
    Checkpoint: Tracing._checkpoint,
}


def trace(records: Iterable[Record]) -> Node | None:
    """The tree of a log, or of any beginning of one; None where there is nothing."""
    tree = Growing()
    tracing = Tracing(tree.tell)
    for record in records:
        tracing.apply(record)
    tracing.close()
    return tree.root
