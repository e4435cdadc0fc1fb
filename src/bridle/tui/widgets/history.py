"""Earlier prompts and unsent drafts: two private, bounded files in the state folder.

Prompts are one JSON string a line, the newest last; several processes append to the same file.
Drafts are kept by session. If a file cannot be read or written, the history is lost, never the
prompt. What is read back is not trusted: whoever shows it makes it neutral.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from bridle.workspace.fs import replace_file

MOST = 1_000  # prompts
_LARGEST = 4_000_000  # bytes of the file
_LONGEST = 1_000_000  # characters of one prompt that is kept
_DRAFTS = 50


class PromptHistory:
    """Earlier prompts, and the position of Up and Down among them."""

    def __init__(self, state: str | os.PathLike[str] | None = None) -> None:
        self._file = None if state is None else Path(state, "prompts.jsonl")
        self._all: list[str] = []
        self._at = 0  # past the last one: the draft
        self._shown: dict[int, str] = {}  # what was typed into them
        self._is_read = False
        self._reading = Lock()

    def load(self) -> None:
        """Read the file, once. May be called in a thread: whoever needs it meanwhile waits."""
        with self._reading:
            if self._is_read:
                return
            if self._file is not None:
                self._all = _read(self._file)[-MOST:]
            self._at = len(self._all)
            self._is_read = True

    @property
    def newest_first(self) -> tuple[str, ...]:
        """Each prompt once, the newest first."""
        return tuple(dict.fromkeys(reversed(self._all)))

    def add(self, text: str) -> None:
        """Remember a prompt and go to the end; the same one twice in a row counts once."""
        self.load()  # otherwise it would be read from the file again
        self._shown.clear()
        if text.strip() and len(text) <= _LONGEST and self._all[-1:] != [text]:
            self._all = [*self._all, text][-MOST:]
            if self._file is not None:
                with suppress(OSError):
                    _append(self._file, text)
        self._at = len(self._all)

    def older(self, current: str) -> str | None:
        """Return the prompt before the one that is shown; None if there is none."""
        return self._step(current, -1) if self._at > 0 else None

    def newer(self, current: str) -> str | None:
        """Return the prompt after it, at last the draft; None if that is shown."""
        return self._step(current, 1) if self._at < len(self._all) else None

    def _step(self, current: str, by: int) -> str:
        """Move to another prompt; what was typed into this one is kept until one is sent."""
        self._shown[self._at] = current
        self._at += by
        kept = self._all[self._at] if self._at < len(self._all) else ""
        return self._shown.get(self._at, kept)


class Drafts:
    """What was typed and not sent, by session."""

    def __init__(self, state: str | os.PathLike[str] | None = None) -> None:
        self._file = None if state is None else Path(state, "drafts.json")
        self._own: dict[str, str] = {}

    def keep(self, session: str, text: str) -> None:
        """Save a draft, or forget it if it is empty."""
        import json

        before = self.of(session)
        self._own[session] = text[:_LONGEST]
        if self._file is None or before == text:
            return
        with suppress(OSError), _alone(self._file):
            kept = {**_kept(self._file), session: text[:_LONGEST]}
            kept[session] = kept.pop(session)  # the newest last
            kept = {name: said for name, said in kept.items() if said.strip()}
            newest = dict(list(kept.items())[-_DRAFTS:])
            replace_file(self._file, json.dumps(newest).encode())

    def of(self, session: str) -> str:
        """Return the draft of a session; empty if there is none."""
        if session in self._own or self._file is None:
            return self._own.get(session, "")
        return _kept(self._file).get(session, "")


def _read(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            start = max(file.tell() - _LARGEST, 0)
            file.seek(start)
            lines = file.read(_LARGEST).split(b"\n")[1 if start else 0 :]
    except OSError:
        return []
    return [said for line in lines if (said := _said(line))]


def _said(line: bytes) -> str:
    import json

    try:
        found = json.loads(line) if line else ""
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _append(path: Path, text: str) -> None:
    """Append a line; a file that has grown too large is cut to its newer half."""
    import json

    with _alone(path):
        line = json.dumps(text).encode() + b"\n"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line)
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > _LARGEST:
            kept: list[bytes] = []
            room = _LARGEST // 2
            for said in reversed(_read(path)):
                line = json.dumps(said).encode() + b"\n"
                room -= len(line)
                if room < 0 and kept:
                    break
                kept.append(line)
            replace_file(path, b"".join(reversed(kept)))


def _kept(path: Path) -> dict[str, str]:
    import json

    try:
        with path.open("rb") as file:
            found = json.loads(file.read(10 * _LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: said for key, said in found.items() if isinstance(said, str)}


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of this file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
