"""The tool `read`: the lines of a file with their numbers, the names in a folder, a small picture.

A large file is read in pieces, and no more of it is held than is shown. The state in which a file
was read is remembered, so that the model may change it.
"""

import base64
import codecs
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from bridle.errors import ToolError
from bridle.messages import Image
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.encoding import HEAD, decode, detect_encoding, replace_bad_bytes
from bridle.tools.thread_pool import in_thread
from bridle.tools.workspace_files import (
    MAX_COMPARED,
    MAX_ENTRIES,
    content_state,
    file_status,
    first_entries,
    forget_file,
    missing_file_error,
    remember_file,
    status_state,
    workspace_of,
)
from bridle.workspace.text import MOST_PICTURE_BYTES, media_type_of, one_line

MAX_LINE = 2000  # characters of one line that are shown
MAX_TEXT = 100_000  # characters of all lines together
_LINES = 2000  # unless the model asks for another number
_MAX_NAMES = 1000  # of a folder
_MAX_SEARCHED = 1 << 30  # bytes of a file that are read to find a line
_PIECE = 1 << 18  # bytes, or characters


class Read:
    """Reads a file or a folder of the workspace."""

    name = "read"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, or a folder."},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line. From 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Read it, in a thread: the file may be large or far away."""
        window = LineWindow(int(arguments.get("offset", 1)), int(arguments.get("limit", _LINES)))
        return await in_thread(_read_path, context, arguments["path"], window)


def _read_path(context: ToolContext[Any], path: str, window: "LineWindow") -> ToolResult:
    files = context.workspace
    status = file_status(files, path)
    if status is None:
        raise missing_file_error(files, path)
    if S_ISDIR(status.st_mode):
        return _read_folder(files, path)
    forget_file(context, path)
    with workspace_of(files).open_file(path) as file:
        before = os.fstat(file.fileno())
        reader = _FileReader(files.relative(path), file, before.st_size)
        try:
            result = reader.result(window)
        except ToolError:
            if reader.state:  # all of it was read, and the model is told what it is
                remember_file(context, path, reader.state)
            raise
        after = os.fstat(file.fileno())
    if status_state(after) != status_state(before):
        note = "[the file changed while it was read: read it again before you change it]"
        return ToolResult(True, f"{result.text}\n{note}", result.data, media=result.media)
    remember_file(context, path, reader.state or status_state(before))
    return result


def _read_folder(files: Files, path: str) -> ToolResult:
    """Return the names of its entries in order, or of the first ones that the system lists."""
    entries, count = first_entries(files, path, _MAX_NAMES)
    lines = [
        one_line(f"{entry.name}/" if entry.kind == "folder" else entry.name, 300)
        for entry in entries
    ]
    if count > MAX_ENTRIES:
        lines.append(f"[… and more: the folder has over {MAX_ENTRIES:,} entries; use glob]")
    elif count > _MAX_NAMES:
        lines.append(f"[… and {count - _MAX_NAMES:,} more; use glob]")
    text = "\n".join(lines) or "(the folder is empty)"
    return ToolResult.success({"path": files.relative(path), "names": count}, text=text)


class _FileReader:
    """Reads one open file. `state` identifies its content if all of it was read."""

    def __init__(self, path: str, file: FileIO, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._notes: list[str] = []
        self.state = ""

    def result(self, window: "LineWindow") -> ToolResult:
        """Return the picture, or the lines of the window. Raise `ToolError`."""
        head = self._file.read(HEAD)
        if media := media_type_of(head):
            return self._picture(head, media)
        if self._size <= MAX_COMPARED:
            data = head + self._read_up_to(MAX_COMPARED + 1 - len(head))
            if len(data) <= MAX_COMPARED:
                self.state = content_state(data)
                text, encoding = decode(self._path, data)
                if encoding.errors != "strict":
                    text = replace_bad_bytes(text)
                if encoding.note:
                    self._notes.append(encoding.note)
                pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
                return self._lines(window, pieces, is_whole=True)
            head = data
        return self._lines(window, self._decode_pieces(head), is_whole=False)

    def _picture(self, head: bytes, media: str) -> ToolResult:
        data = head + self._read_up_to(MOST_PICTURE_BYTES + 1 - len(head))
        path = one_line(self._path, 200)
        if len(data) > MOST_PICTURE_BYTES:
            raise ToolError(f"`{path}` is a picture of {self._size:,} bytes: too large to be shown")
        self.state = content_state(data)
        summary = f"`{path}` is a picture ({media}, {len(data):,} bytes); it is attached."
        picture = Image(media, base64.b64encode(data).decode())
        return ToolResult(True, summary, {"path": self._path, "media": media}, media=(picture,))

    def _read_up_to(self, limit: int) -> bytes:
        """Read up to `limit` bytes without reserving the memory for all of them."""
        chunks: list[bytes] = []
        while limit > 0 and (chunk := self._file.read(min(limit, 1 << 20))):
            chunks.append(chunk)
            limit -= len(chunk)
        return b"".join(chunks)

    def _decode_pieces(self, head: bytes) -> Iterator[str]:
        """Yield the text of a large file, which is read piece by piece."""
        encoding = detect_encoding(self._path, head, self._size)
        if encoding.note:
            self._notes.append(encoding.note)
        decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
        yield decoder.decode(head[len(encoding.bom) :])
        count = len(head)
        while data := self._file.read(_PIECE):
            count += len(data)
            if count > _MAX_SEARCHED:
                self._notes.append(f"only the first {_MAX_SEARCHED >> 30} GB are searched")
                return
            if encoding.codec == "utf-8" and (index := data.find(0)) >= 0:
                yield decoder.decode(data[:index], True)
                self._notes.append(f"binary data begins at byte {count - len(data) + index:,}")
                return
            yield decoder.decode(data)
        yield decoder.decode(b"", True)

    def _lines(self, window: "LineWindow", pieces: Iterator[str], *, is_whole: bool) -> ToolResult:
        total: int | None = None
        for piece in pieces:
            window.add(piece)
            if window.is_full and not is_whole:
                break
        else:
            window.end()
            total = window.number
        if total is not None and window.first > max(total, 1):
            path = one_line(self._path, 200)
            error = f"`{path}` has {total:,} lines; line {window.first:,} is beyond its end."
            raise ToolError(" ".join([error, *(f"[{note}]" for note in self._notes)]))
        notes = list(self._notes)
        if window.has_crlf:
            notes.append("lines end in CRLF")
        if total is None or window.last < total:
            whole = f"{total:,}" if total is not None else f"a file of {self._size:,} bytes"
            shown = f"lines {window.first}-{window.last} of {whole}"
            notes.append(f"{shown}; continue with offset={window.last + 1}")
        lines = window.lines or ["(the file is empty)"]
        text = "\n".join(lines + [f"[{note}]" for note in notes])
        data = {"path": self._path, "from": window.first, "to": window.last, "lines": total}
        return ToolResult.success(data, text=text)


class LineWindow:
    """Collects numbered lines of a text that comes in pieces, in bounded memory. Pure.

    Keeps at most `count` lines from number `first` on; `last` is the number of the last one that is
    kept. `number` is that of the line which is being read, and in the end how many lines there are.
    Of a very long line the beginning and the length are kept.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.last = first - 1
        self.number = 1
        self.lines: list[str] = []
        self.has_crlf = False
        self.is_full = False
        self._count = count
        self._size = 0
        # The line that is being read: its beginning, its length, and whether it ends in CR so far.
        self._beginning = ""
        self._length = 0
        self._ends_in_cr = False

    def add(self, text: str) -> None:
        """Take the next piece."""
        breaks = text.count("\n")
        if self.is_full or self.number + breaks < self.first:  # nothing of it is kept
            self.has_crlf = self.has_crlf or "\r\n" in text
            self.number += breaks
            self._length = len(text) - text.rfind("\n") - 1 + (0 if breaks else self._length)
            return
        for index, piece in enumerate(text.split("\n")):
            if index:
                self.has_crlf = self.has_crlf or self._ends_in_cr
                self._end_line()
                self.number += 1
                self._beginning, self._length, self._ends_in_cr = "", 0, False
            self._length += len(piece)
            if piece and self.number >= self.first and not self.is_full:
                self._beginning = (self._beginning + piece[: MAX_LINE + 2])[: MAX_LINE + 2]
                self._ends_in_cr = piece.endswith("\r")

    def end(self) -> None:
        """Take the last line, which may have no line end."""
        if self._length:
            self._end_line()
        else:
            self.number -= 1

    def _end_line(self) -> None:
        """Keep the line that was read, if it is one of those to show."""
        if self.number < self.first or self.is_full:
            return
        line, length = self._beginning, self._length
        if self._ends_in_cr:
            line, length = line[:length].removesuffix("\r"), length - 1
        if length > MAX_LINE:
            line = f"{line[:MAX_LINE]}[… the line has {length:,} characters]"
        self._size += len(line) + 8
        if self.lines and self._size > MAX_TEXT:
            self.is_full = True
            return
        self.lines.append(f"{self.number:>6}\t{line}")
        self.last = self.number
        self.is_full = len(self.lines) >= self._count
