"""A session told from its log: prompts, answers, calls, questions, ends and costs. Pure.

Deltas are left out: the messages say the same, whole.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from bridle.cli import render
from bridle.cli.style import Paint
from bridle.cli.wrap import wrapped
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    TodosChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message
from bridle.promises.store import Record, SessionSummary
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import neutral


def heading(found: SessionSummary, path: str, paint: Paint) -> Iterator[str]:
    """Which session this is."""
    yield paint.bold(render.one_line(found.title) or render.one_line(found.id))
    for name, value in (
        ("session", found.id),
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
                yield render.asked_line(event, paint, width)
            case ApprovalAnswered():
                yield render.answered_line(event, paint, width)
            case TraceEvent():
                yield from filter(None, [render.trace_line(event, paint, width)])
            case _:
                yield from self._rest(record)

    def total(self) -> str:
        """What the whole session used."""
        return f"\n{self._paint.bold('in all')}  {render.usage_line(self._all)}"

    def _rest(self, record: Record) -> Iterator[str]:
        event, paint, width = record.event, self._paint, self._width
        match event:
            case ToolResultEvent(output=output):
                self._count_call()
                yield from render.result_lines(output, paint, width)
            case TodosChanged(todos=todos):
                yield from render.todo_lines(todos, paint, width)
            case UsageReported(usage=usage, cost=cost):
                self._turn = self._turn.plus(usage, cost)
                self._all = self._all.plus(usage, cost)
            case TurnEnded():
                yield from filter(None, [render.end_line(event, paint)])
                yield paint.dim(f"  {render.usage_line(self._turn)}")
                self._turn = ExecutionMetrics()

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
        for call in message.tool_calls:
            yield render.call_line(call, self._paint, self._width)
