"""A session told from its log: prompts, answers, calls, questions, ends and costs. Pure.

Deltas are left out: the messages say the same, whole. `#24` is the number of a record.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from bridle.cli import event_lines
from bridle.cli.event_lines import StepCounter, notice_lines, trace_line
from bridle.cli.style import Paint, cut, wrapped
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Forked,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TodosChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, ToolOutput, outcome_of
from bridle.presentation.approvals import answer_text, is_unanswered
from bridle.protocols.store import Record, SessionSummary
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import flat, neutral, quantity


def heading(found: SessionSummary, path: str, paint: Paint) -> Iterator[str]:
    """Which session this is."""
    yield paint.bold(flat(found.title) or flat(found.id))
    for name, value in (
        ("session", found.id),
        ("tags", ", ".join(found.tags)),
        ("folder", found.workspace),
        ("model", found.model),
        ("log", path),
    ):
        if value:
            yield paint.dim(f"{name:8} {flat(value)}")


class Story:
    """Is fed records, in order, and gives lines; keeps count of what it cost."""

    def __init__(self, paint: Paint, width: int, *, thinking: bool = False, me: str = "me") -> None:
        self._paint = paint
        self._width = width
        self._thinking = thinking
        self._me = me  # whose deeds need no name
        self._turn = ExecutionMetrics()
        self._all = ExecutionMetrics()
        self._steps = StepCounter()
        self._more = 0  # steps that agents have not counted one by one
        self._asked: dict[str, ApprovalAsked] = {}
        self._waiting: dict[int, PromptReceived] = {}
        self._begun: dict[str, str] = {}  # calls without a result, by id: their names
        self._unheard: dict[str, str] = {}  # why calls did not run that no person refused
        self._commands: dict[str, str] = {}  # what the calls of the newest reply run, by id
        self._calls: dict[str, str] = {}  # of a reply with several: what to call them

    def lines(self, record: Record) -> Iterator[str]:
        """What is to be read of one record; often nothing."""
        event, paint, width = record.event, self._paint, self._width
        self._steps.add(event)
        match event:
            case SessionStarted() if event.resumed and event.mode != "cli":
                yield paint.dim(f"  ─ resumed, {flat(record.timestamp)}")
            case PromptReceived() | MessageAdded():
                yield from self._prompts(record.seq, event)
            case ResponseCompleted(message=Message() as message):
                yield from self._reply(message)
            case ApprovalAsked():
                self._asked[event.call.id] = event
                yield event_lines.asked_line(event, paint, width)
            case ApprovalAnswered():
                self._asked.pop(event.call_id, None)
                if is_unanswered(event):  # the line of its result says it
                    self._unheard[event.call_id] = answer_text(event)
                else:
                    yield event_lines.answered_line(event, paint, width, self._me)
            case TraceEvent():
                yield from filter(None, [trace_line(event, paint, width)])
            case _:
                yield from self._rest(record)

    def total(self, holder: str = "") -> Iterator[str]:
        """What is open at the end, and what the whole session used. `holder` has it open now."""
        paint = self._paint
        unknown = f"runs now, in {holder}" if holder else "has no result: nobody knows what it did"
        for name in self._begun.values():
            yield f"  {paint.yellow('?')} {flat(name)} was begun and {unknown}"
        for prompt in self._waiting.values():
            said = flat(prompt.content)
            yield cut(f"  {paint.yellow('…')} waits to be sent to the model: {said}", self._width)
        for asked in self._asked.values():
            said = f"{flat(asked.call.name)} waits for an answer: bridle approvals list"
            yield f"  {paint.yellow('?')} {said}"
        yield ""
        used = event_lines.usage_line(self._all, self._all.invocations + self._more)
        yield f"{paint.bold('in all')}  {used}"

    def _rest(self, record: Record) -> Iterator[str]:
        event, paint, width = record.event, self._paint, self._width
        match event:
            case CallIntended():
                self._begun[event.call_id] = event.name
            case ToolResultEvent(output=output):
                yield from self._result(output)
            case TodosChanged(todos=todos):
                yield from event_lines.todo_lines(todos, paint, width)
            case UsageReported(usage=usage, cost=cost):
                self._turn = self._turn.plus(usage, cost)
                self._all = self._all.plus(usage, cost)
            case TurnEnded():
                yield from filter(None, [event_lines.end_line(event, paint)])
                used = event_lines.usage_line(self._turn, self._steps.count)
                self._more += max(0, self._steps.count - self._turn.invocations)
                yield paint.dim(f"  {used} · #{record.seq}")
                self._settle()
            case _:
                name_of = self._begun.get
                yield from notice_lines(event, paint, lambda call: name_of(call, ""), self._me)
                if isinstance(event, Forked | Rewound):
                    self._settle()
                if isinstance(event, Forked):  # what was paid there is not this session's
                    self._all, self._more = ExecutionMetrics(), 0

    def _settle(self) -> None:
        """Nothing that was asked or begun before is open any more."""
        self._turn = ExecutionMetrics()
        self._steps = StepCounter()
        self._asked.clear()
        self._begun.clear()

    def _result(self, output: ToolOutput) -> Iterator[str]:
        self._begun.pop(output.call_id, None)
        self._asked.pop(output.call_id, None)
        self._count_call()
        if outcome_of(output) == "unknown":
            name = flat(output.name) or "the call"
            yield f"  {self._paint.yellow('?')} {name}: unknown, no result was ever recorded"
        else:
            name = self._calls.get(output.call_id, "")
            why = self._unheard.pop(output.call_id, output.text)
            output = replace(output, text=why)
            command = self._commands.get(output.call_id, "")
            yield from event_lines.result_lines(
                output, self._paint, self._width, of=name, command=command
            )

    def _count_call(self) -> None:
        self._turn = replace(self._turn, tool_calls=self._turn.tool_calls + 1)
        self._all = replace(self._all, tool_calls=self._all.tool_calls + 1)

    def _prompts(self, seq: int, event: PromptReceived | MessageAdded) -> Iterator[str]:
        """A prompt is told where it reaches the model; one that waits for nothing, at once."""
        if isinstance(event, MessageAdded):
            if (waited := self._waiting.pop(event.prompt, None)) is not None:
                yield from self._prompt(waited)
        elif event.when == "idle":
            yield from self._prompt(event)
        else:
            self._waiting[seq] = event

    def _prompt(self, event: PromptReceived) -> Iterator[str]:
        yield ""
        first, *rest = neutral(event.content).split("\n")
        by = "" if event.by in ("me", self._me) else self._paint.dim(f" ({flat(event.by)})")
        yield f"{self._paint.cyan('❯')} {self._paint.bold(first)}{by}"
        yield from (f"  {self._paint.bold(line)}" for line in rest)
        media = sum(part.__struct_config__.tag in ("image", "file") for part in event.parts)
        if media:
            yield self._paint.dim(f"  with {quantity(media, 'attachment')}")

    def _reply(self, message: Message) -> Iterator[str]:
        if self._thinking and message.reasoning:
            yield self._paint.dim(neutral(message.reasoning))
        if message.content.strip():
            yield wrapped(neutral(message.content).strip("\n"), self._width)
        calls = message.tool_calls
        several = calls if len(calls) > 1 else ()
        self._commands = {one.id: str(one.arguments.get("command", "")) for one in calls}
        self._calls = {call.id: f"{call.name} {event_lines.subject_of(call)}" for call in several}
        for call in calls:
            yield event_lines.call_line(call, self._paint, self._width)
