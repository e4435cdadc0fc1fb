"""Fork, export, import and delete whole sessions. Logs are copied byte for byte: hashes stay valid.

A copy is made under a name that no list shows and is then renamed, so it is there whole or not at
all. The source is only read, and never locked.

An imported log contains answers that somebody else gave. A `fork` record behind its last line says
where it ends, and the file `imported` beside it that its folders are not those of this machine.
"""

import errno
import fcntl
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from bridle.errors import AgentError, SessionError, SessionLocked, StoreFailed, UnknownSession
from bridle.events import Forked, SessionStarted, TitleChanged, UnknownEvent
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.day_budget import DayBudget
from bridle.stores.disk import Disk
from bridle.stores.log_format import (
    FORMAT,
    LOG_NAME,
    NUMBER,
    SESSION_ID,
    iter_blocks_backward,
    stated_hash,
    utc_timestamp,
)
from bridle.stores.reader import (
    LogLoader,
    SessionFolder,
    decode_line,
    iter_lines,
)
from bridle.stores.verify import Head, Progress, Report, verify
from bridle.workspace.fs import CREATE, open_file, open_folder, read_file, write_file

log = logging.getLogger(__name__)

_PIECE = 1 << 20
_PROGRESS = 32 * _PIECE  # bytes between two calls of `progress`
_MAX_LABEL = 1 << 20
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
    """Create a session from the records of this one up to and including `at` (None: all).

    It has the title that the session had there, unless another one is given.
    """
    target = folder.path(new_id).parent
    with _open_source(folder, session_id) as source, _new_copy(folder) as copy:
        seq, digest = _copy_lines(source, at, copy.log, progress)
        if not seq or (at is not None and seq != at):
            raise SessionError(
                f"session {session_id} has no record {at or ''}".rstrip() + "; nothing was created",
                hint=f"The newest record up to there is {seq}." if seq else "",
            )
        line, digest = encode_line(
            seq + 1, utc_timestamp(), encode_data(Forked(session_id, seq)), digest
        )
        copy.log.write(line)
        if title:
            line, _ = encode_line(
                seq + 2, utc_timestamp(), encode_data(TitleChanged(title)), digest
            )
            copy.log.write(line)
        if at is None:
            copy.copy_label(folder.path(session_id).parent)
        if is_imported(folder, session_id):
            copy.mark_imported()
        copy.sync()
        if not copy.rename_to(target.name):
            raise StoreFailed(f"there is a session {new_id} already; nothing was created")


def _copy_lines(
    source: BinaryIO, at: int | None, log: BinaryIO, progress: Progress | None
) -> tuple[int, str]:
    """The number and the hash of the last record that was copied."""
    size, reported, seq, digest = os.fstat(source.fileno()).st_size, 0, 0, ""
    for numbered in iter_lines(source):
        if at is not None and numbered.seq > at:
            break
        log.write(numbered.line)
        if numbered.seq:
            seq, digest = numbered.seq, numbered.hash
        if progress is not None and numbered.offset >= reported + _PROGRESS:
            reported = numbered.offset
            progress(reported, max(size, reported))
        if seq == at:
            break
    if progress is not None:
        progress(size, size)
    return seq, digest


def export_lines(folder: SessionFolder, session_id: str) -> Iterator[bytes]:
    """The lines of a session's log, unchanged. An unfinished last line is left out."""
    with _open_source(folder, session_id) as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def head_of(folder: SessionFolder, session_id: str) -> Head:
    """The newest record of a session, to be kept elsewhere and passed to `verify` later."""
    with _open_source(folder, session_id) as file:
        read, size = partial(os.pread, file.fileno()), os.fstat(file.fileno()).st_size
        _, lines = next(iter_blocks_backward(read, size), (0, b""))
        last = lines[lines.rfind(b"\n", 0, -1) + 1 : -1]
        number, digest = NUMBER.match(last), stated_hash(last)
        seq = int(number[1]) if number else 0
        if not seq or not digest:  # not ours, or damaged: read all of it
            seq = 0
            for numbered in iter_lines(file):
                if numbered.seq:
                    seq, digest = numbered.seq, numbered.hash
    if not seq:
        raise StoreFailed(f"the log of session {session_id} holds no record")
    return Head(seq, digest)


def import_log(
    folder: SessionFolder,
    source: BinaryIO,
    new_id: Callable[[], str],
    progress: Progress | None = None,
) -> tuple[str, Report]:
    """Import a log unchanged; return the session's id, and what is wrong with the log.

    It keeps the id that it names if that is free. A `fork` record is added, behind which grants,
    approval requests and prompts of the imported part no longer count. Raise `StoreFailed` if it
    is not a log.
    """
    with _new_copy(folder) as copy:
        named = _copy_stream(source, copy.log, progress)
        copy.sync()
        report = verify(copy.path / LOG_NAME)
        name = named if SESSION_ID.fullmatch(named) else new_id()
        _write_boundary(copy, name)
        copy.mark_imported()
        copy.sync()
        for _ in range(100):
            folder.path(name)  # raises if it is not an id
            if copy.rename_to(name):
                return name, report
            name = new_id()
    raise StoreFailed("no free id was found for the session; nothing was imported")


def is_imported(folder: SessionFolder, session_id: str) -> bool:
    """Whether its log, or the beginning of it, was imported."""
    return os.path.lexists(folder.path(session_id).parent / _IMPORTED)


def _write_boundary(copy: "_Copy", name: str) -> None:
    """Write the record that separates what was imported from what happens here.

    It must be accepted on resuming, however damaged the lines before it are. So it continues what a
    loader accepts of them, and is read back with one.
    """
    path = copy.path / LOG_NAME
    if not _ends_with_newline(path):
        copy.log.write(b"\n")  # a torn line stays, and is skipped as damaged
        copy.log.flush()
    seq, head, _ = _load(path)
    event = Forked(name, seq)
    copy.log.write(encode_line(seq + 1, utc_timestamp(), encode_data(event), head)[0])
    copy.log.flush()
    if _load(path)[2] != event:
        raise StoreFailed("the log is too damaged to be continued; nothing was imported")


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _load(path: Path) -> tuple[int, str, object]:
    """The number and the hash from which the log is continued on resuming, and its last event."""
    last: object = None
    handle = open_file(path)
    try:
        loader = LogLoader(Disk(), handle)
        for batch in loader.records():
            last = batch[-1].event if batch else last
    except OSError as error:
        raise StoreFailed(
            f"this log cannot be continued: {error.strerror or error}; nothing was imported",
            error,
            hint="Pass a log that `bridle sessions export` wrote.",
        ) from error
    finally:
        os.close(handle)
    return loader.chain.top, loader.chain.head, last


def _copy_stream(source: BinaryIO, log: BinaryIO, progress: Progress | None) -> str:
    """Copy a stream to `log`; return the id that the newest `session_start` names, or nothing."""
    named, records, done, reported, last = "", 0, 0, 0, b"\n"
    total = _length(source)
    while line := source.readline(_PIECE):
        log.write(line)
        if last.endswith(b"\n") and (not records or _START.search(line, 0, 4096)):
            record = decode_line(line)
            records += record is not None
            named = _session_id_in(record.event if record is not None else None) or named
        done, last = done + len(line), line
        if progress is not None and done >= reported + _PROGRESS:
            reported = done
            progress(done, max(total, done))
    if not records:
        raise StoreFailed(
            "there is no record of a session in it; nothing was imported",
            hint="Pass a log that `bridle sessions export` wrote.",
        )
    if progress is not None:
        progress(done, done)
    return named


def _session_id_in(event: object) -> str:
    """The id in a `session_start`. Raise `StoreFailed` if a newer version wrote it."""
    if isinstance(event, SessionStarted):
        format_, named = event.format, event.session_id
    elif isinstance(event, UnknownEvent) and event.data.get("type") == "session_start":
        format_, named = event.data.get("format", 1), str(event.data.get("sessionId", ""))
    else:
        return ""
    if not isinstance(format_, int) or format_ > FORMAT:
        raise StoreFailed(
            f"the log is of format {str(format_)[:20]}, which a newer bridle wrote; "
            "nothing was imported",
            hint="Update bridle and try again.",
        )
    return named


def _length(source: BinaryIO) -> int:
    try:
        return os.fstat(source.fileno()).st_size
    except OSError:  # not a file: its length is known when it ends
        return 0


def delete(folder: SessionFolder, session_id: str) -> None:
    """Delete a session that no process owns. It is gone at once, or stays as it is.

    What it used today still counts towards the budget of the day.
    """
    path = folder.path(session_id)
    try:
        if path.exists():
            DayBudget(folder.folder).record_use()
    except StoreFailed as error:  # a full disk must not prevent a deletion
        log.warning("session %s: %s", session_id, error.message)
    try:
        with (
            open_folder(path.parent.parent) as sessions,
            open_folder(session_id, sessions) as inside,
        ):
            handle = os.open(LOG_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                deleted = f".deleted-{os.urandom(8).hex()}"
                os.rename(session_id, deleted, src_dir_fd=sessions, dst_dir_fd=sessions)
                os.fsync(sessions)
                _remove(deleted, sessions)
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
        raise _failure(f"session {session_id} cannot be deleted", error) from error


def _remove(name: str, above: int) -> None:
    try:
        shutil.rmtree(name, dir_fd=above)
    except OSError as error:
        raise StoreFailed(
            f"the session is gone, but not all of its files: {error.strerror or error}",
            error,
            hint=f"Remove the folder {name} among the sessions by hand.",
        ) from error


@contextmanager
def _open_source(folder: SessionFolder, session_id: str) -> Iterator[BinaryIO]:
    try:
        with os.fdopen(open_file(folder.path(session_id)), "rb", buffering=_PIECE) as file:
            yield file
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except OSError as error:
        raise _failure(f"session {session_id} cannot be copied", error) from error


class _Copy:
    """The folder of a new session, under a name that no list shows."""

    def __init__(self, sessions: int, folder: int, log: BinaryIO, path: Path) -> None:
        self._sessions, self._folder = sessions, folder
        self.log = log
        self.path = path
        self.is_renamed = False

    def copy_label(self, source: Path) -> None:
        """Copy the title and the tags that lists show."""
        with open_folder(source) as folder:
            label = read_file(folder, "label.json", _MAX_LABEL)
        if label is not None:
            write_file(self._folder, "label.json", label)

    def mark_imported(self) -> None:
        write_file(self._folder, _IMPORTED, b"")

    def sync(self) -> None:
        """Make everything written so far durable."""
        self.log.flush()
        os.fsync(self.log.fileno())
        os.fsync(self._folder)

    def rename_to(self, session_id: str) -> bool:
        """Become this session, unless there is one with that id."""
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
        self.is_renamed = True
        os.fsync(sessions)
        return True


@contextmanager
def _new_copy(folder: SessionFolder) -> Iterator[_Copy]:
    name = f".new-{os.urandom(8).hex()}"
    try:
        folder.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            open_folder(folder.folder / "sessions", make=True) as sessions,
            open_folder(name, sessions, make=True) as inside,
            os.fdopen(os.open(LOG_NAME, CREATE, 0o600, dir_fd=inside), "wb", _PIECE) as log,
        ):
            copy = _Copy(sessions, inside, log, folder.folder / "sessions" / name)
            try:
                yield copy
            finally:
                if not copy.is_renamed:
                    _remove_quietly(name, sessions)
    except AgentError:
        raise
    except OSError as error:
        raise _failure("the copy cannot be written", error) from error


def _remove_quietly(name: str, above: int) -> None:
    with suppress(OSError):
        shutil.rmtree(name, dir_fd=above)


def _failure(what: str, error: OSError) -> StoreFailed:
    return StoreFailed(
        f"{what}: {error.strerror or error}",
        error,
        hint="Nothing was changed. Check the disk and the permissions of the folder.",
    )
