"""What can be known of sessions without loading their logs.

List sessions, find one by the beginning of its id or title, see which are active in a workspace,
and with what a session last ran. Neither the codec nor an event loop is loaded: that would take
longer than the rest of `bridle sessions list`. The newest sessions are known from the folder alone,
and only the logs that are shown are opened: a few kilobytes at their beginning and their end.
Titles and tags that were changed later are copied to `label.json` beside the log.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bridle.errors import StoreFailed
from bridle.stores import locks
from bridle.stores.log_format import (
    HEADER,
    LOG_NAME,
    SESSION_ID,
    iter_lines_backward,
    record_types,
    utc_timestamp,
)
from bridle.workspace.fs import READ, open_file, open_folder, write_file

if TYPE_CHECKING:
    from pathlib import Path  # a list of sessions needs none, and it takes 4 ms to load

_HEAD_SIZE = 4096  # bytes; a prompt that begins later is not used as the title
_END_SIZE = 2048
_TURN_SIZE = 1 << 16  # bytes at the end of a log, among which the end of a turn is found
_FOREIGN_LINES = 12
_TITLE_LENGTH = 200  # characters of a prompt that are used as the title
_LABEL = "label.json"
_MAX_LABEL = 65536  # bytes
_KINDS = {
    stat.S_IFLNK: "it is a symlink",
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a FIFO",
}
_TURN = record_types("user_prompt", "turn_parked", "turn_end")
_LISTED = record_types("session_start", "user_prompt", "title", "tags", "child_of", "fork")
_RUN = record_types("session_start", "agent", "agent_response")
_AGENT = re.compile(rb'"type":"agent(?:_response)?","agent":("(?:[^"\\]|\\.)*")')
_decoder = json.JSONDecoder(strict=False)  # control characters are allowed in strings
# A prompt that is longer than what is read of the log: its first characters, as JSON has them.
_CUT_PROMPT = re.compile(
    rb'"data": ?\{"type": ?"user_prompt", ?"content": ?"'
    rb'((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u]){0,200})'
)


class SessionEntry(NamedTuple):
    """What a list shows of a session: the fields of a `SessionSummary`, and what tells its state.

    `file`: device and inode of its log. `end`: the last bytes of the log. `parent`: the session
    that started this one as a task. `is_owned`: some process may have it open; only then is it
    worth looking up which one.
    """

    id: str
    created_at: str
    updated_at: str
    title: str
    workspace: str
    model: str
    size: int
    tags: tuple[str, ...] = ()
    file: tuple[int, int] = (0, 0)
    end: bytes = b""
    parent: str = ""
    is_owned: bool = False


class LogEntry(NamedTuple):
    """A log, as far as its folder knows it. `wrong`: why it cannot be read."""

    changed: float
    id: str
    path: str
    size: int
    inode: int
    wrong: str = ""


class Label(NamedTuple):
    """The title and the tags of a session, as `label.json` has them."""

    title: str = ""
    tags: tuple[str, ...] = ()


class LastRun(NamedTuple):
    """The agent, model, workspace, interface and effort that a session last ran with."""

    agent: str = ""
    model: str = ""
    workspace: str = ""
    interface: str = ""
    effort: str = ""


class ActiveSession(NamedTuple):
    """A session that a process owns, and that process in words."""

    session_id: str
    owner: str


# Lists


def list_sessions(folder: str | os.PathLike[str], limit: int | None = None) -> list[SessionEntry]:
    """The sessions of a state folder, the newest first: all, or at most `limit`."""
    sessions: list[SessionEntry] = []
    for session in read_entries(log_entries(folder)):
        if limit is not None and len(sessions) >= limit:
            break
        sessions.append(session)
    return sessions


def count_sessions(folder: str | os.PathLike[str]) -> int:
    """The number of sessions. No log is opened."""
    return len(log_entries(folder))


def find_sessions(folder: str | os.PathLike[str], start: str) -> list[SessionEntry]:
    """The sessions that `start` may mean, the newest first.

    The one with that id; else those whose id begins with it; else those whose id's last part does;
    else those whose title does, ignoring case. Only the titles require all logs to be opened.
    """
    if not start:
        return []
    logs = log_entries(folder)
    by_id = (
        [log for log in logs if log.id == start]
        or [log for log in logs if log.id.startswith(start)]
        or [log for log in logs if log.id.rpartition("-")[2].startswith(start)]
    )
    if by_id:
        return list(read_entries(by_id))
    words = " ".join(start.split()).casefold()
    if not words:
        return []
    return [
        session
        for session in read_entries(logs)
        if " ".join(session.title.split()).casefold().startswith(words)
    ]


def get_session(
    folder: str | os.PathLike[str], session_id: str
) -> tuple[LogEntry, SessionEntry] | None:
    """The session with exactly this id, or None."""
    if not SESSION_ID.fullmatch(session_id):
        return None
    path = f"{os.fspath(folder)}/sessions/{session_id}"
    log = _log_entry(session_id, path, os.path.islink(path))  # noqa: PTH114 - many, and quickly
    session = next(read_entries([log]), None) if log is not None else None
    return None if log is None or session is None else (log, session)


def log_entries(folder: str | os.PathLike[str]) -> list[LogEntry]:
    """All logs, the newest first."""
    logs = []
    try:
        with os.scandir(f"{os.fspath(folder)}/sessions") as entries:
            for entry in entries:
                if not SESSION_ID.fullmatch(entry.name):
                    continue
                log = _log_entry(entry.name, entry.path, entry.is_symlink())
                if log is not None:
                    logs.append(log)
    except FileNotFoundError:
        return []
    return sorted(logs, reverse=True)


def read_entries(logs: Iterable[LogEntry]) -> Iterator[SessionEntry]:
    """What a list shows of each of these logs. One that was deleted meanwhile is left out."""
    for log in logs:
        session = _unreadable(log, log.wrong) if log.wrong else _read_entry(log)
        if session is None:
            continue
        label = read_label(log.path)
        if label is not None:
            has_note = not session.created_at and session.title.startswith("(")
            title = session.title if has_note else label.title or session.title
            session = session._replace(title=title, tags=label.tags)
        yield session


def is_running(end: bytes, size: int) -> bool:
    """Whether the last bytes of a log say that a turn is running, if a process has the session."""
    prompt, parked, over = (end.rfind(data) for data in _TURN)
    if max(prompt, parked, over) < 0:
        return size > len(end)  # the middle of a long turn
    return over < max(prompt, parked)


def _log_entry(name: str, path: str, is_link: bool) -> LogEntry | None:
    """A log, or what is there in its place: a session is never left out because of that."""
    try:
        info = os.lstat(f"{path}/{LOG_NAME}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return LogEntry(0.0, name, path, 0, 0, error.strerror or str(error))
    if is_link:
        wrong = "its folder is a symlink"
    elif stat.S_ISREG(info.st_mode):
        return LogEntry(info.st_mtime, name, path, info.st_size, info.st_ino)
    else:
        wrong = _KINDS.get(stat.S_IFMT(info.st_mode), "it is not a file")
    return LogEntry(info.st_mtime, name, path, 0, info.st_ino, wrong)


# The beginning of a log


def _unreadable(log: LogEntry, reason: str) -> SessionEntry:
    return _with_note(log, f"(the log cannot be read: {reason})")


def _with_note(log: LogEntry, note: str) -> SessionEntry:
    """A session of which nothing is known but what is wrong with it."""
    return SessionEntry(
        id=log.id,
        created_at="",
        updated_at=utc_timestamp(log.changed),
        title=note,
        workspace="",
        model="",
        size=log.size,
    )


def _read_entry(log: LogEntry) -> SessionEntry | None:
    try:
        head, end, file, is_owned = _read_ends(log)
    except (FileNotFoundError, NotADirectoryError):  # deleted just now
        return None
    except OSError as error:
        return _unreadable(log, error.strerror or str(error))
    header = HEADER.match(head)
    if header is not None and header[3] == b"session_start":
        created = header[2].decode("utf-8", "replace")
        return _summarize(log, _own_data(head), head, created, file, end, is_owned)
    records = _foreign_records(head)
    if records or (head.startswith(b"{") and b"\n" not in head and len(head) == _HEAD_SIZE):
        # or its first line is longer than that
        created = _text(records[0], "timestamp") if records else ""
        data = [record["data"] for record in records]
        return _summarize(log, data, head, created, file, end, is_owned)
    if not head:
        return _with_note(log, "(the log is empty)")
    return _with_note(log, f"(damaged; bridle sessions verify {log.id})")


def _read_ends(log: LogEntry) -> tuple[bytes, bytes, tuple[int, int], bool]:
    """The first and the last bytes of a log, its device and inode, and whether it may be owned."""
    handle = os.open(f"{log.path}/{LOG_NAME}", READ)
    try:
        info = os.fstat(handle)
        head = os.read(handle, _HEAD_SIZE)
        if info.st_size <= len(head):
            end = head[-_END_SIZE:]
        else:
            end = os.pread(handle, _END_SIZE, info.st_size - _END_SIZE)
        return head, end, (info.st_dev, info.st_ino), locks.is_owned(handle)
    finally:
        os.close(handle)


def _own_data(head: bytes) -> list[dict[str, Any]]:
    """The data of the records that a list needs, from a log that bridle wrote."""
    records = []
    for line in head.split(b"\n")[:-1]:
        start = line.find(b'"data":', 20, 100)
        if not line.startswith(_LISTED, start):
            continue
        try:  # not `suppress`, which is slower: lists may be long
            data, _ = _decoder.raw_decode(line[start + 7 :].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue  # damaged
        records.append(data)
    return records


def _foreign_records(head: bytes) -> list[dict[str, Any]]:
    """The first records of a log that another program wrote, or whose beginning is damaged."""
    records = []
    for line in head.splitlines()[:_FOREIGN_LINES]:
        with suppress(ValueError, RecursionError):  # cut off, or damaged
            record = _decoder.decode(line.decode("utf-8", "replace"))
            if isinstance(record, dict) and isinstance(record.get("data"), dict):
                records.append(record)
    return records


def _summarize(
    log: LogEntry,
    records: list[dict[str, Any]],  # their data
    head: bytes,
    created: str,
    file: tuple[int, int],
    end: bytes,
    is_owned: bool,
) -> SessionEntry:
    workspace = model = title = prompt = parent = ""
    tags: tuple[str, ...] = ()
    for data in records:
        kind = data.get("type")
        if kind == "session_start":
            workspace = workspace or _text(data, "workspace")
            model = _text(data, "model") or model
        elif kind == "user_prompt":
            prompt = prompt or _text(data, "content")
        elif kind == "title":
            title = _text(data, "title")
        elif kind == "tags":
            tags = _texts(data.get("tags"))
        elif kind == "child_of":
            parent = _text(data, "parent")
        elif kind == "fork":  # a fork of a task is not a task
            parent = ""
    return SessionEntry(
        id=log.id,
        created_at=created,
        updated_at=utc_timestamp(log.changed),
        title=title or prompt[:_TITLE_LENGTH] or _cut_prompt(head),
        workspace=workspace,
        model=model,
        size=log.size,
        tags=tags,
        file=file,
        end=end,
        parent=parent,
        is_owned=is_owned,
    )


def _cut_prompt(head: bytes) -> str:
    """The beginning of a prompt that is longer than what was read of the log."""
    match = _CUT_PROMPT.search(head, head.rfind(b"\n") + 1)
    if match is None:
        return ""
    try:
        return str(_decoder.decode(f'"{match[1].decode("utf-8", "ignore")}"'))
    except ValueError:
        return ""


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


# Labels


def write_label(folder: "Path", title: str, tags: Sequence[str]) -> None:
    """Copy title and tags to the session's folder. Not synced: the log has them."""
    data = json.dumps({"title": title[:2000], "tags": [tag[:200] for tag in tags[:100]]})
    try:
        with open_folder(folder) as handle:
            write_file(handle, _LABEL, data.encode(), sync=False)
    except OSError as error:
        raise StoreFailed(
            f"the title of session {folder.name} is in its log, but lists will not show it: "
            f"{error.strerror or error}",
            error,
        ) from error


def read_label(folder: str) -> Label | None:
    """The label in a session's folder; None if there is none that can be read."""
    try:
        handle = os.open(f"{folder}/{_LABEL}", READ)
    except OSError:
        return None
    try:
        data = json.loads(os.read(handle, _MAX_LABEL))
    except (OSError, ValueError, RecursionError):  # also a folder, or a disk that fails
        return None
    finally:
        os.close(handle)
    if not isinstance(data, dict):
        return None
    return Label(_text(data, "title"), _texts(data.get("tags")))


# Sessions that run, or ran


def last_run(log: "Path") -> LastRun:
    """What the newest start in a log says, and which agent has answered since, if one has.

    A log that cannot be read gives empty values: resuming the session reports why.
    """
    try:
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
    except OSError:
        return LastRun()
    agent = ""
    try:
        size = os.fstat(handle).st_size
        for record in iter_lines_backward(partial(os.pread, handle), size, _RUN):
            if record.type == b"session_start":
                start = _data(record.line)
                return LastRun(
                    agent=agent,
                    model=_text(start, "model"),
                    workspace=_text(start, "workspace"),
                    interface=_text(start, "mode"),
                    effort=_text(start, "effort"),
                )
            if not agent and (name := _AGENT.search(record.line)) is not None:
                agent = str(json.loads(name[1]))
    except OSError:
        return LastRun()
    finally:
        os.close(handle)
    return LastRun(agent=agent)


def _data(line: bytes) -> dict[str, Any]:
    """The data of a record, or nothing if the line is damaged."""
    try:
        data = json.loads(line)["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return data if isinstance(data, dict) else {}


def active_sessions(
    folder: str | os.PathLike[str], workspace: str, except_id: str = ""
) -> list[ActiveSession]:
    """The active sessions of a workspace, the newest first, without `except_id`.

    A session is active if a process owns it. One that a server only keeps open between two turns
    does not count; one at a terminal does, because somebody may continue it at any time. Nor does a
    subagent count if the session that started it is active in the same process.
    """
    try:
        logs = [log for log in log_entries(folder) if log.id != except_id and not log.wrong]
    except OSError:
        return []
    if os.path.exists(locks.LOCK_TABLE):  # noqa: PTH110 - then no log is opened unless it is locked
        pids = {inode: pid for (_, inode), pid in locks.lock_owners().items()}
        owners = {
            log.id: locks.describe_process(pids[log.inode]) for log in logs if log.inode in pids
        }
    else:
        owners = {log.id: "another process" for log in logs if _is_locked(log)}
    active = (log for log in logs if log.id in owners and not _is_idle_in_server(log))
    workspaces = workspace, os.path.realpath(workspace)
    return [
        ActiveSession(session.id, owners[session.id])
        for session in read_entries(active)
        if session.workspace in workspaces and owners.get(session.parent) != owners[session.id]
    ]


def _is_locked(log: LogEntry) -> bool:
    try:
        handle = open_file(f"{log.path}/{LOG_NAME}")
    except OSError:
        return False
    try:
        return locks.is_locked(handle)
    finally:
        os.close(handle)


def _is_idle_in_server(log: LogEntry) -> bool:
    """Whether a server or the background has the session open and no turn is running."""
    from pathlib import Path

    path = Path(log.path, LOG_NAME)
    if not last_run(path).interface.startswith("server"):
        return False
    try:
        handle = open_file(path)
    except OSError:
        return False
    try:
        size = os.fstat(handle).st_size
        end = os.pread(handle, _TURN_SIZE, max(0, size - _TURN_SIZE))
        return not is_running(end, size)
    except OSError:
        return False
    finally:
        os.close(handle)
