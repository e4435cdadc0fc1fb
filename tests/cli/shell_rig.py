"""A real shell at a real terminal (a pty), to type into and to read from."""

import os
import pty
import re
import select
import signal
import time

SECONDS = 30.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Shell:
    """`said` is everything that came so far; `until` waits for words that the terminal shows."""

    def __init__(self, command: list[str], environ: dict[str, str], folder: str) -> None:
        self.said = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environ)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    @property
    def shown(self) -> str:
        """What came, without what moves the cursor and paints."""
        return _ESCAPES.sub("", self.said.decode("utf-8", "replace"))

    def until(self, wanted: str, times: int = 1) -> str:
        """Wait until the words were shown so often; what was shown."""
        end = time.monotonic() + SECONDS
        while self.shown.count(wanted) < times:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} was not shown {times} times in:\n{self.shown}"
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.said += os.read(self.fd, 65536)
                except OSError as error:  # the shell has left
                    raise AssertionError(f"the shell left:\n{self.shown}") from error
        return self.shown

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
