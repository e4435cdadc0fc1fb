"""Where something was said, in all sessions: raw bytes are searched, and only what fits is decoded.

What streams is said again by the message that follows, and what a checkpoint or a compaction holds
was said before: those lines are passed over. ripgrep, where it is installed, says which logs are
worth reading; what is found does not depend on it.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, BinaryIO, TypedDict, Unpack

from msgspec import Struct

from bridle.errors import SessionError, StoreFailed
from bridle.events import (
    ApprovalAnswered,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    TagsChanged,
    TitleChanged,
    TodosChanged,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput
from bridle.promises.store import Record
from bridle.stores.glance import Place, places
from bridle.stores.needle import Needle, needle_for, needle_in
from bridle.stores.placing import opened
from bridle.stores.reading import SessionFolder
from bridle.stores.walking import readable, walk
from bridle.workspace.slowness import SHORT, is_slow

Piece = tuple[str, str, str]  # the kind, what to show before it, and the text

_BLOCK = 1 << 22
_WORTH = 1 << 25  # bytes of logs from which on another process is worth its start
_BEFORE, _AFTER, _LONGEST = 80, 160, 400  # characters around a match, and of it
_LENGTHS, _SLOW = (*SHORT, 500), 0.02  # `.*x` is not quick, and still of use
_OURS = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"[^"\\]{0,40}","data":\{"type":"(\w+)"')
_SAYING = frozenset(
    (b"user_prompt", b"message", b"title", b"tags", b"todo", b"approval_answered", b"turn_end")
)


class Hit(Struct, frozen=True):
    """A match with its surroundings: it is `text[start:end]`."""

    session_id: str
    seq: int
    timestamp: str
    kind: str
    text: str
    start: int
    end: int


class How(TypedDict, total=False):
    """`sessions`: only these. `ripgrep`: may it be used? The rest says itself."""

    regex: bool
    ignore_case: bool
    sessions: Collection[str] | None
    limit: int
    progress: Callable[[int, int], None] | None
    ripgrep: bool


def search(folder: SessionFolder, words: str, **how: Unpack[How]) -> Iterator[Hit]:
    """Where the words were said: the newest session first, each from its beginning.

    Options: `regex=False, ignore_case=True, sessions=None, limit=50, progress=None`.
    """
    wanted = _Wanted(words, how.get("regex", False), how.get("ignore_case", True))
    logs = _logs(folder, how.get("sessions"))
    return _found(wanted, logs, folder, how)


def _found(wanted: "_Wanted", logs: list[Place], folder: SessionFolder, how: How) -> Iterator[Hit]:
    left, done, total = how.get("limit", 50), 0, sum(place.size for place in logs)
    told = how.get("progress")
    if total >= _WORTH and how.get("ripgrep", True):
        worth = _listed(folder, wanted.needle)
        logs = [place for place in logs if worth is None or place.id in worth]
    for place in logs:
        for hit in _in_log(place, wanted):
            if left <= 0:
                return
            left -= 1
            yield hit
        done += place.size
        if told is not None:
            told(done, total)
    if told is not None:
        told(total, total)


def _logs(folder: SessionFolder, sessions: Collection[str] | None) -> list[Place]:
    try:
        every = places(folder.folder)
    except OSError as error:
        raise StoreFailed(
            f"the sessions cannot be searched: {error.strerror or error}", error
        ) from error
    return [place for place in every if sessions is None or place.id in sessions]


class _Wanted:
    """What is looked for: a pattern for texts, and a needle for the bytes they are in."""

    def __init__(self, words: str, regex: bool, ignore_case: bool) -> None:
        if not words:
            raise SessionError("there is nothing to search for")
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        try:
            compiled = re.compile(words if regex else re.escape(words), flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise SessionError(
                f"{words[:80]!r} is no regular expression: {error}",
                hint="Leave out --regex to find the words as they are.",
            ) from error
        if regex and is_slow(compiled, _LENGTHS, _SLOW):
            raise SessionError(
                f"{words[:80]!r} may take for ever on some texts; nothing was searched",
                hint="Repeat no repeats: a+ instead of (a+)+, and say how often at most.",
            )
        self.find = compiled.search
        self.needle: Needle | None = (
            needle_in(words, ignore_case=ignore_case)
            if regex
            else needle_for(words, ignore_case=ignore_case)
        )


def _in_log(place: Place, wanted: _Wanted) -> Iterator[Hit]:
    try:
        with os.fdopen(opened(f"{place.path}/log.jsonl"), "rb", buffering=0) as file:
            prompt = ""
            for record in _records(file, wanted.needle):
                event = record.event
                if isinstance(event, PromptReceived):
                    prompt = event.content
                elif isinstance(event, MessageAdded) and event.message.content == prompt != "":
                    continue  # the same words, on their way to the model
                for piece in _pieces(event):
                    if (match := wanted.find(piece[2])) is not None:
                        yield _hit(place.id, record, piece, match.span())
    except OSError:
        return  # gone, or not to be read: `verify` says which


def _records(file: Any, needle: Needle | None) -> Iterator[Record]:
    """Every record whose line has the needle and says something."""
    head = file.read(256)
    file.seek(0)
    if head and _OURS.match(head) is None:
        yield from _foreign(file)
        return
    for block in _blocks(file):
        spans = needle.lines(block) if needle is not None else _every(block)
        for start, end in spans:
            ours = _OURS.match(block, start, end)
            if ours is None or ours[2] in _SAYING:
                record = readable(block[start:end])
                if record is not None and record.seq:
                    yield record


def _foreign(file: BinaryIO) -> Iterator[Record]:
    """A log that another program began: its records are numbered by counting them."""
    last = 0
    for walked in walk(file):
        if walked.seq and (record := readable(walked.line, last)) is not None:
            yield record
        last = walked.seq or last


def _blocks(file: Any) -> Iterator[bytes]:
    """Whole lines, many at a time. What stands after the last one is torn, or being written."""
    rest: list[bytes] = []
    while block := file.read(_BLOCK):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, block[:end]))
            rest = []
        rest.append(block[end:])


def _every(block: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := block.find(b"\n", start) + 1) > 0:
        yield start, end
        start = end


def _pieces(event: object) -> Iterator[Piece]:
    """What a record says, piece by piece."""
    match event:
        case PromptReceived(content=content):
            yield "prompt", "", content
        case MessageAdded(message=message) | ResponseCompleted(message=Message() as message):
            for part in message.parts:
                yield from _part(part, "answer" if message.role == "assistant" else "prompt")
        case ToolResultEvent(output=output):
            yield from _part(output, "")
        case _:
            yield from _remarks(event)


def _remarks(event: object) -> Iterator[Piece]:
    match event:
        case TitleChanged(title=title):
            yield "title", "", title
        case TagsChanged(tags=tags):
            yield from (("tag", "", tag) for tag in tags)
        case TodosChanged(todos=todos):
            yield from (("todo", "", todo.content) for todo in todos)
        case ApprovalAnswered(word=word):
            yield "approval", "", word
        case TurnEnded(detail=detail):
            yield "end", "", detail


def _part(part: object, kind: str) -> Iterator[Piece]:
    match part:
        case Text(text):
            yield kind, "", text
        case Thinking(text):
            yield "thinking", "", text
        case ToolOutput(text=text):
            yield "tool result", "", text
        case ToolCall(name=name, arguments=arguments):
            yield "call", "", name
            for key, text in _values(arguments, ""):
                yield "call", f"{name} {key}: ", text


def _values(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Every value in some arguments, with the way to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _values(inner, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else str(value)


def _hit(session_id: str, record: Record, piece: Piece, span: tuple[int, int]) -> Hit:
    kind, before, text = piece
    start, end = span[0], min(span[1], span[0] + _LONGEST)
    first = max(0, start - _BEFORE)
    shown = before + text[first : end + _AFTER]
    moved = len(before) - first
    return Hit(session_id, record.seq, record.timestamp, kind, shown, start + moved, end + moved)


def _listed(folder: SessionFolder, needle: Needle | None) -> set[str] | None:
    """The sessions whose logs have the needle, as ripgrep tells; None where it cannot."""
    program = find_ripgrep()
    if program is None or needle is None:
        return None
    import subprocess

    options = ("-l", "-0", "--no-config", "-uuu", "-a", "--encoding=none", "--max-depth=2")
    where = str(folder.folder / "sessions")
    command = [program, *options, "-g", "log.jsonl", "-e", needle.for_ripgrep, "--", where]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode not in (0, 1):
        return None
    return {os.fsdecode(path).split("/")[-2] for path in done.stdout.split(b"\0") if path}


@cache
def find_ripgrep() -> str | None:
    """ripgrep on the PATH, but none of the folder one is in; or beside the interpreter."""
    import sys
    from pathlib import Path

    from bridle.workspace.lookup import find_program, here

    beside = Path(sys.executable).with_name("rg")  # who writes there writes bridle itself
    return find_program("rg", here()) or (str(beside) if beside.exists() else None)
