"""Search what was said in all sessions: raw bytes are searched, and only what matches is decoded.

Records that repeat others are skipped: what streamed is in the message that follows, and what a
checkpoint or a compaction holds was recorded before. If ripgrep is installed, it finds out which
logs are worth reading; the result does not depend on it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypedDict, Unpack

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
from bridle.protocols.store import Record
from bridle.stores.log_format import HEADER
from bridle.stores.reader import SessionFolder, decode_line, iter_blocks, iter_lines
from bridle.stores.session_index import LogEntry, log_entries
from bridle.workspace.fs import open_file
from bridle.workspace.programs import find_program, working_folder
from bridle.workspace.regex_safety import SHORT, is_slow

Piece = tuple[str, str, str]  # its kind, what to show before it, and its text

_USE_RIPGREP = 1 << 25  # bytes of logs from which on it is worth starting another process
_BEFORE, _AFTER, _MAX_MATCH = 80, 160, 400  # characters around a match, and of it
# Texts on which an expression is tried before it is used, and the seconds that one may take.
_LENGTHS, _SLOW = (*SHORT, 500), 0.02
_SEARCHED = frozenset(
    (b"user_prompt", b"message", b"title", b"tags", b"todo", b"approval_answered", b"turn_end")
)
_UNESCAPED = re.compile(r"[ !#-.0-\[\]-~]+")  # characters that no writer of JSON escapes
_MIN_NEEDLE = 3  # bytes; shorter ones are in nearly every line
_MAX_NEEDLE = 40


class Hit(Struct, frozen=True):
    """A match with its surroundings: it is `text[start:end]`."""

    session_id: str
    seq: int
    timestamp: str
    kind: str
    text: str
    start: int
    end: int


class SearchOptions(TypedDict, total=False):
    """Options of `search`. `sessions`: only these. `ripgrep`: whether it may be used."""

    regex: bool
    ignore_case: bool
    sessions: Collection[str] | None
    limit: int
    progress: Callable[[int, int], None] | None
    ripgrep: bool


def search(folder: SessionFolder, words: str, **options: Unpack[SearchOptions]) -> Iterator[Hit]:
    """Find text in all sessions: the newest session first, each from its beginning.

    Options: `regex=False, ignore_case=True, sessions=None, limit=50, progress=None`.
    """
    ignore_case, sessions = options.get("ignore_case", True), options.get("sessions")
    if options.get("regex", False):
        pattern = _compile_expression(words, ignore_case)
        needle = needle_in(words)
    else:
        pattern = _compile(re.escape(words), ignore_case)
        needle = needle_for(words)
    try:
        logs = log_entries(folder.folder)
    except OSError as error:
        raise StoreFailed(
            f"the sessions cannot be searched: {error.strerror or error}", error
        ) from error
    logs = [log for log in logs if sessions is None or log.id in sessions]
    if needle is not None and ignore_case:
        needle = needle.lower()
    return _hits(folder, logs, pattern, needle, ignore_case, options)


def _compile(expression: str, ignore_case: bool) -> re.Pattern[str]:
    if not expression:
        raise SessionError("there is nothing to search for")
    try:
        return re.compile(expression, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except (re.error, OverflowError, RecursionError) as error:
        raise SessionError(
            f"{expression[:80]!r} is not a regular expression: {error}",
            hint="Leave out --regex to find the words as they are.",
        ) from error


def _compile_expression(expression: str, ignore_case: bool) -> re.Pattern[str]:
    pattern = _compile(expression, ignore_case)
    if is_slow(pattern, _LENGTHS, _SLOW):
        raise SessionError(
            f"{expression[:80]!r} may take forever on some texts; nothing was searched",
            hint="Do not repeat a repetition: write a+ instead of (a+)+, and give upper limits.",
        )
    return pattern


def _hits(
    folder: SessionFolder,
    logs: list[LogEntry],
    pattern: re.Pattern[str],
    needle: bytes | None,
    ignore_case: bool,
    options: SearchOptions,
) -> Iterator[Hit]:
    left, done, total = options.get("limit", 50), 0, sum(log.size for log in logs)
    progress = options.get("progress")
    if needle is not None and total >= _USE_RIPGREP and options.get("ripgrep", True):
        worth = _sessions_with(folder, needle, ignore_case)
        logs = [log for log in logs if worth is None or log.id in worth]
    for log in logs:
        for hit in _hits_in(log, pattern, needle, ignore_case):
            if left <= 0:
                return
            left -= 1
            yield hit
        done += log.size
        if progress is not None:
            progress(done, total)
    if progress is not None:
        progress(total, total)


def _hits_in(
    log: LogEntry, pattern: re.Pattern[str], needle: bytes | None, ignore_case: bool
) -> Iterator[Hit]:
    try:
        with os.fdopen(open_file(f"{log.path}/log.jsonl"), "rb", buffering=0) as file:
            prompt = ""
            for record in _records(file, needle, ignore_case):
                event = record.event
                if isinstance(event, PromptReceived):
                    prompt = event.content
                elif isinstance(event, MessageAdded) and event.message.content == prompt != "":
                    continue  # the prompt again, on its way to the model
                for piece in _pieces(event):
                    if (match := pattern.search(piece[2])) is not None:
                        yield _hit(log.id, record, piece, match.span())
    except OSError:
        return  # deleted, or unreadable, which `verify` reports


def _records(file: BinaryIO, needle: bytes | None, ignore_case: bool) -> Iterator[Record]:
    """The records that may contain what is searched for."""
    head = file.read(256)
    if head and HEADER.match(head) is None:
        file.seek(0)
        yield from _foreign_records(file)
        return
    for block in iter_blocks(file.fileno()):
        for start, end in _lines_with(needle, block, ignore_case):
            header = HEADER.match(block, start, end)
            if header is None or header[3] in _SEARCHED:
                record = decode_line(block[start:end])
                if record is not None and record.seq:
                    yield record


def _foreign_records(file: BinaryIO) -> Iterator[Record]:
    """The records of a log that another program began, numbered by counting them."""
    last = 0
    for numbered in iter_lines(file):
        if numbered.seq and (record := decode_line(numbered.line, last)) is not None:
            yield record
        last = numbered.seq or last


# The needle: bytes that every line with the text contains


def needle_for(words: str) -> bytes | None:
    """The longest part of some words that is in a line of JSON as it is; None if it is too short.

    Every line with the words contains it, and some others may.
    """
    longest = max(_UNESCAPED.findall(words), key=len, default="")[:_MAX_NEEDLE]
    return longest.encode() if len(longest) >= _MIN_NEEDLE else None


def needle_in(expression: str) -> bytes | None:
    """Bytes that every match of a regular expression contains; None if none are certain."""
    if re.search(r"[(|]", expression):  # what is inside may be left out
        return None
    outside = re.sub(r"\\[\s\S]|\[\^?\]?[^\]]*\]|\{[^}]*\}", _gap, expression)
    parts = re.split(r"[\0.^$*+?]", re.sub(r"[\s\S](?=[*?\1])", "\0", outside).replace("\1", "\0"))
    return max(map(needle_for, parts), key=lambda needle: len(needle or b""))


def _gap(match: re.Match[str]) -> str:
    """A character that is not a letter. A count, as `*`, makes the letter before it uncertain."""
    return "\1" if match[0].startswith("{") else "\0"


def _lines_with(needle: bytes | None, block: bytes, ignore_case: bool) -> Iterator[tuple[int, int]]:
    """Where the lines of a block that contain the needle begin and end; without one, all lines."""
    if needle is None:
        yield from _all_lines(block)
        return
    searched = block.lower() if ignore_case else block
    offset = searched.find(needle)
    while offset >= 0:
        end = block.find(b"\n", offset) + 1 or len(block)
        yield block.rfind(b"\n", 0, offset) + 1, end
        offset = searched.find(needle, end)


def _all_lines(block: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := block.find(b"\n", start) + 1) > 0:
        yield start, end
        start = end


def _pieces(event: object) -> Iterator[Piece]:
    """The texts of a record."""
    match event:
        case PromptReceived(content=content):
            yield "prompt", "", content
        case MessageAdded(message=message) | ResponseCompleted(message=Message() as message):
            for part in message.parts:
                yield from _part(part, "answer" if message.role == "assistant" else "prompt")
        case ToolResultEvent(output=output):
            yield from _part(output, "")
        case _:
            yield from _short_texts(event)


def _short_texts(event: object) -> Iterator[Piece]:
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
    """Every value in some arguments, with the path to it."""
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
    start, end = span[0], min(span[1], span[0] + _MAX_MATCH)
    first = max(0, start - _BEFORE)
    shown = before + text[first : end + _AFTER]
    moved = len(before) - first
    return Hit(session_id, record.seq, record.timestamp, kind, shown, start + moved, end + moved)


def _sessions_with(folder: SessionFolder, needle: bytes, ignore_case: bool) -> set[str] | None:
    """The sessions whose logs contain the needle, as ripgrep finds them; None if it cannot."""
    program = find_ripgrep()
    if program is None:
        return None
    command = [program, "-l", "-0", "--no-config", "-uuu", "-a", "--encoding=none", "--max-depth=2"]
    command += ["-i"] if ignore_case else []
    command += ["-g", "log.jsonl", "-F", "-e", needle.decode()]
    command += ["--", str(folder.folder / "sessions")]
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
    """ripgrep on the PATH, except in the current folder, or beside the interpreter."""
    beside = Path(sys.executable).with_name("rg")  # whoever writes there writes bridle itself
    return find_program("rg", working_folder()) or (str(beside) if beside.exists() else None)
