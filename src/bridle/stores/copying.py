"""Whole logs: forked, exported, brought in, deleted. Byte for byte, so that every hash stays valid.

A copy is made under a name that no list shows and is then renamed: it is there whole or not at
all. The source is only read and never locked. What the records mean is mostly not known here.

A log that was brought in tells of somebody else's answers. One `fork` record behind its last line
says where that ends, and a file beside it (`imported`) that its folders are not this machine's.
"""

import errno
import fcntl
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bridle.errors import AgentError, SessionError, SessionLocked, StoreFailed, UnknownSession
from bridle.events import Forked, SessionStarted, TitleChanged, UnknownEvent
from bridle.promises.codec import encode_data, encode_line
from bridle.stores.clock import stamp
from bridle.stores.day import Day
from bridle.stores.disk import Disk
from bridle.stores.loading import Loading
from bridle.stores.naming import ID
from bridle.stores.placing import entered, found, opened, place
from bridle.stores.reading import SessionFolder
from bridle.stores.verify import Head, Progress, Report, verify
from bridle.stores.walking import own, readable, walk

log = logging.getLogger(__name__)

FORMAT = 1  # the newest that this version can read
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
_TOLD = 32 * _PIECE
_LABEL = 1 << 20
_IMPORTED = "imported"
_START = re.compile(rb'"type"\s*:\s*"session_start"')


def fork(
    folder: SessionFolder,
    session_id: str,
    at: int | None,
    new_id: str,
    progress: Progress | None = None,
    *,
    title: str = "",
) -> None:
    """Make a session that begins as this one, up to and with record `at` (None: all of it).

    It keeps the title that it has there, unless another one is given.
    """
    target = folder.path(new_id).parent
    with _reading(folder, session_id) as source, _making(folder) as made:
        seq, digest = _copy(source, at, made.log, progress)
        if not seq or (at is not None and seq != at):
            raise SessionError(
                f"session {session_id} has no record {at or ''}".rstrip() + "; nothing was made",
                hint=f"The newest record up to there is {seq}." if seq else "",
            )
        line, digest = encode_line(seq + 1, stamp(), encode_data(Forked(session_id, seq)), digest)
        made.log.write(line)
        if title:
            line, _ = encode_line(seq + 2, stamp(), encode_data(TitleChanged(title)), digest)
            made.log.write(line)
        if at is None:
            made.keep_label(folder.path(session_id).parent)
        if is_imported(folder, session_id):
            made.mark()
        made.settle()
        if not made.become(target.name):
            raise StoreFailed(f"there is a session {new_id} already; nothing was made")


def _copy(
    source: BinaryIO, at: int | None, log: BinaryIO, progress: Progress | None
) -> tuple[int, str]:
    """The number and the hash of the last record that was copied."""
    size, told, seq, digest = os.fstat(source.fileno()).st_size, 0, 0, ""
    for walked in walk(source):
        if at is not None and walked.seq > at:
            break
        log.write(walked.line)
        if walked.seq:
            seq, digest = walked.seq, walked.hash
        if progress is not None and walked.offset >= told + _TOLD:
            told = walked.offset
            progress(told, max(size, told))
        if seq == at:
            break
    if progress is not None:
        progress(size, size)
    return seq, digest


def export_lines(folder: SessionFolder, session_id: str) -> Iterator[bytes]:
    """The lines of a session's log, as they are. One that is not whole is not among them."""
    with _reading(folder, session_id) as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def head_of(folder: SessionFolder, session_id: str) -> Head:
    """The newest record of a session, to be kept elsewhere and handed to `verify` later."""
    with _reading(folder, session_id) as file:
        seq, digest = own(_last_line(file))
        if not seq or not digest:  # not ours, or damaged: the long way
            file.seek(0)
            for walked in walk(file):
                if walked.seq:
                    seq, digest = walked.seq, walked.hash
    if not seq:
        raise StoreFailed(f"the log of session {session_id} holds no record")
    return Head(seq, digest)


def _last_line(file: BinaryIO) -> bytes:
    """The last whole line, if it is of an ordinary size."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _PIECE))
    block = file.read(_PIECE)
    end = block.rfind(b"\n")
    start = block.rfind(b"\n", 0, max(end, 0)) + 1
    return block[start : end + 1] if start or size <= _PIECE else b""


def import_log(
    folder: SessionFolder,
    source: BinaryIO,
    new_id: Callable[[], str],
    progress: Progress | None = None,
) -> tuple[str, Report]:
    """Bring a log in, as it is: the session's id, and what is wrong with the log.

    It keeps the id that it names where that is free. One record follows: what was granted, asked
    or sent before it counts no longer. Raise `StoreFailed` for what is no log.
    """
    with _making(folder) as made:
        named = _receive(source, made.log, progress)
        made.settle()
        report = verify(made.path / "log.jsonl")
        name = named if ID.fullmatch(named) else new_id()
        _part(made, name)
        made.mark()
        made.settle()
        for _ in range(100):
            folder.path(name)  # refuses what is no id
            if made.become(name):
                return name, report
            name = new_id()
    raise StoreFailed("no free id was found for the session; nothing was imported")


def is_imported(folder: SessionFolder, session_id: str) -> bool:
    """Was its log, or the beginning of it, written elsewhere and brought in?"""
    return os.path.lexists(folder.path(session_id).parent / _IMPORTED)


def _part(made: "_Made", name: str) -> None:
    """Write the record that parts what was brought in from what happens here.

    Whoever takes the session up has to believe it, however damaged the lines before it are; so it
    goes on from where they do, and is read back as they would.
    """
    path = made.path / "log.jsonl"
    if not _ends(path):
        made.log.write(b"\n")  # the bytes of a torn line stay; it is passed over as damaged
        made.log.flush()
    seq, head, _ = _taken(path)
    event = Forked(name, seq)
    made.log.write(encode_line(seq + 1, stamp(), encode_data(event), head)[0])
    made.log.flush()
    if _taken(path)[2] != event:
        raise StoreFailed("the log is too damaged to go on from; nothing was imported")


def _ends(path: Path) -> bool:
    """Does the file end with a whole line?"""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _taken(path: Path) -> tuple[int, str, object]:
    """The number, the hash and the last event from which one who takes the log up would go on."""
    last: object = None
    handle = opened(path)
    try:
        loading = Loading(Disk(), handle)
        for batch in loading.records():
            last = batch[-1].event if batch else last
    except OSError as error:
        raise StoreFailed(
            f"nobody could go on from this log: {error.strerror or error}; nothing was imported",
            error,
            hint="Hand in a log that `bridle sessions export` wrote.",
        ) from error
    finally:
        os.close(handle)
    return loading.chain.top, loading.chain.head, last


def _receive(source: BinaryIO, log: BinaryIO, progress: Progress | None) -> str:
    """Take the bytes as they come. The id that the newest `session_start` names, or nothing."""
    named, records, done, told, last = "", 0, 0, 0, b"\n"
    total = _length(source)
    while line := source.readline(_PIECE):
        log.write(line)
        if last.endswith(b"\n") and (not records or _START.search(line, 0, 4096)):
            record = readable(line)
            records += record is not None
            named = _named(record.event if record is not None else None) or named
        done, last = done + len(line), line
        if progress is not None and done >= told + _TOLD:
            told = done
            progress(done, max(total, done))
    if not records:
        raise StoreFailed(
            "there is no record of a session in it; nothing was imported",
            hint="Hand in a log that `bridle sessions export` wrote.",
        )
    if progress is not None:
        progress(done, done)
    return named


def _named(event: object) -> str:
    """The id in a `session_start`. Raise `StoreFailed` where a newer version wrote it."""
    if isinstance(event, SessionStarted):
        written, named = event.format, event.session_id
    elif isinstance(event, UnknownEvent) and event.data.get("type") == "session_start":
        written, named = event.data.get("format", 1), str(event.data.get("sessionId", ""))
    else:
        return ""
    if not isinstance(written, int) or written > FORMAT:
        raise StoreFailed(
            f"the log is of format {str(written)[:20]}, which a newer bridle wrote; "
            "nothing was imported",
            hint="Update bridle and try again.",
        )
    return named


def _length(source: BinaryIO) -> int:
    try:
        return os.fstat(source.fileno()).st_size
    except OSError:  # not a file: its length shows when it ends
        return 0


def delete(folder: SessionFolder, session_id: str) -> None:
    """Remove a session that nobody holds, and nothing else. It is gone at once, or stays.

    What it used today stays used.
    """
    path = folder.path(session_id)
    try:
        if path.exists():
            Day(folder.folder).note()
    except StoreFailed as error:  # a full disk is no reason to keep what fills it
        log.warning("session %s: %s", session_id, error.message)
    try:
        with entered(path.parent.parent) as sessions, entered(session_id, sessions) as inside:
            handle = os.open("log.jsonl", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                aside = f".deleted-{os.urandom(8).hex()}"
                os.rename(session_id, aside, src_dir_fd=sessions, dst_dir_fd=sessions)
                os.fsync(sessions)
                _remove(aside, sessions)
            finally:
                os.close(handle)
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except BlockingIOError:
        raise SessionLocked(
            f"session {session_id} is in use by another process; it was not deleted",
            hint="Wait until it is done there.",
        ) from None
    except OSError as error:
        raise _typed(f"session {session_id} cannot be deleted", error) from error


def _remove(name: str, above: int) -> None:
    import shutil

    try:
        shutil.rmtree(name, dir_fd=above)
    except OSError as error:
        raise StoreFailed(
            f"the session is gone, but not all of its files: {error.strerror or error}",
            error,
            hint=f"Remove the folder {name} among the sessions by hand.",
        ) from error


@contextmanager
def _reading(folder: SessionFolder, session_id: str) -> Iterator[BinaryIO]:
    try:
        with os.fdopen(opened(folder.path(session_id)), "rb", buffering=_PIECE) as file:
            yield file
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except OSError as error:
        raise _typed(f"session {session_id} cannot be copied", error) from error


class _Made:
    """A session's folder under a name that no list shows."""

    def __init__(self, sessions: int, folder: int, log: BinaryIO, path: Path) -> None:
        self._sessions, self._folder = sessions, folder
        self.log = log
        self.path = path
        self.done = False

    def keep_label(self, source: Path) -> None:
        """Title and tags for lists, as the other session has them."""
        with entered(source) as inside:
            label = found(inside, "label.json", _LABEL)
        if label is not None:
            place(self._folder, "label.json", label)

    def mark(self) -> None:
        """Its log, or the beginning of it, was written elsewhere."""
        place(self._folder, _IMPORTED, b"")

    def settle(self) -> None:
        """Everything written so far survives."""
        self.log.flush()
        os.fsync(self.log.fileno())
        os.fsync(self._folder)

    def become(self, session_id: str) -> bool:
        """Take its own name, if nothing has that name."""
        try:
            os.stat(session_id, dir_fd=self._sessions, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            return False
        try:
            sessions = self._sessions
            os.rename(self.path.name, session_id, src_dir_fd=sessions, dst_dir_fd=sessions)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                return False
            raise
        self.done = True
        os.fsync(sessions)
        return True


@contextmanager
def _making(folder: SessionFolder) -> Iterator[_Made]:
    name = f".new-{os.urandom(8).hex()}"
    try:
        folder.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            entered(folder.folder / "sessions", make=True) as sessions,
            entered(name, sessions, make=True) as inside,
            os.fdopen(os.open("log.jsonl", _MAKING, 0o600, dir_fd=inside), "wb", _PIECE) as log,
        ):
            made = _Made(sessions, inside, log, folder.folder / "sessions" / name)
            try:
                yield made
            finally:
                if not made.done:
                    _clear(name, sessions)
    except AgentError:
        raise
    except OSError as error:
        raise _typed("the copy cannot be written", error) from error


def _clear(name: str, above: int) -> None:
    import shutil

    with suppress(OSError):
        shutil.rmtree(name, dir_fd=above)


def _typed(what: str, error: OSError) -> StoreFailed:
    return StoreFailed(
        f"{what}: {error.strerror or error}",
        error,
        hint="Nothing was changed. Check the disk and the folder's rights.",
    )
