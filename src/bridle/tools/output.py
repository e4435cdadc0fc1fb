"""The output of a call in bounded memory: its beginning and its end, and all of it in a file.

The file is created only if there is more than the memory keeps. It is private to the user, contains
no known secret, and is limited, too.
"""

import codecs
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from bridle.tools.thread_pool import in_thread

LIMIT = 30_000  # characters that are kept in memory, and that are shown while the call runs
_MAX_FILE = 50 * 1024 * 1024  # bytes
_BLOCK = 1 << 20  # characters that are redacted together
_OVERLAP = 16_384  # characters at its end that wait for the next block, which may complete a secret
_MAX_LINE = 2000  # characters of a line that are read back
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BoundedOutput:
    """Keeps the beginning and the end of an output, and shows its beginning as it comes.

    `say` shows text to the person, `keep` gets all of it. `omitted` is the number of characters
    between beginning and end that were dropped.
    """

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: None,
        limit: int = LIMIT,
        keep: Callable[[str], None] | None = None,
    ) -> None:
        self._say = say
        self._keep = keep
        self._limit = limit
        self._shown_size = 0
        self._head: list[str] = []
        self._head_room = limit * 2 // 3
        self._tail: deque[str] = deque()
        self._tail_limit = limit - self._head_room
        self._tail_size = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.omitted = 0

    def add_bytes(self, data: bytes, final: bool = False) -> bool:
        """Add output of a program. Returns True: more is always welcome."""
        self.add(self._decode(data, final))
        return True

    def add(self, text: str) -> None:
        """Add text."""
        if self._keep is not None:
            self._keep(text)
        room = self._limit - self._shown_size
        if text and room >= 0:
            self._shown_size += len(text)
            is_complete = len(text) <= room
            self._say(text if is_complete else f"{text[:room]}\n[… more output, not shown here]\n")
        head, rest = text[: self._head_room], text[self._head_room :]
        if head:
            self._head.append(head)
            self._head_room -= len(head)
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            self._trim_tail()

    def _trim_tail(self) -> None:
        while self._tail_size > self._tail_limit:
            excess = self._tail_size - self._tail_limit
            first = self._tail[0]
            if len(first) <= excess:
                self._tail.popleft()
            else:
                self._tail[0] = first[excess:]
            dropped = min(len(first), excess)
            self._tail_size -= dropped
            self.omitted += dropped

    @property
    def text(self) -> str:
        """What is kept, with a line that says how much is missing."""
        gap = f"\n[… {self.omitted:,} characters are left out here …]\n" if self.omitted else ""
        return "".join(self._head) + gap + "".join(self._tail)


class OutputFile:
    """All of an output in a file, which is created when the output outgrows the memory."""

    def __init__(self, path: str, redact: Callable[[str], str], limit: int = _MAX_FILE) -> None:
        self.path = path  # empty: nothing is kept
        self.is_cut = False  # there was more than the limit
        self._redact = redact
        self._room = limit
        self._pending: list[str] = []
        self._pending_size = 0
        self._file: BinaryIO | None = None
        self._is_closed = not path

    def add(self, text: str) -> None:
        """Add text."""
        if self._is_closed:
            return
        self._pending.append(text)
        self._pending_size += len(text)
        if self._pending_size > _BLOCK:
            self._write(overlap=_OVERLAP)

    def finish(self) -> bool:
        """Write the rest and close the file. Return whether there is a file."""
        if not self._is_closed:
            self._write(overlap=0)
        self._is_closed = True
        if self._file is None:
            return False
        self._file.close()
        return True

    def discard(self) -> None:
        """Drop what was not written: the memory has all of the output."""
        self._is_closed = True
        self._pending.clear()
        if self._file is not None:
            self._file.close()

    def _write(self, *, overlap: int) -> None:
        text = "".join(self._pending)
        end = len(text)
        if overlap:  # at the end of a line, if there is one
            end = text.rfind("\n", 0, end - overlap) + 1 or end - overlap
        data = self._redact(text[:end]).encode(errors="replace")
        self._pending = [text[end:]]
        self._pending_size = len(text) - end
        try:
            if self._file is None:
                self._file = _create_private_file(self.path)
            self._file.write(data[: self._room])
            self._room -= len(data)
            if self._room < 0:
                self._file.write(b"\n[... the rest was not kept]\n")
                self._stop_writing()
        except OSError:
            self._stop_writing()  # a full disk does not end a command

    def _stop_writing(self) -> None:
        self._is_closed = self.is_cut = True
        self._pending.clear()


async def finish_output(output: BoundedOutput, file: OutputFile, call_id: str) -> str:
    """Keep the file if the output is longer than the memory, and say how to read it."""
    if output.omitted == 0:
        file.discard()
        return ""
    if not await in_thread(file.finish):
        return ""
    what = "only the beginning of the output" if file.is_cut else "the whole output"
    return f"{what} is kept: shell_output with id {call_id!r} and a line number reads it"


def output_path(folder: str, call_id: str) -> str:
    """Return where the output of a call is kept, empty if the session has no folder."""
    if not folder:
        return ""
    is_safe = _SAFE_NAME.fullmatch(call_id)
    name = call_id if is_safe else sha256(call_id.encode()).hexdigest()[:32]
    return str(Path(folder, "outputs", f"{name}.txt"))


def read_lines(path: str, first: int, count: int) -> list[str]:
    """Return lines of a kept output, from number `first` (from 1); long ones are cut."""
    with suppress(FileNotFoundError), Path(path).open("rb") as file:
        return list(islice(_cut_lines(file), first - 1, first - 1 + count))
    return []


def _cut_lines(file: BinaryIO) -> Iterator[str]:
    while line := file.readline(_MAX_LINE * 4):
        is_complete = line.endswith(b"\n")
        while not is_complete and (rest := file.readline(1 << 20)):
            is_complete = rest.endswith(b"\n")
        yield line.decode(errors="replace")[:_MAX_LINE].rstrip("\n")


def _create_private_file(path: str) -> BinaryIO:
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
