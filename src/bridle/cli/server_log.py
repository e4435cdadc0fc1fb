"""The log of a server: a private file. If the disk is full, that is reported once."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridle import __version__
from bridle.cli.exit_codes import complain

_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Have what the server's parts have to say in a file that is private."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    writer = _Writer(path, handle)
    writer.setFormatter(logging.Formatter(_LINE))
    root = logging.getLogger()
    root.addHandler(writer)
    root.setLevel(logging.INFO)
    say = logging.getLogger("bridle").info
    say("started, process %d, version %s", os.getpid(), __version__)
    try:
        yield
    finally:
        say("stopped")
        root.removeHandler(writer)
        writer.close()


class _Writer(logging.Handler):
    """Keeps nothing back: what could not be written is lost, and the next line is tried anew."""

    def __init__(self, path: Path, handle: int) -> None:
        super().__init__()
        self._path, self._handle = path, handle
        self._failed = False

    def close(self) -> None:
        """Another thread may be in the middle of a line, or wait to write one: that is lost, and
        does not come into a file that has the number now.
        """
        self.acquire()
        try:
            handle, self._handle = self._handle, -1
            if handle >= 0:
                os.close(handle)
        finally:
            self.release()
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        if self._handle < 0:
            return
        try:
            rest = f"{self.format(record)}\n".encode("utf-8", "replace")
        except Exception:
            self.handleError(record)
            return
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            self._failed = False
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        if self._failed:
            return
        self._failed = True
        with suppress(OSError):  # whoever started it may be gone
            complain(
                f"the log {self._path} cannot be written: {error.strerror}",
                "The server keeps running, and tries again with every line.",
            )
