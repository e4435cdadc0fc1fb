"""A session's log as lines of text: prompts, replies, calls, approvals, ends and costs. Pure.

Deltas are left out: the messages say the same, complete. `#24` is the number of a record.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from bridle.cli import render
from bridle.cli.render import StepCounter
from bridle.cli.style import Paint, cut, wrapped
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, ToolOutput, outcome_of
from bridle.presentation.approvals import answer_text, is_unanswered
from bridle.presentation.calls import call_subject
from bridle.presentation.fold import Fold
from bridle.protocols.store import Record, SessionSummary
from bridle.workspace.text import flat, neutral, quantity


def transcript_heading(session: SessionSummary, path: str, paint: Paint) -> Iterator[str]:
    """Yield the lines that say which session this is."""
    yield paint.bold(flat(session.title) or flat(session.id))
    for name, value in (
        ("session", session.id),
        ("tags", ", ".join(session.tags)),
        ("folder", session.workspace),
        ("model", session.model),
        ("log", path),
    ):
        if value:
            yield paint.dim(f"{name:8} {flat(value)}")


class SessionLines:
    """Makes lines of records, in order, and keeps count of what the session used."""

    def __init__(self, paint: Paint, width: int, *, thinking: bool = False, me: str = "me") -> None:
        self._paint = paint
        self._width = width
        self._shows_thinking = thinking
        self._me = me  # is not named as the author of prompts and answers
        self._fold = Fold()  # what is open, and what was used
        self._steps = StepCounter()
        self._more_steps = 0  # those that agents have not counted one by one
        self._unanswered: dict[str, str] = {}  # why calls did not run that no person denied
        self._commands: dict[str, str] = {}  # what the calls of the newest reply run, by id
        self._names: dict[str, str] = {}  # of a reply with several calls: what to call them

    def lines(self, record: Record) -> Iterator[str]:
        """Yield the lines of a record; often none."""
        event, paint, width = record.event, self._paint, self._width
        self._steps.add(event)
        if isinstance(event, TextDelta | ThinkingDelta | ToolOutputDelta):
            return
        waiting, used = dict(self._fold.state.waiting), self._fold.state.turn_used
        known = self._fold.tool_of
        self._fold.apply(record)
        match event:
            case SessionStarted() if event.resumed and event.mode != "cli":
                yield paint.dim(f"  ─ resumed, {flat(record.timestamp)}")
            case PromptReceived() if event.when == "idle":
                yield from self._prompt(event)
            case MessageAdded() if event.prompt in waiting:  # now it reaches the model
                yield from self._prompt(waiting[event.prompt])
            case ResponseCompleted(message=Message() as message):
                yield from self._reply(message)
            case ApprovalAsked():
                yield render.asked_line(event, paint, width)
            case ApprovalAnswered() if is_unanswered(event):  # the line of its result says it
                self._unanswered[event.call_id] = answer_text(event)
            case ApprovalAnswered():
                yield render.answered_line(event, paint, width, self._me)
            case TraceEvent():
                yield from filter(None, [render.trace_line(event, paint, width)])
            case ToolResultEvent(output=output):
                yield from self._result(output)
            case TodosChanged(todos=todos):
                yield from render.todo_lines(todos, paint, width)
            case TurnEnded():
                yield from filter(None, [render.end_line(event, paint)])
                yield paint.dim(f"  {render.usage_line(used, self._steps.count)} · #{record.seq}")
                self._more_steps += max(0, self._steps.count - used.invocations)
                self._steps = StepCounter()
            case _:
                yield from render.notice_lines(event, paint, known, self._me)

    def totals(self, owner: str = "") -> Iterator[str]:
        """Yield what is open at the end, and what the whole session used.

        `owner` is the process that has the session open now.
        """
        paint, state = self._paint, self._fold.state
        unknown = (
            f"is running in {owner}" if owner else "has no result: it is not known what it did"
        )
        for call in state.calls.values():
            if call.state == "running":
                yield f"  {paint.yellow('?')} {flat(call.name)} was started and {unknown}"
        for prompt in state.waiting.values():
            text = flat(prompt.content)
            yield cut(f"  {paint.yellow('…')} waits to be sent to the model: {text}", self._width)
        for asked in state.asked.values():
            text = f"{flat(asked.call.name)} needs approval: bridle approvals list"
            yield f"  {paint.yellow('?')} {text}"
        yield ""
        steps = state.used.invocations + self._more_steps
        yield f"{paint.bold('in all')}  {render.usage_line(state.used, steps)}"

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
        if self._shows_thinking and message.reasoning:
            yield self._paint.dim(neutral(message.reasoning))
        if message.content.strip():
            yield wrapped(neutral(message.content).strip("\n"), self._width)
        calls = message.tool_calls
        several = calls if len(calls) > 1 else ()
        self._commands = {call.id: str(call.arguments.get("command", "")) for call in calls}
        self._names = {call.id: f"{call.name} {flat(call_subject(call))}" for call in several}
        for call in calls:
            yield render.call_line(call, self._paint, self._width)

    def _result(self, output: ToolOutput) -> Iterator[str]:
        if outcome_of(output) == "unknown":
            name = flat(output.name) or "the call"
            yield f"  {self._paint.yellow('?')} {name}: unknown, no result was ever recorded"
            return
        name = self._names.get(output.call_id, "")
        text = self._unanswered.pop(output.call_id, output.text)
        command = self._commands.get(output.call_id, "")
        output = replace(output, text=text)
        yield from render.result_lines(output, self._paint, self._width, of=name, command=command)
