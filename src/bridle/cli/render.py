"""Events as lines of text for a person: calls, results, answers, notices, usage. Pure.

Everything that a model, a tool or a file said is made harmless here. The sentences of notices are
those of `presentation/notices.py`; here they are painted. Prints nothing, except records as JSON.
"""

import sys
from collections.abc import Callable, Iterable

import msgspec

from bridle.cli.style import Paint, cut, wrapped
from bridle.events import (
    AgentActivity,
    AgentResponded,
    ApprovalAnswered,
    ApprovalAsked,
    ChildEnded,
    ChildStarted,
    Event,
    FilesChanged,
    PromptReceived,
    ResponseCompleted,
    Rewound,
    Todo,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UnknownEvent,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.presentation import amounts, calls, notices
from bridle.presentation.approvals import answer_text
from bridle.presentation.blocks import Notice
from bridle.presentation.notices import end_text
from bridle.protocols.codec import encode_data
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import flat, quantity, visible_json

_MARKS = {"pending": "☐", "in_progress": "◐", "completed": "✓"}
_TASK = 60  # characters of a task


class StepCounter:
    """Counts the steps of an agent that reports its usage only once, for all of them.

    `count` stays 0 if the usage was reported step by step.
    """

    def __init__(self) -> None:
        self.count = 0
        self._replies = 0

    def add(self, event: Event) -> None:
        """Take in the next event of the turn."""
        if isinstance(event, ResponseCompleted):
            self._replies += event.message is not None and not event.grows
        elif isinstance(event, AgentResponded):
            self.count = self._replies


def call_line(call: ToolCall, paint: Paint, width: int) -> str:
    """Return the line of a call that the model asks for."""
    name = flat(call.name)
    subject = cut(flat(calls.call_subject(call)), max(10, width - len(name) - 4))
    return f"{paint.cyan('▸')} {paint.bold(name)} {paint.dim(subject)}".rstrip()


def result_lines(
    output: ToolOutput, paint: Paint, width: int, *, of: str = "", command: str = ""
) -> list[str]:
    """Return the line of a call's result; none for a todo list, which has been shown already.

    `of` names the call if several are open, `command` is what a shell ran.
    """
    if output.name == "todo_write" and not output.is_error:
        return []
    mark = paint.red("✗") if output.is_error else paint.green("✓")
    gist = flat(calls.result_summary(output, command))
    text = f"{flat(of)}: {gist}" if of else gist
    return [f"  {mark} {paint.dim(cut(text, width - 4))}"]


def todo_lines(todos: Iterable[Todo], paint: Paint, width: int) -> list[str]:
    """Return the todo list, one line for each item."""
    lines = []
    for todo in todos:
        text = cut(flat(todo.content), width - 6)
        mark = _MARKS[todo.status]
        done = todo.status == "completed"
        lines.append(f"    {paint.green(mark) if done else mark} {paint.dim(text)}")
    return lines


def inbox_prompt_line(prompt: PromptReceived, paint: Paint, width: int, me: str = "") -> str:
    """Return the line of a prompt that another process sent; `me` is not named."""
    by = "" if prompt.by == me else f" ({flat(prompt.by)})"
    text = cut(flat(prompt.content), max(10, width - len(by) - 5))
    return f"{paint.cyan('❯')} {paint.bold(text)}{paint.dim(by)}"


def asked_line(asked: ApprovalAsked, paint: Paint, width: int) -> str:
    """Return the line of an approval request."""
    return f"  {paint.yellow('?')} {paint.dim(cut(flat(asked.reason), width - 4))}"


def answered_line(answer: ApprovalAnswered, paint: Paint, width: int, me: str = "me") -> str:
    """Return the line of an answer, with who gave it unless that was `me`."""
    mark = paint.green("✓") if answer.allowed else paint.red("✗")
    return f"  {mark} {paint.dim(cut(answer_text(answer, me), width - 4))}"


def activity_line(event: AgentActivity, paint: Paint, width: int) -> str:
    """Return the line of a tool that an agent uses without reporting a call."""
    name = flat(event.tool_name)
    text = cut(flat(event.description), max(10, width - len(name) - 4))
    return f"{paint.cyan('·')} {paint.bold(name)} {paint.dim(text)}".rstrip()


def end_line(end: TurnEnded, paint: Paint) -> str:
    """Return why a turn ended; empty if it simply was done."""
    if not (text := end_text(end)):
        return ""
    colour = paint.yellow if end.reason in ("done", "interrupted", "parked") else paint.red
    return f"{colour('■')} {text}"


def notice_lines(
    event: Event,
    paint: Paint,
    tool_of: Callable[[str], str] = lambda _: "",
    me: str = "me",
) -> list[str]:
    """Return the lines of an event that changed the session or its folder; none for other events.

    `tool_of` returns the name of a call's tool: some name the files that they changed in their
    results. `me` is not named.
    """
    match event:
        case TraceEvent():
            return []  # see `trace_line`, which knows the width
        case ChildStarted():
            by = "" if event.agent in ("", "loop") else f" by {event.agent}"
            task = cut(flat(event.prompt), _TASK)
            text = flat(f"{task}{by} (session {event.session_id})")
            return [f"  {paint.cyan('▸')} task {paint.dim(text)}"]
        case Rewound():
            found: tuple[Notice, ...] = (notices.rewind_notice(event, me=me),)
        case FilesChanged():
            is_named = tool_of(event.call_id) in notices.NAMES_FILES
            found = notices.file_notices(event, is_named=is_named)
        case _:
            found = notices.notices_of(event, me)
    return [_notice_line(event, notice, paint) for notice in found]


def _notice_line(event: Event, notice: Notice, paint: Paint) -> str:
    text = flat(notice.text)
    if isinstance(event, TurnParked):
        return f"{paint.yellow(notice.mark)} {text}"
    if isinstance(event, UnknownEvent):
        return paint.dim(f"  {notice.mark} {text}")
    if isinstance(event, ChildEnded):
        colour = paint.green if event.reason == "done" else paint.red
        return f"  {colour(notice.mark)} {paint.dim(text)}"
    if notice.tone == "bad":
        return f"  {paint.red(notice.mark)} {text}"
    return f"  {paint.yellow(notice.mark)} {paint.dim(text)}"


def trace_line(event: TraceEvent, paint: Paint, width: int) -> str:
    """Return the line of a trace that the user should see; empty for other traces."""
    found = notices.notices_of(event)
    return _trace_line(found[0], paint, width) if found else ""


def retry_line(retry: TraceEvent, event: Event, paint: Paint, width: int) -> str:
    """Return what became of the attempt that `retry` announced; `event` came after it."""
    return _trace_line(notices.retry_outcome(retry, event), paint, width)


def _trace_line(notice: Notice, paint: Paint, width: int) -> str:
    mark = paint.red(notice.mark) if notice.tone == "bad" else paint.yellow(notice.mark)
    color = str if notice.mark == "!" else paint.dim
    lines = wrapped(flat(notice.text), max(20, width - 4)).split("\n")
    return f"  {mark} " + "\n    ".join(map(color, lines))  # never cut: the end may matter most


def usage_line(metrics: ExecutionMetrics, steps: int = 0) -> str:
    """Return steps, calls, tokens and cost; `steps` is the count of a `StepCounter`."""
    figures = [quantity(steps or metrics.invocations, "step")]
    if metrics.tool_calls:
        figures.append(quantity(metrics.tool_calls, "call"))
    figures.append(f"{quantity(metrics.total_input_tokens, 'token')} in")
    if metrics.cache_read_tokens:
        figures.append(f"{metrics.cache_read_tokens:,} cached")
    figures.append(f"{metrics.total_output_tokens:,} out")
    is_unknown = steps and not metrics.invocations  # the agent did not report what replies cost
    figures.append(format_cost(None) if is_unknown else amounts.cost_text(metrics))
    return " · ".join(figures)


def json_line(record: Record) -> bytes:
    """Return a record as it stands in the log.

    Its time is encoded too: in a log from elsewhere it may be any text.
    """
    text = msgspec.json.encode
    parts = record.seq, text(record.timestamp), encode_data(record.event), text(record.hash)
    return b'{"seq":%d,"timestamp":%b,"data":%b,"hash":%b}\n' % parts


def write_json_line(line: bytes) -> None:
    """Write a line of JSON to standard output, byte for byte.

    On a terminal, what it would obey or not show is written as JSON's own escapes.
    """
    if sys.stdout.isatty():
        line = visible_json(line.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(line)
