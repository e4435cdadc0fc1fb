"""The spans of a step: replies of the model, calls, tasks, waits for a person. Part of a fold.

Which turn they belong to, and what time it is, is known in `tracing.py`.
"""

from typing import Any

from bridle.engine.calls import INTERRUPTED, NOT_STOPPED, SO_FAR
from bridle.engine.conversation import NOT_RUN, UNKNOWN
from bridle.engine.traced import NOTHING, Kind, Span, Status, Tell, spend, summed
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    ChildEnded,
    ChildStarted,
    ResponseCompleted,
    ToolResultEvent,
    TraceEvent,
    UsageReported,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.usage import ExecutionMetrics, Usage

_SAID: dict[str, Status] = {
    NOT_RUN: "not_run",
    UNKNOWN: "unknown",
    INTERRUPTED: "interrupted",
    NOT_STOPPED: "interrupted",
}


class Steps:
    """What is open of the turn's newest step."""

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

    def _open_turn(self) -> Span:
        raise NotImplementedError

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
        elif event.kind == "interrupt" and self._turn and not (self._step or self._asked):
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


def _status(output: ToolOutput, *, begun: bool) -> Status:
    if not output.is_error:
        return "ok"
    return _SAID.get(output.text.partition(SO_FAR)[0]) or ("failed" if begun else "refused")
