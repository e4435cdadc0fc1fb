"""A session's log as a tree of spans: what took time, and what it used. A pure fold.

    session > turn > step > model call, tool call (> task), wait for a person

`SpanBuilder` reads records one by one and reports spans as they begin and end. It stores open spans
only, so it can read a log of any size and follow a running session. Any beginning of a log gives a
proper tree: children lie within their parents, whatever the clock did.

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
    "open",  # it has not ended, or it is not known that it has
    "ok",
    "failed",
    "refused",  # by a rule, by a person, or because the call was not valid
    "interrupted",
    "unknown",  # it had begun, and no record says whether it ended
    "not_run",
    "parked",
    "timeout",
    "budget",
    "stuck",
    "max_tokens",
]


NOTHING = ExecutionMetrics()


class Span(Struct, eq=False):
    """Something that took time, from `start` to `end` in milliseconds since 1970.

    It may change until it is `over`. `seq` is the number of the record that it begins with, and
    `number` that of the turn or the step. `used` is what it and everything below it used.
    `request` and `response` are content, for readers that may show it: a turn's prompt; a call and
    its output; a model's reply. `child` is a task's session. `detail` is the kind of an error, the
    purpose of a request beside the turn, the agent that runs a turn, or the text of a mark. `first`
    is when the first piece of a reply arrived, `retries` how many tries failed before it.
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
    request: Any = None
    response: Any = None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1000

    @property
    def id(self) -> str:
        """Its id within its session. One record can begin several spans, of different kinds."""
        return f"{self.kind}-{self.seq}" + (f"-{self.call_id}" if self.call_id else "")


OnSpan = Callable[[Span], None]  # called when a span begins and when it ends


def add_metrics(earlier: ExecutionMetrics, later: ExecutionMetrics) -> ExecutionMetrics:
    """Return the sum of both; `context_tokens` is the later one's."""
    return ExecutionMetrics(
        earlier.total_input_tokens + later.total_input_tokens,
        earlier.total_output_tokens + later.total_output_tokens,
        earlier.invocations + later.invocations,
        earlier.cache_read_tokens + later.cache_read_tokens,
        earlier.cache_write_tokens + later.cache_write_tokens,
        later.context_tokens,
        earlier.tool_calls + later.tool_calls,
        earlier.cost + later.cost,
        earlier.unpriced + later.unpriced,
        earlier.tokens + later.tokens,
    )


def spend(used: ExecutionMetrics, *spans: Span | None) -> None:
    """Add what was used to each of these spans."""
    if used is not NOTHING:
        for span in spans:
            if span is not None:
                span.used = add_metrics(span.used, used)


class Node(Struct, eq=False):
    """A span and what is below it, in the order in which it began."""

    span: Span
    below: "list[Node]" = field(default_factory=list)

    def walk(self) -> "Iterator[Node]":
        """Yield this node and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.below)


class SpanTree:
    """A tree of all spans, which grows as they begin. For logs that are not huge."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: dict[int, Node] = {}

    def add(self, span: Span) -> None:
        """Add a span that begins, or forget that one is open."""
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


class SpanBuilder:
    """Takes the records of one session in order, and reports each span when it begins and ends."""

    def __init__(self, on_span: OnSpan) -> None:
        self._report = on_span
        self.root = Span("session", "")
        self._now = 0
        self._seq = 0
        self._turn: Span | None = None
        self._step: Span | None = None
        self._model: Span | None = None
        self._steps = 0  # of the newest turn
        self._ready_at = 0  # when the next request could be made
        self._pending_calls: dict[str, ToolCall] = {}  # calls of the step that have not begun
        self._calls: dict[str, Span] = {}  # calls that have begun
        self._tasks: dict[str, Span] = {}  # subagents of those, by session
        self._waits: dict[str, Span] = {}  # for approvals, by call id
        self._early_usage = NOTHING  # reported before anything of its reply
        self._unreported_usage: Usage | None = None  # from a reply whose own report may follow
        self._timestamp = ""  # of the newest record
        self._process_ended = False  # the records now end what another process has left open
        self._parked_wait: Span | None = None  # open while a turn is parked
        self._number = 0  # the newest turn
        self._parked = False
        self._prompts: dict[int, int] = {}  # the turns of prompts that wait, by record
        self._agent = ""

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _FOLDS.get(type(record.event))
        if fold is None or (fold is _ON_DELTA and self._model is not None and self._model.first):
            self._timestamp = record.timestamp  # one of very many
            return
        if fold is _ON_OPENED and self._turn is not None:
            self._advance_clock()
            self._process_ended = (
                True  # before the clock moves on: open spans ended with their process
            )
        self._timestamp, self._seq = record.timestamp, record.seq
        self._advance_clock()
        if not self.root.seq:
            self.root.seq, self.root.start = record.seq, self._now
            self._report(self.root)
        fold(self, record.event)

    def close(self, at: int = 0) -> None:
        """End all spans: there are no more records. What has not ended by itself has status `open`.

        Such spans end with the newest record, or at `at` if they are known to be running still.
        """
        self._advance_clock()
        self._now = max(self._now, at)
        self._end_step("open")
        left = [span for span in (self._turn, self._parked_wait) if span is not None]
        for span in left:
            self._end(span, "open")
        if self.root.seq:
            self._end(self.root, "open" if left else "ok")
        self._turn = self._parked_wait = None

    def restart(self) -> None:
        """Begin a new session span: the records from here on are another process's."""
        self.root = Span("session", self.root.name, model=self.root.model)

    def _advance_clock(self) -> None:
        """Set the clock to the record's time. It never goes back, and stops with its process."""
        if self._process_ended:
            return
        try:
            moment = datetime.fromisoformat(self._timestamp).timestamp()
        except (ValueError, OverflowError):
            return  # without a valid time, the clock stays as it is
        self._now = max(self._now, round(moment * 1000))

    def _open_turn(self, number: int = 0, request: Any = None) -> Span:
        """Return the span of the running turn; if the turn was parked, begin another one."""
        if self._turn is None:
            if not self._parked:
                self._number, self._steps = number or self._number + 1, 0
                self._pending_calls.clear()
            self._end_parked_wait()
            self._ready_at = self._now
            name, details = f"turn {self._number}", {"model": self.root.model, "request": request}
            details |= {"number": self._number, "detail": self._agent}
            self._turn = self._begin("turn", name, self.root, **details)
        return self._turn

    def _end_turn(self, status: Status, error: str = "") -> None:
        if (turn := self._turn) is not None:
            self._end_step(status if status in ("parked", "interrupted") else "unknown")
            turn.error = error
            self._end(turn, status)
            self._turn = None
        self._process_ended = False
        self._advance_clock()

    def _end_parked_wait(self, status: Status = "ok") -> None:
        """End the wait of a parked turn: it is resumed, or was ended."""
        self._parked = False
        if self._parked_wait is not None:
            self._end(self._parked_wait, status)
            self._parked_wait = None

    def _mark(self, name: str, detail: str = "") -> None:
        span = self._begin("mark", name, self._turn or self.root, detail=detail)
        self._end(span, "ok")

    def _on_opened(self, event: SessionStarted | Repaired) -> None:
        if isinstance(event, SessionStarted):
            self.root.name, self.root.model = event.session_id, event.model
        else:
            self._mark("repair")

    def _on_prompt(self, event: PromptReceived) -> None:
        if event.turn:
            self._prompts[self._seq] = event.turn
        else:  # another program's log: a turn ends where the next begins
            self._end_turn("ok")
            self._open_turn(request=event.content)

    def _on_message(self, event: MessageAdded) -> None:
        number = self._prompts.pop(event.prompt, 0)
        number = event.turn or number
        if not event.prompt:
            self._add_other_reply(event)
            return
        if self._turn is not None and number not in (0, self._number):
            self._end_turn("unknown")  # its end is lost
        self._parked = self._parked and number in (0, self._number)
        self._open_turn(number, event.message.content)

    def _add_other_reply(self, event: MessageAdded) -> None:
        """Add a reply of another program's log. History that was added comes between turns."""
        if self._turn is not None and event.message.role == "assistant":
            stop = "tool_use" if event.message.tool_calls else "complete"
            self._on_reply(ResponseCompleted(stop, event.message))  # type: ignore[arg-type] # literals

    def _on_turn_ended(self, event: TurnEnded) -> None:
        self._number = max(self._number, event.turn)
        status: Status = "ok" if event.reason == "done" else event.reason
        self._end_turn(status, event.error_kind)
        self._end_parked_wait(status)
        self._pending_calls.clear()

    def _on_turn_parked(self, event: TurnParked) -> None:
        self._number = event.turn or self._number
        self._end_turn("parked")
        self._parked = True
        if self._parked_wait is None:
            name, number = f"turn {self._number} parked", self._number
            self._parked_wait = self._begin("wait", name, self.root, number=number)

    def _on_history_replaced(self, event: Forked | Rewound) -> None:
        """End the turn: from here on the conversation is another one."""
        self._end_turn("unknown")
        self._end_parked_wait()
        self._pending_calls.clear()
        if isinstance(event, Forked):
            self.root.used = NOTHING
            self._mark("fork", f"of {event.session_id}, record {event.at}")
        else:
            self._mark("rewind", f"to record {event.to}")

    def _on_compacted(self, event: Compacted) -> None:
        count, what = (event.dropped, "message") if event.dropped else (event.shortened, "output")
        self._mark("compaction", f"of {quantity(count, what)}")

    def _on_checkpoint(self, event: Checkpoint) -> None:
        """At the beginning of a log, take the state that the checkpoint has."""
        if self.root.name or self._number:
            return
        self._number, self._steps = event.running or event.turn, event.steps
        self._prompts = {seq: prompt.turn for seq, prompt in event.waiting}
        self._parked = event.parked or event.running > 0
        self._agent = event.attached[-1].agent if event.attached else ""
        if event.opened is not None:
            done = {output.call_id for output in event.outputs}
            calls = event.opened.tool_calls
            self._pending_calls = {call.id: call for call in calls if call.id not in done}

    def _on_agent_attached(self, event: AgentAttached) -> None:
        self._agent = event.agent
        if self._turn is not None:
            self._turn.detail = event.agent

    def _begin(self, kind: Kind, name: str, parent: Span, start: int = 0, **details: Any) -> Span:
        start = min(self._now, max(start or self._now, parent.start))
        span = Span(kind, name, parent, self._seq, start, **details)
        self._report(span)
        return span

    def _end(self, span: Span, status: Status) -> None:
        span.end, span.status, span.over = self._now, status, True
        self._report(span)

    def _open_step(self, start: int = 0) -> Span:
        """Return the span of the running step; if none is open, begin one."""
        turn = self._open_turn()
        if self._step is None:
            if not self._pending_calls:
                self._steps += 1
            number = self._steps = max(1, self._steps)
            start = start or self._ready_at
            self._step = self._begin("step", f"step {number}", turn, start, number=number)
        return self._step

    def _end_step(self, status: Status) -> None:
        """End the step, and everything that is still open in it."""
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
        self._early_usage, self._unreported_usage = NOTHING, None

    def _close_step(self, status: Status = "ok") -> None:
        """End the step if nothing more of it is expected."""
        if not (self._pending_calls or self._calls or self._waits or self._model):
            self._end_step(status)
        self._ready_at = self._now

    # -- replies

    def _on_delta(self, event: Any = None) -> None:
        """Note when the first piece of a reply arrived."""
        model = self._open_model_call()
        model.first = model.first or self._now

    def _open_model_call(self) -> Span:
        if self._model is None:
            step, name = self._open_step(), self.root.model
            start = self._now if self._calls or self._pending_calls else self._ready_at
            self._model = self._begin("model", name, step, start, model=name)
            spend(self._early_usage, step, self._model)
            self._early_usage = NOTHING
        return self._model

    def _on_reply(self, event: ResponseCompleted) -> None:
        self._on_delta()
        model, self._model = self._open_model_call(), None
        model.model = event.model or model.model
        model.stop_reason, model.request_id = event.stop_reason, event.request_id
        model.response, self._unreported_usage = event.message, None
        if not model.used.invocations and event.usage.total_tokens:
            spend(NOTHING.plus(event.usage, None), model)
            self._unreported_usage = event.usage
        status: Status = "failed" if event.stop_reason == "error" else "ok"
        self._end(model, "interrupted" if event.stop_reason == "interrupted" else status)
        calls = event.message.tool_calls if event.message is not None else ()
        self._pending_calls |= {call.id: call for call in calls}
        owed, self._ready_at = self._unreported_usage, self._now
        self._close_step(model.status)
        self._unreported_usage = owed

    def _on_usage(self, event: UsageReported) -> None:
        used = NOTHING.plus(event.usage, event.cost)
        spend(used, self.root, self._turn)
        if event.purpose in ("title", "summary"):
            self._add_side_request(event, used)
            return
        spend(used, self._step)
        if event.purpose == "task":
            return
        if self._model is not None:
            spend(used, self._model)
            self._model.model = event.model or self._model.model
        elif self._step is None and event.usage != self._unreported_usage:
            self._early_usage = add_metrics(self._early_usage, used)
        self._unreported_usage = None

    def _add_side_request(self, event: UsageReported, used: ExecutionMetrics) -> None:
        """Add a request beside the conversation: for a title, or for a summary."""
        start, parent = self._now, self._turn or self.root
        if self._turn is not None:
            start = self._turn.start if event.purpose == "title" else self._ready_at
        details = {"model": event.model, "detail": event.purpose}
        self._end(self._begin("model", event.purpose, parent, start, used=used, **details), "ok")
        if event.purpose == "summary":
            self._ready_at = self._now

    def _on_trace(self, event: TraceEvent) -> None:
        if event.kind == "retry":
            self._open_model_call().retries += 1
        elif event.kind == "error" and isinstance(event.detail, dict):
            self._open_model_call().error = str(event.detail.get("kind", "")) or "agent"

    def _on_interrupt(self, event: InterruptRequested) -> None:
        if self._turn and not (self._step or self._pending_calls):
            self._open_model_call()  # it was asked, and nothing of its reply had arrived

    # -- calls

    def _on_approval_asked(self, event: ApprovalAsked) -> None:
        call = event.call
        step = self._open_step(self._now)
        if call.id not in self._waits:
            details: dict[str, Any] = {"call_id": call.id, "request": call}
            self._waits[call.id] = self._begin("wait", f"approval of {call.name}", step, **details)

    def _on_approval_answered(self, event: ApprovalAnswered) -> None:
        if (wait := self._waits.pop(event.call_id, None)) is not None:
            self._end(wait, "ok" if event.allowed else "refused")
            self._close_step()

    def _on_call_intended(self, event: CallIntended) -> None:
        step = self._open_step(self._now)
        call = self._pending_calls.pop(event.call_id, None)
        if event.call_id not in self._calls:
            details: dict[str, Any] = {"call_id": event.call_id, "request": call}
            self._calls[event.call_id] = self._begin("tool", event.name, step, **details)

    def _on_child_started(self, event: ChildStarted) -> None:
        if (above := self._calls.get(event.call_id)) is not None:
            child, call_id = event.session_id, event.call_id
            details: dict[str, Any] = {"child": child, "detail": event.agent, "call_id": call_id}
            self._tasks[child] = self._begin("task", f"task {child}", above, **details)

    def _on_child_ended(self, event: ChildEnded) -> None:
        """End a task. Its use was added to the step and above as it was reported."""
        if (task := self._tasks.pop(event.session_id, None)) is not None:
            spend(event.metrics, task, task.parent)
            self._end(task, "ok" if event.reason == "done" else event.reason)

    def _on_result(self, event: ToolResultEvent) -> None:
        output = event.output
        known, span = self._pending_calls.get(output.call_id), self._calls.pop(output.call_id, None)
        if span is None and known is None and self._step is None:
            return  # a second result, or one of a call that ended with its process
        status = _status(output, begun=span is not None)
        for task in [task for task in self._tasks.values() if task.parent is span]:
            self._end(self._tasks.pop(task.child), "unknown")
        if (wait := self._waits.pop(output.call_id, None)) is not None:
            self._end(wait, "interrupted")
        if span is None:
            name = output.name or (known.name if known is not None else "")
            start = self._ready_at if status == "ok" else self._now
            details = {"call_id": output.call_id, "request": known}
            span = self._begin("tool", name, self._open_step(self._now), start, **details)
        self._pending_calls.pop(output.call_id, None)
        span.response = output
        self._end(span, status)
        self._close_step()


_ON_DELTA: Callable[[SpanBuilder, Any], None] = SpanBuilder._on_delta
_ON_OPENED: Callable[[SpanBuilder, Any], None] = SpanBuilder._on_opened
_FOLDS: dict[type, Callable[[SpanBuilder, Any], None]] = {
    SessionStarted: _ON_OPENED,
    Repaired: _ON_OPENED,
    PromptReceived: SpanBuilder._on_prompt,
    MessageAdded: SpanBuilder._on_message,
    TextDelta: _ON_DELTA,
    ThinkingDelta: _ON_DELTA,
    ToolCallStarted: _ON_DELTA,
    ToolCallArgsDelta: _ON_DELTA,
    ToolCallReady: _ON_DELTA,
    TraceEvent: SpanBuilder._on_trace,
    InterruptRequested: SpanBuilder._on_interrupt,
    UsageReported: SpanBuilder._on_usage,
    ResponseCompleted: SpanBuilder._on_reply,
    ApprovalAsked: SpanBuilder._on_approval_asked,
    ApprovalAnswered: SpanBuilder._on_approval_answered,
    CallIntended: SpanBuilder._on_call_intended,
    ToolResultEvent: SpanBuilder._on_result,
    ChildStarted: SpanBuilder._on_child_started,
    ChildEnded: SpanBuilder._on_child_ended,
    TurnEnded: SpanBuilder._on_turn_ended,
    TurnParked: SpanBuilder._on_turn_parked,
    AgentAttached: SpanBuilder._on_agent_attached,
    Forked: SpanBuilder._on_history_replaced,
    Rewound: SpanBuilder._on_history_replaced,
    Compacted: SpanBuilder._on_compacted,
    Checkpoint: SpanBuilder._on_checkpoint,
}


def trace(records: Iterable[Record]) -> Node | None:
    """Return the tree of a log, or of any beginning of one; None if there are no records."""
    tree = SpanTree()
    builder = SpanBuilder(tree.add)
    for record in records:
        builder.apply(record)
    builder.close()
    return tree.root
