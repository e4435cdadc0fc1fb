"""The sessions in a state folder, as a `SessionCatalog`: logs that other processes may be writing.

The beginning of a log never changes, so it is read once. Titles and tags are read again when the
log has changed.
"""

import os
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import BinaryIO

from bridle.errors import StoreFailed
from bridle.policy import Mode
from bridle.protocols.session_catalog import HeadQuery, Owner, PendingApproval, SessionHead
from bridle.protocols.store import InboxMessage, Record
from bridle.stores.inbox_files import Notifier, read_messages, send
from bridle.stores.locks import describe_process, lock_owners, owner_pid
from bridle.stores.pending_approvals import pending_in
from bridle.stores.reader import SessionFolder, find_records, replay
from bridle.stores.recorded_mode import recorded_mode
from bridle.stores.search import Hit, search
from bridle.stores.session_index import (
    LastRun,
    LogEntry,
    SessionEntry,
    get_session,
    last_run,
    log_entries,
    read_entries,
)
from bridle.stores.transfer import delete, export_lines, fork, head_of, import_log, is_imported
from bridle.workspace.fs import READ

Version = tuple[int, int, float]  # inode, size, time of the last change


class FileCatalog(SessionFolder):
    """The sessions of a state folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self._beginnings: dict[str, tuple[int, SessionEntry]] = {}  # by id, with the file's inode
        self._labels: dict[str, tuple[Version, SessionEntry]] = {}  # with the title and tags of now
        self._unasked: dict[str, Version] = {}  # logs without pending approval requests

    def heads(self, query: HeadQuery) -> Iterator[SessionHead]:
        """Yield the sessions that fit, the newest first."""
        words = " ".join(query.words.split()).casefold()
        owners: dict[tuple[int, int], int] | None = None
        for log in self._logs():
            if query.before is not None and (log.changed, log.id) >= query.before:
                continue
            entry = self._beginning(log)
            if entry is None or not _is_in(entry.workspace, query.workspaces):
                continue
            if query.parent and entry.parent != query.parent:
                continue
            if words and not _matches(self._labelled(log, entry), words):
                continue
            if owners is None:
                owners = lock_owners() if query.owners else {}
            pid = owners.get(entry.file)
            yield _head(log, entry, "" if pid is None else describe_process(pid))

    def head(self, session_id: str) -> SessionHead | None:
        """Return the session with exactly this id."""
        found = get_session(self.folder, session_id)
        return _head(*found) if found is not None else None

    def owner(self, session_id: str) -> Owner | None:
        """Return the process that owns the session, if any does."""
        pid = owner_pid(self.path(session_id))
        return None if pid is None else Owner(pid, describe_process(pid), pid == os.getpid())

    def last_run(self, session_id: str) -> LastRun:
        """Return what the session last ran with."""
        return last_run(self.path(session_id))

    def owner_mode(self, session_id: str) -> Mode:
        """Return the permission mode of the process that owns it, or did last."""
        return recorded_mode(self.path(session_id))

    def is_imported(self, session_id: str) -> bool:
        """Whether its log, or the beginning of it, was imported."""
        return is_imported(self, session_id)

    def last_seq(self, session_id: str) -> int:
        """Return the number of the newest record."""
        return head_of(self, session_id).seq

    def fold(self, session_id: str, apply: Callable[[Record], None]) -> int:
        """Pass `apply` all records that make up the session's state; return the newest number."""
        return replay(self, session_id, apply)

    def find(self, session_id: str, content: bytes) -> Iterator[Record]:
        """Yield the records whose lines contain these bytes, the newest first."""
        return find_records(self, session_id, content)

    def pending(self, session_id: str) -> list[PendingApproval]:
        """Return the session's pending approval requests."""
        version = self.version(session_id)
        if version is None or self._unasked.get(session_id) == version:
            return []
        path = os.fspath(self.path(session_id).parent)
        inode, size, changed = version
        requests = pending_in(LogEntry(changed, session_id, path, size, inode), self)
        if not requests:  # if there are some, an answer may arrive in the inbox at any time
            self._unasked[session_id] = version
        return requests

    def inbox(self, session_id: str) -> list[InboxMessage]:
        """Return the messages in the session's inbox, in order."""
        return read_messages(self.path(session_id).parent)

    def send(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into the session's inbox, durably, and notify its owner."""
        send(self.path(session_id).parent, message)
        Notifier(self.folder).notify()

    def search(self, words: str, sessions: Collection[str], limit: int) -> Iterator[Hit]:
        """Find text in these sessions, the newest first."""
        return search(self, words, sessions=sessions, limit=limit)

    def export(self, session_id: str) -> Iterator[bytes]:
        """Yield the lines of the session's log, unchanged."""
        return export_lines(self, session_id)

    def import_log(self, source: BinaryIO, new_id: Callable[[], str]) -> str:
        """Import a log unchanged; return the session's id."""
        return import_log(self, source, new_id)[0]

    def fork(self, session_id: str, at: int | None, new_id: str, title: str) -> None:
        """Create a session that begins as this one did, up to a record."""
        fork(self, session_id, at, new_id, title=title)

    def delete(self, session_id: str) -> None:
        """Delete a session that no process owns. Raise `SessionLocked`."""
        delete(self, session_id)

    def versions(self, *, owners: bool = False) -> dict[str, tuple[Version, bool]]:
        """Return what changes whenever a session does, by id; with `owners`, also its owner."""
        owned = {inode for _, inode in lock_owners()} if owners else set()
        return {log.id: (_version(log), log.inode in owned) for log in self._logs()}

    def version(self, session_id: str) -> Version | None:
        """Return a value that changes whenever the session's log does; None if it is gone."""
        try:
            info = os.stat(self.path(session_id))  # noqa: PTH116 - up to twenty times a second
        except OSError:
            return None
        return info.st_ino, info.st_size, info.st_mtime

    def flush(self, session_id: str) -> bool:
        """Make durable what the session's owner has written so far. False if that failed."""
        try:
            handle = os.open(self.path(session_id), READ)
        except OSError:
            return False
        try:
            os.fdatasync(handle)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def _logs(self) -> list[LogEntry]:
        """Return all logs, the newest first, and forget those that are gone."""
        try:
            logs = log_entries(self.folder)
        except OSError as error:
            raise StoreFailed(
                f"the sessions cannot be listed: {error.strerror or error}", error
            ) from error
        there = {log.id for log in logs}
        for table in (self._beginnings, self._labels, self._unasked):
            for gone in table.keys() - there:
                table.pop(gone, None)
        return logs

    def _beginning(self, log: LogEntry) -> SessionEntry | None:
        """Return what the beginning of a log says; None if it is gone by now."""
        known = self._beginnings.get(log.id)
        if known is not None and known[0] == log.inode:
            return known[1]
        entry = next(read_entries([log]), None)
        if entry is not None and entry.workspace:
            entry = entry._replace(end=b"")
            self._beginnings[log.id] = log.inode, entry
        return entry

    def _labelled(self, log: LogEntry, entry: SessionEntry) -> SessionEntry:
        """Return the entry with the title and tags of now."""
        known = self._labels.get(log.id)
        if known is not None and known[0] == _version(log):
            return known[1]
        entry = next(read_entries([log]), entry)._replace(end=b"")
        self._labels[log.id] = _version(log), entry
        return entry


def _head(log: LogEntry, entry: SessionEntry, owner: str = "") -> SessionHead:
    return SessionHead(
        id=log.id,
        version=_version(log),
        changed=log.changed,
        created_at=entry.created_at,
        title=entry.title,
        workspace=entry.workspace,
        model=entry.model,
        size=log.size,
        tags=entry.tags,
        parent=entry.parent,
        owner=owner,
    )


def _version(log: LogEntry) -> Version:
    return log.inode, log.size, log.changed


def _is_in(workspace: str, workspaces: Collection[str] | None) -> bool:
    return workspaces is None or (bool(workspace) and _real_path(workspace) in workspaces)


@lru_cache(maxsize=1024)
def _real_path(path: str) -> str:
    return os.path.realpath(path)


def _matches(entry: SessionEntry, words: str) -> bool:
    texts = (entry.id, entry.title, entry.workspace, *entry.tags)
    return any(words in " ".join(text.split()).casefold() for text in texts)
