"""Export a session as Markdown for a person to read. Pure.

Text of a model, a tool or a file stays inside its own block: it is quoted, or fenced with more
backticks than it contains, so that it can neither end the block nor make a page load anything.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    PromptReceived,
    ResponseCompleted,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import File, Image, Message, Part, ToolCall, ToolOutput
from bridle.presentation.approvals import answer_text
from bridle.presentation.calls import as_json
from bridle.presentation.notices import end_text
from bridle.protocols.store import Record, SessionSummary
from bridle.workspace.text import flat, neutral, size_of

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~&])")
_LOADING = ("![", "<", "&")  # pictures and HTML, and what may be decoded into them

Milestones = Callable[[Event], Iterable[str]]


def to_markdown(
    summary: SessionSummary, records: Iterable[Record], milestones: Milestones = lambda event: ()
) -> Iterator[str]:
    """The whole session, in pieces that end with a newline.

    `milestones` gives the lines for other events, as an interface words them.
    """
    yield f"# {inline(summary.title or summary.id)}\n\n"
    for name, value in (
        ("session", summary.id),
        ("begun", summary.created_at),
        ("folder", summary.workspace),
        ("model", summary.model),
        ("tags", ", ".join(summary.tags)),
    ):
        if value:
            yield f"- {name}: {inline(value)}\n"
    for record in records:
        yield from _record(record, milestones)


def _record(record: Record, milestones: Milestones) -> Iterator[str]:
    event = record.event
    match event:
        case PromptReceived():
            by = "" if event.by == "me" else f", {inline(event.by)}"
            yield f"\n## Prompt (#{record.seq}{by})\n\n{fenced(event.content)}"
            yield from _media(event.parts)
        case ResponseCompleted(message=Message() as message):
            yield from _reply(message)
        case ToolResultEvent(output=output):
            yield from _result(output)
        case _:
            for line in _milestones(event, milestones):
                yield f"\n*{inline(line.strip())}*\n"


def _milestones(event: Event, milestones: Milestones) -> Iterable[str]:
    match event:
        case ApprovalAsked():
            return [f"Approval needed: {event.reason or 'it always needs approval'}"]
        case ApprovalAnswered():
            return [f"{'✓' if event.allowed else '✗'} {answer_text(event)}"]
        case TurnEnded():
            return [f"■ {text}" for text in [end_text(event)] if text]
        case _:
            return milestones(event)


def _reply(message: Message) -> Iterator[str]:
    if message.content.strip():
        yield f"\n{quoted(message.content.strip())}"
    for call in message.tool_calls:
        yield f"\n**{inline(call.name)}**\n\n{_arguments(call)}"


def _arguments(call: ToolCall) -> str:
    command = call.arguments.get("command")
    if isinstance(command, str) and len(call.arguments) == 1:
        return fenced(command, "sh")
    return fenced(call.broken or as_json(call.arguments), "json")


def _result(output: ToolOutput) -> Iterator[str]:
    how = "failed" if output.is_error else "gave"
    yield f"\n{inline(output.name) or 'It'} {how}:\n\n{fenced(output.text)}"
    yield from _media(output.media)


def _media(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Image | File):
            kind = "picture" if isinstance(part, Image) else "file"
            where = part.url if isinstance(part, Image) else part.name
            about = [inline(text) for text in (part.media_type, where) if text]
            about += [size_of(len(part.data) * 3 // 4)] if part.data else []
            yield f"\n*A {kind} ({', '.join(about)}), which only the log holds.*\n"


def inline(text: str) -> str:
    """Text on one line, without Markdown of its own."""
    return _SPECIAL.sub(r"\\\1", flat(text))


def fenced(text: str, language: str = "") -> str:
    """Text in a fence that it cannot close."""
    text = neutral(text)
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"


def quoted(text: str) -> str:
    """A reply as Markdown, or in a fence if it could make a page load something."""
    if any(mark in text for mark in _LOADING):
        return fenced(text, "markdown")
    return "".join(f"> {line}".rstrip() + "\n" for line in neutral(text).split("\n"))
