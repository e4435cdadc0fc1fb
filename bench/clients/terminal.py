"""A real terminal in which a program runs, as a measure sees it: bytes in, bytes out, and when.

What stands on the screen is not worked out: a measure looks for words among the bytes that were
written, escapes taken away. Knows no program.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE = 60.0  # seconds
SIZE = (90, 24)
ESCAPES = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]")
ASKED = (  # what programs ask of a terminal, and what an xterm answers
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;c"),
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    (b"\x1b[?2048$p", b"\x1b[?2048;0$y"),
)


class Terminal:
    """Runs a program until `close`."""

    def __init__(
        self,
        command: Sequence[str],
        environ: dict[str, str],
        folder: str,
        size: tuple[int, int] = SIZE,
    ) -> None:
        self.said = b""
        self._seen = 0  # how much of it was looked at for questions
        self.begun = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(folder)
            os.execve(command[0], list(command), environ)

    @property
    def words(self) -> str:
        """Everything so far, without its escapes."""
        return plain(self.said)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def read(self, seconds: float) -> bytes:
        """What is written next, if it comes in time; asked for, the terminal says what it is."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return b""
        try:
            more = os.read(self.fd, 1 << 20)
        except OSError:
            more = b""
        if not more:
            raise RuntimeError(f"it has ended: {' '.join(self.words.split())[-300:]}")
        self.said += more
        self._answer()
        return more

    def until(self, is_there: Callable[[bytes], bool], patience: float = PATIENCE) -> float:
        """Read until the bytes so far are as they should be; when that was."""
        end = time.perf_counter() + patience
        while not is_there(self.said):
            if time.perf_counter() > end:
                raise RuntimeError(f"it never came: {' '.join(self.words.split())[-300:]}")
            self.read(0.5)
        return time.perf_counter()

    def wait_for(self, *words: str) -> float:
        """Until all of these have been written since the last `forget`; when that was."""
        return self.until(lambda said: all(one in plain(said) for one in words))

    def forget(self) -> None:
        """What was written so far counts no more; an escape that is not whole stays."""
        at = self.said.rfind(b"\x1b")
        whole = at < 0 or ESCAPES.match(self.said, at)
        self.said = b"" if whole else self.said[at:]
        self._seen = 0

    def quiet(self, seconds: float) -> None:
        """Read until nothing is written for a while."""
        while self.read(seconds):
            continue

    def memory_mb(self) -> float:
        """Resident memory of the program."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(one.split()[1]) for one in lines if one.startswith("VmRSS:")) / 1024

    def close(self) -> None:
        """End it, whatever it does."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _answer(self) -> None:
        fresh = self.said[self._seen :]
        self._seen = len(self.said)
        for question, answer in ASKED:
            if question in fresh:
                os.write(self.fd, answer)


def plain(said: bytes) -> str:
    """Bytes as words."""
    return ESCAPES.sub(b" ", said).decode("utf-8", "replace")
