"""What a program says, in bounded memory: the beginning and the end, and all of it in a file.

The file is only made when there is more than the memory keeps. It is private to the user, holds no
known secret, and has an end of its own.
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

OUTPUT = 30_000  # characters that are kept, and that are said while it runs
MOST = 50 * 1024 * 1024  # bytes of a file
_BLOCK = 1 << 20  # characters that are cleaned together
_OVERLAP = 16_384  # ... and that wait for the next: half a secret is not found
_LINE = 2000  # characters of a line that are shown
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Output:
    """The beginning and the end of what a program says."""

    def __init__(
        self,
        say: Callable[[str], None],
        limit: int = OUTPUT,
        keep: Callable[[str], None] | None = None,
    ) -> None:
        self._say = say
        self._keep = keep
        self._head_room = limit * 2 // 3
        self._tail_most = limit - self._head_room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._said = 0
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.left_out = 0

    def take(self, data: bytes, final: bool = False) -> bool:
        """Take some more; there is never enough."""
        self.add(self._decode(data, final))
        return True

    def add(self, text: str) -> None:
        """Take some more that is text already."""
        if self._keep is not None:
            self._keep(text)
        self._speak(text)
        head, rest = text[: self._head_room], text[self._head_room :]
        if head:
            self._head.append(head)
            self._head_room -= len(head)
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            self._trim()

    def _speak(self, text: str) -> None:
        room = self._limit - self._said
        if not text or room < 0:
            return
        self._said += len(text)
        fits = len(text) <= room
        self._say(text if fits else f"{text[:room]}\n[… more output, not shown here]\n")

    def _trim(self) -> None:
        while self._tail_size > self._tail_most:
            over = self._tail_size - self._tail_most
            first = self._tail[0]
            if len(first) <= over:
                self._tail.popleft()
            else:
                self._tail[0] = first[over:]
            gone = min(len(first), over)
            self._tail_size -= gone
            self.left_out += gone

    @property
    def text(self) -> str:
        """What is kept, with a line that says how much is not."""
        gap = f"\n[… {self.left_out:,} characters are left out here …]\n" if self.left_out else ""
        return "".join(self._head) + gap + "".join(self._tail)


class Kept:
    """All of an output, in a file that is made when it outgrows the memory."""

    def __init__(self, path: str, clean: Callable[[str], str], most: int = MOST) -> None:
        self.path = path  # empty: nothing is kept
        self._clean = clean
        self._room = most
        self._waiting: list[str] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._is_over = not path
        self.is_cut = False  # there was more than is kept

    def add(self, text: str) -> None:
        """Take some more."""
        if self._is_over:
            return
        self._waiting.append(text)
        self._size += len(text)
        if self._size > _BLOCK:
            self._write(_OVERLAP)

    def finish(self) -> bool:
        """There is no more. Is there a file?"""
        if not self._is_over:
            self._write(0)
        self._is_over = True
        if self._file is None:
            return False
        self._file.close()
        return True

    def drop(self) -> None:
        """Nobody needs it: the memory keeps it all."""
        self._is_over = True
        self._waiting.clear()
        if self._file is not None:
            self._file.close()

    def _write(self, held: int) -> None:
        text = "".join(self._waiting)
        cut = _line_end(text, len(text) - held) if held else len(text)
        data = self._clean(text[:cut]).encode(errors="replace")
        self._waiting = [text[cut:]]
        self._size = len(text) - cut
        try:
            if self._file is None:
                self._file = _private(self.path)
            self._file.write(data[: self._room])
            self._room -= len(data)
            if self._room < 0:
                self._file.write(b"\n[... the rest was not kept]\n")
                self._cut()
        except OSError:
            self._cut()  # a full disk does not end a command

    def _cut(self) -> None:
        self._is_over = self.is_cut = True
        self._waiting.clear()


def kept_path(folder: str, call_id: str) -> str:
    """Where the output of a call is kept; empty where there is no folder."""
    if not folder:
        return ""
    name = call_id if _NAME.fullmatch(call_id) else sha256(call_id.encode()).hexdigest()[:32]
    return str(Path(folder, "outputs", f"{name}.txt"))


def lines_of(path: str, first: int, count: int) -> list[str]:
    """Some lines of a kept output, the first being number 1; long ones are cut."""
    with suppress(FileNotFoundError), Path(path).open("rb") as file:
        return list(islice(_cut_lines(file), first - 1, first - 1 + count))
    return []


def _cut_lines(file: BinaryIO) -> Iterator[str]:
    while line := file.readline(_LINE * 4):
        whole = line.endswith(b"\n")
        while not whole and (more := file.readline(1 << 20)):
            whole = more.endswith(b"\n")
        yield line.decode(errors="replace")[:_LINE].rstrip("\n")


def _line_end(text: str, most: int) -> int:
    """The last end of a line before that place, or the place itself."""
    return text.rfind("\n", 0, most) + 1 or most


def _private(path: str) -> BinaryIO:
    folder = Path(path).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
