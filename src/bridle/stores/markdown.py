"""A session as Markdown that a person reads elsewhere. Pure.

What a model, a tool or a file said stays inside its own block: it is quoted, or fenced with more
backticks than it holds, so that it can neither end the block nor make a page fetch anything.
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
from bridle.promises.store import Record, SessionSummary
from bridle.workspace.text import neutral, size_of
from bridle.workspace.wording import answered_words, as_json, ended_words, flat

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~&])")
_FETCHES = ("![", "<", "&")  # pictures and HTML, and what may be decoded into them


Told = Callable[[Event], Iterable[str]]


def to_markdown(
    found: SessionSummary, records: Iterable[Record], milestones: Told = lambda event: ()
) -> Iterator[str]:
    """The whole session, piece by piece; each ends with a line end.

    `milestones` are the lines for what a face has words of its own for.
    """
    yield f"# {inline(found.title or found.id)}\n\n"
    for name, value in (
        ("session", found.id),
        ("begun", found.created_at),
        ("folder", found.workspace),
        ("model", found.model),
        ("tags", ", ".join(found.tags)),
    ):
        if value:
            yield f"- {name}: {inline(value)}\n"
    for record in records:
        yield from _piece(record, milestones)


def _piece(record: Record, milestones: Told) -> Iterator[str]:
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
            for line in _aside(event, milestones):
                yield f"\n*{inline(line.strip())}*\n"


def _aside(event: Event, milestones: Told) -> Iterable[str]:
    match event:
        case ApprovalAsked():
            return [f"Asked: {event.reason or 'it always asks'}"]
        case ApprovalAnswered():
            return [f"{'✓' if event.allowed else '✗'} {answered_words(event)}"]
        case TurnEnded():
            return [f"■ {words}" for words in [ended_words(event)] if words]
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
            about = [inline(one) for one in (part.media_type, where) if one]
            about += [size_of(len(part.data) * 3 // 4)] if part.data else []
            yield f"\n*A {kind} ({', '.join(about)}), which only the log holds.*\n"


def inline(text: str) -> str:
    """Text on one line that Markdown takes for nothing else."""
    return _SPECIAL.sub(r"\\\1", flat(text))


def fenced(text: str, language: str = "") -> str:
    """Text in a fence that it cannot end."""
    text = neutral(text)
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"


def quoted(text: str) -> str:
    """A reply, as the Markdown that it is; in a fence where it could make a page fetch things."""
    if any(mark in text for mark in _FETCHES):
        return fenced(text, "markdown")
    return "".join(f"> {line}".rstrip() + "\n" for line in neutral(text).split("\n"))
