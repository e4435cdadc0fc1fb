"""A session told from its log: prompts, answers, calls, questions, ends and costs. Pure.

Deltas are left out: the messages say the same, whole. `#24` is the number of a record.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from bridle.cli import render
from bridle.cli.milestone import milestones
from bridle.cli.style import Paint
from bridle.cli.wrap import wrapped
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Forked,
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
from bridle.messages import Message, ToolOutput
from bridle.promises.store import Record, SessionSummary
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import neutral

UNKNOWN = "no result was recorded"  # how the engine begins to say it, without its imports


def heading(found: SessionSummary, path: str, paint: Paint) -> Iterator[str]:
    """Which session this is."""
    yield paint.bold(render.one_line(found.title) or render.one_line(found.id))
    for name, value in (
        ("session", found.id),
        ("tags", ", ".join(found.tags)),
        ("folder", found.workspace),
        ("model", found.model),
        ("log", path),
    ):
        if value:
            yield paint.dim(f"{name:8} {render.one_line(value)}")


class Story:
    """Is fed records, in order, and gives lines; keeps count of what it cost."""

    def __init__(self, paint: Paint, width: int, *, thinking: bool = False) -> None:
        self._paint = paint
        self._width = width
        self._thinking = thinking
        self._turn = ExecutionMetrics()
        self._all = ExecutionMetrics()
        self._asked: dict[str, ApprovalAsked] = {}
        self._begun: dict[str, str] = {}  # calls without a result, by id: their names
        self._calls: dict[str, str] = {}  # of a reply with several: what to call them

    def lines(self, record: Record) -> Iterator[str]:
        """What is to be read of one record; often nothing."""
        event, paint, width = record.event, self._paint, self._width
        match event:
            case SessionStarted() if event.resumed:
                yield paint.dim(f"  ─ taken up again, {render.one_line(record.timestamp)}")
            case PromptReceived():
                yield ""
                yield from self._prompt(event)
            case ResponseCompleted(message=Message() as message):
                yield from self._reply(message)
            case ApprovalAsked():
                self._asked[event.call.id] = event
                yield render.asked_line(event, paint, width)
            case ApprovalAnswered():
                self._asked.pop(event.call_id, None)
                yield render.answered_line(event, paint, width)
            case TraceEvent():
                yield from filter(None, [render.trace_line(event, paint, width)])
            case _:
                yield from self._rest(record)

    def total(self) -> Iterator[str]:
        """What is open at the end, and what the whole session used."""
        paint = self._paint
        for name in self._begun.values():
            said = f"{render.one_line(name)} was begun and has no result: nobody knows what it did"
            yield f"  {paint.yellow('?')} {said}"
        for asked in self._asked.values():
            said = f"{render.one_line(asked.call.name)} waits for an answer: bridle approvals list"
            yield f"  {paint.yellow('?')} {said}"
        yield ""
        yield f"{paint.bold('in all')}  {render.usage_line(self._all)}"

    def _rest(self, record: Record) -> Iterator[str]:
        event, paint, width = record.event, self._paint, self._width
        match event:
            case CallIntended():
                self._begun[event.call_id] = event.name
            case ToolResultEvent(output=output):
                yield from self._result(output)
            case TodosChanged(todos=todos):
                yield from render.todo_lines(todos, paint, width)
            case UsageReported(usage=usage, cost=cost):
                self._turn = self._turn.plus(usage, cost)
                self._all = self._all.plus(usage, cost)
            case TurnEnded():
                yield from filter(None, [render.end_line(event, paint)])
                yield paint.dim(f"  {render.usage_line(self._turn)} · #{record.seq}")
                self._settle()
            case _:
                yield from milestones(event, paint)
                if isinstance(event, Forked | Rewound):
                    self._settle()
                if isinstance(event, Forked):  # what was paid there is not this session's
                    self._all = ExecutionMetrics()

    def _settle(self) -> None:
        """Nothing that was asked or begun before is open any more."""
        self._turn = ExecutionMetrics()
        self._asked.clear()
        self._begun.clear()

    def _result(self, output: ToolOutput) -> Iterator[str]:
        self._begun.pop(output.call_id, None)
        self._asked.pop(output.call_id, None)
        self._count_call()
        if output.text.startswith(UNKNOWN):
            said = "unknown: the process ended before a result was recorded; it may have run"
            yield f"  {self._paint.yellow('?')} {said}"
        else:
            name = self._calls.get(output.call_id, "")
            yield from render.result_lines(output, self._paint, self._width, of=name)

    def _count_call(self) -> None:
        self._turn = replace(self._turn, tool_calls=self._turn.tool_calls + 1)
        self._all = replace(self._all, tool_calls=self._all.tool_calls + 1)

    def _prompt(self, event: PromptReceived) -> Iterator[str]:
        first, *rest = neutral(event.content).split("\n")
        by = "" if event.by == "me" else self._paint.dim(f" ({render.one_line(event.by)})")
        yield f"{self._paint.cyan('❯')} {self._paint.bold(first)}{by}"
        yield from (f"  {self._paint.bold(line)}" for line in rest)
        media = sum(part.__struct_config__.tag in ("image", "file") for part in event.parts)
        if media:
            yield self._paint.dim(f"  with {render.counted(media, 'attachment')}")

    def _reply(self, message: Message) -> Iterator[str]:
        if self._thinking and message.reasoning:
            yield self._paint.dim(neutral(message.reasoning))
        if message.content.strip():
            yield wrapped(neutral(message.content).strip("\n"), self._width)
        calls = message.tool_calls
        several = calls if len(calls) > 1 else ()
        self._calls = {call.id: f"{call.name} {render.subject_of(call)}" for call in several}
        for call in calls:
            yield render.call_line(call, self._paint, self._width)
