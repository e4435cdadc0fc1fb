"""How the tool `read` reads: a file in pieces, and no more of it is held than is shown.

What was read is remembered, so that it may be changed.
"""

import base64
import codecs
import os
from collections.abc import Iterator
from io import FileIO
from typing import Any

from bridle.errors import ToolError
from bridle.messages import Image
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.encoding import HEAD, coding_of, decode, shown
from bridle.tools.nearby import missing
from bridle.tools.opening import LOOKED, first_entries, opened
from bridle.tools.seen import WHOLE, Seen, mark_of, mark_of_large
from bridle.tools.window import Window
from bridle.workspace import pictures
from bridle.workspace.text import one_line

FURTHEST = 1 << 30  # bytes of a file that are looked through for a line
_PIECE = 1 << 18
_NAMES = 1000


def read(context: ToolContext[Any], path: str, window: Window) -> ToolResult:
    """So much of a file, or what is in a folder. Raise `ToolError`."""
    files, seen = context.workspace, Seen(context)
    if files.is_folder(path):
        return _folder(files, path)
    if not files.exists(path):
        raise missing(files, path)
    seen.forget(path)
    with opened(files, path) as file:
        before = os.fstat(file.fileno())
        reading = _Reading(files.relative(path), file, before.st_size)
        try:
            result = reading.result(window)
        except ToolError:
            if reading.mark:  # all of it was read, and what it is was said
                seen.remember(path, reading.mark)
            raise
        changed = _state(os.fstat(file.fileno())) != _state(before)
    if changed:
        said = "[the file changed while it was read: read it again before you change it]"
        return ToolResult(True, f"{result.text}\n{said}", result.data, media=result.media)
    seen.remember(path, reading.mark or mark_of_large(before))
    return result


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _folder(files: Files, path: str) -> ToolResult:
    """Its names, in order; of a folder beyond all bounds, those that the system names first."""
    entries, count = first_entries(files, path, _NAMES)
    found = [one_line(entry.shown, 300) for entry in entries]
    if count > LOOKED:
        found.append(f"[… and more: the folder has over {LOOKED:,} entries; use glob]")
    elif count > _NAMES:
        found.append(f"[… and {count - _NAMES:,} more; use glob]")
    text = "\n".join(found) or "(the folder is empty)"
    return ToolResult.success({"path": files.relative(path), "names": count}, text=text)


class _Reading:
    """One file, open. `mark` names its content where all of it was read."""

    def __init__(self, path: str, file: FileIO, size: int) -> None:
        self._path = path
        self._file = file
        self._size = size
        self._notes: list[str] = []
        self.mark = ""

    def result(self, window: Window) -> ToolResult:
        """Its picture, or its lines."""
        head = self._file.read(HEAD)
        if media := pictures.media_type_of(head):
            return self._picture(head, media)
        if self._size <= WHOLE:
            data = head + _gather(self._file, WHOLE + 1 - len(head))
            if len(data) <= WHOLE:
                return self._lines(window, self._whole(data), whole=True)
            head = data
        return self._lines(window, self._pieces(head), whole=False)

    def _picture(self, head: bytes, media: str) -> ToolResult:
        data = head + _gather(self._file, pictures.MOST_BYTES + 1 - len(head))
        path = one_line(self._path, 200)
        if len(data) > pictures.MOST_BYTES:
            raise ToolError(f"`{path}` is a picture of {self._size:,} bytes: too large to be shown")
        self.mark = mark_of(data)
        text = f"`{path}` is a picture ({media}, {len(data):,} bytes); it is attached."
        picture = Image(media, base64.b64encode(data).decode())
        return ToolResult(True, text, {"path": self._path, "media": media}, media=(picture,))

    def _whole(self, data: bytes) -> Iterator[str]:
        self.mark = mark_of(data)
        text, coding = decode(self._path, data)
        if coding.note:
            self._notes.append(coding.note)
        text = shown(text)
        for start in range(0, len(text), _PIECE):
            yield text[start : start + _PIECE]

    def _pieces(self, head: bytes) -> Iterator[str]:
        """A large file, piece by piece, as far as anybody looks."""
        coding = coding_of(self._path, head, self._size)
        if coding.note:
            self._notes.append(coding.note)
        decoder = codecs.getincrementaldecoder(coding.codec)("replace")
        yield decoder.decode(head[len(coding.mark) :])
        looked = len(head)
        while data := self._file.read(_PIECE):
            looked += len(data)
            if looked > FURTHEST:
                self._notes.append(f"no further than {FURTHEST >> 30} GB are looked through")
                return
            if coding.codec == "utf-8" and (at := data.find(0)) >= 0:
                yield decoder.decode(data[:at], True)
                self._notes.append(f"binary data begins at byte {looked - len(data) + at:,}")
                return
            yield decoder.decode(data)
        yield decoder.decode(b"", True)

    def _lines(self, window: Window, pieces: Iterator[str], *, whole: bool) -> ToolResult:
        ended = True
        for piece in pieces:
            window.take(piece)
            if window.full and not whole:
                ended = False
                break
        lines = window.end() if ended else window.lines
        total = window.number if ended else None
        if total is not None and window.first > max(total, 1):
            notes = "".join(f" [{note}]" for note in self._notes)
            path = one_line(self._path, 200)
            raise ToolError(
                f"`{path}` has {total:,} lines; line {window.first:,} is beyond its end.{notes}"
            )
        said = lines or ["(the file is empty)"]
        text = "\n".join(said + [f"[{note}]" for note in self._said(window, total)])
        data = {"path": self._path, "from": window.first, "to": window.last, "lines": total}
        return ToolResult.success(data, text=text)

    def _said(self, window: Window, total: int | None) -> list[str]:
        """What has to be known of the lines."""
        notes = list(self._notes)
        if window.crlf:
            notes.append("lines end in CRLF")
        if total is None or window.last < total:
            whole = f"{total:,}" if total is not None else f"a file of {self._size:,} bytes"
            which = f"lines {window.first}-{window.last} of {whole}"
            notes.append(f"{which}; go on with offset={window.last + 1}")
        return notes


def _gather(file: FileIO, most: int) -> bytes:
    """Up to so many bytes more, without asking for their room beforehand."""
    chunks: list[bytes] = []
    while most > 0 and (chunk := file.read(min(most, 1 << 20))):
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)
