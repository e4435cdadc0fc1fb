"""What happened, in a person's words: pure functions from a record's event to lines of text.

Everything that a model, a tool or a file said is neutralised here; nothing is printed here.
"""

import sys
from collections.abc import Iterable

import msgspec

from bridle.cli.style import Paint, cut
from bridle.events import (
    AgentActivity,
    ApprovalAnswered,
    ApprovalAsked,
    PromptReceived,
    Todo,
    TurnEnded,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.protocols.codec import encode_data
from bridle.protocols.store import Record
from bridle.tui import blocks_words
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import answered_words, ended_words, flat, quantity, visible_json

_MARKS = {"pending": "☐", "in_progress": "◐", "completed": "✓"}


one_line = flat


def subject_of(call: ToolCall) -> str:
    """What a call is about: its command, its path, its pattern; else its arguments as JSON."""
    return one_line(blocks_words.subject_of(call))


def call_line(call: ToolCall, paint: Paint, width: int) -> str:
    """A call as it is asked for."""
    name = one_line(call.name)
    subject = cut(subject_of(call), max(10, width - len(name) - 4))
    return f"{paint.cyan('▸')} {paint.bold(name)} {paint.dim(subject)}".rstrip()


def result_lines(
    output: ToolOutput, paint: Paint, width: int, *, of: str = "", command: str = ""
) -> list[str]:
    """How a call came out; `of` names the call if several are open, `command` is what a shell ran.

    A todo list that was written has been shown already.
    """
    if output.name == "todo_write" and not output.is_error:
        return []
    mark = paint.red("✗") if output.is_error else paint.green("✓")
    gist = one_line(blocks_words.gist(output, command))
    said = f"{one_line(of)}: {gist}" if of else gist
    return [f"  {mark} {paint.dim(cut(said, width - 4))}"]


def todo_lines(todos: Iterable[Todo], paint: Paint, width: int) -> list[str]:
    """The todo list."""
    lines = []
    for todo in todos:
        text = cut(one_line(todo.content), width - 6)
        mark = _MARKS[todo.status]
        done = todo.status == "completed"
        lines.append(f"    {paint.green(mark) if done else mark} {paint.dim(text)}")
    return lines


def letter_line(prompt: PromptReceived, paint: Paint, width: int, me: str = "") -> str:
    """A prompt that came from another process; `me` is who needs no name."""
    by = "" if prompt.by == me else f" ({one_line(prompt.by)})"
    said = cut(one_line(prompt.content), max(10, width - len(by) - 5))
    return f"{paint.cyan('❯')} {paint.bold(said)}{paint.dim(by)}"


def asked_line(asked: ApprovalAsked, paint: Paint, width: int) -> str:
    """A question that somebody has to answer, in one line."""
    return f"  {paint.yellow('?')} {paint.dim(cut(one_line(asked.reason), width - 4))}"


def answered_line(answer: ApprovalAnswered, paint: Paint, width: int, me: str = "me") -> str:
    """The answer, and who gave it, unless that was `me`."""
    mark = paint.green("✓") if answer.allowed else paint.red("✗")
    return f"  {mark} {paint.dim(cut(answered_words(answer, me), width - 4))}"


def activity_line(event: AgentActivity, paint: Paint, width: int) -> str:
    """What an agent works with, where no call says so."""
    name = one_line(event.tool_name)
    words = cut(one_line(event.description), max(10, width - len(name) - 4))
    return f"{paint.cyan('·')} {paint.bold(name)} {paint.dim(words)}".rstrip()


def end_line(end: TurnEnded, paint: Paint) -> str:
    """Why a turn ended, where that is worth a word."""
    if not (said := ended_words(end)):
        return ""
    colour = paint.yellow if end.reason in ("done", "interrupted", "parked") else paint.red
    return f"{colour('■')} {said}"


def usage_line(metrics: ExecutionMetrics, steps: int = 0) -> str:
    """Steps, calls, tokens and what it cost. An agent reports its use once for several `steps`."""
    figures = [quantity(steps or metrics.invocations, "step")]
    if metrics.tool_calls:
        figures.append(quantity(metrics.tool_calls, "call"))
    figures.append(f"{quantity(metrics.total_input_tokens, 'token')} in")
    if metrics.cache_read_tokens:
        figures.append(f"{metrics.cache_read_tokens:,} cached")
    figures.append(f"{metrics.total_output_tokens:,} out")
    unsaid = steps and not metrics.invocations  # there were replies, and nobody said what they cost
    figures.append(format_cost(None) if unsaid else cost_of(metrics))
    return " · ".join(figures)


def cost_of(metrics: ExecutionMetrics) -> str:
    """Dollars; what has no known price is said to be unknown, never left out."""
    return format_cost(metrics.cost, unpriced=metrics.unpriced)


def json_line(record: Record) -> bytes:
    """A record as it stands in the log; a log from elsewhere may hold any text as its time."""
    text = msgspec.json.encode
    parts = record.seq, text(record.timestamp), encode_data(record.event), text(record.hash)
    return b'{"seq":%d,"timestamp":%b,"data":%b,"hash":%b}\n' % parts


def write_json_line(line: bytes) -> None:
    """Write a line of JSON to standard output: byte for byte, but for a terminal with everything
    that it would obey or not show as JSON's own escapes."""
    if sys.stdout.isatty():
        line = visible_json(line.decode("utf-8", "replace")).encode("utf-8", "replace")
    sys.stdout.buffer.write(line)
