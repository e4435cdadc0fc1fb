"""The heads of the logs, for a list that is there at once.

Read without the codec: that alone would take longer than all the rest of `bridle sessions list`.
Which sessions are the newest is known from the folder alone; only those that are shown are opened.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bridle.stores.clock import stamp
from bridle.stores.labels import read as read_label
from bridle.stores.naming import ID

_HEAD = 4096  # bytes; the first prompt is in there, or it has no title
_END = 2048
_LINES = 12
_WORDS = 200  # characters of a prompt that stand for a title
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_KINDS = {
    stat.S_IFLNK: "it is a symlink",
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a FIFO",
}
_ESCAPED = rb"(?:\\u[0-9a-fA-F]{4}|\\[^u])"
_TEXT = rb'[^"\\]*(?:%b[^"\\]*)*' % _ESCAPED
_WORDING = rb'[^"\\]{200}|[^"\\]*+(?=")|(?:[^"\\]|%b){0,200}' % _ESCAPED  # most have no escapes
_OURS = re.compile(
    rb'\{"seq":\d{1,18},"timestamp":"([^"\\]{0,40})","data":\{"type":"session_start"'
)
_START = (
    rb'"data":\{"type":"session_start","sessionId":"[^"\\]*","mode":"[^"\\]*","resumed":\w+,'
    rb'"format":\d+,"workspace":"(%b)","model":"(%b)"' % (_TEXT, _TEXT)
)

_DATA, _BEGINNING = b'"data":{"type":"', 96
_MARK = re.compile(rb'"data":\{"type":"(session_start|user_prompt|title|tags|child_of|fork)"')
_WANTED = {  # compiled when the first is met: that takes longer than to read a hundred heads
    b"session_start": _START,
    b"user_prompt": rb'"data":\{"type":"user_prompt","content":"(%b)' % _WORDING,
    b"title": rb'"data":\{"type":"title","title":"(%b)"' % _TEXT,
    b"tags": rb'"data":\{"type":"tags"(?:,"tags":(\[[^\]]*\]))?\}',
    b"child_of": rb'"data":\{"type":"child_of","parent":"(%b)"' % _TEXT,
    b"fork": rb'"data":\{"type":"fork"()',
}
_compiled: dict[bytes, re.Pattern[bytes]] = {}


class Glance(NamedTuple):
    """What a list shows of a session: the fields of a `SessionSummary`, and what tells its state.

    `file`: its device and inode. `end`: the last bytes of its log. `parent`: whose task it is.
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


class Place(NamedTuple):
    """A log, as its folder tells of it."""

    changed: float
    id: str
    path: str
    size: int
    inode: int
    wrong: str = ""  # why it cannot be read, as far as the folder tells


def is_running(end: bytes, size: int) -> bool:
    """Is a turn under way in a session that somebody holds? Told by the last bytes of its log."""
    begun, parked, over = (
        end.rfind(b'"data":{"type":"%s"' % kind)
        for kind in (b"user_prompt", b"turn_parked", b"turn_end")
    )
    if max(begun, parked, over) < 0:
        return size > len(end)  # a turn of which only the middle is there
    return over < max(begun, parked)


def glance(folder: str | os.PathLike[str], limit: int | None = None) -> list[Glance]:
    """The sessions of a state folder, the newest first: all, or so many."""
    found: list[Glance] = []
    for one in looked(places(folder)):
        if limit is not None and len(found) >= limit:
            break
        found.append(one)
    return found


def count(folder: str | os.PathLike[str]) -> int:
    """How many sessions there are. None is opened."""
    return len(places(folder))


def matching(folder: str | os.PathLike[str], start: str) -> list[Glance]:
    """The sessions that `start` may mean, the newest first.

    The one with that id; else those whose id begins so; else those whose id's last part does;
    else those whose title does, upper or lower case. Only for a title are all of them opened.
    """
    if not start:
        return []
    every = places(folder)
    by_id = (
        [one for one in every if one.id == start]
        or [one for one in every if one.id.startswith(start)]
        or [one for one in every if one.id.rpartition("-")[2].startswith(start)]
    )
    if by_id:
        return list(looked(by_id))
    words = " ".join(start.split()).casefold()
    return [one for one in looked(every) if _begins(one.title, words)]


def _begins(title: str, words: str) -> bool:
    return bool(words) and " ".join(title.split()).casefold().startswith(words)


def one(folder: str | os.PathLike[str], session_id: str) -> tuple[Place, Glance] | None:
    """The session with exactly that id, if there is one."""
    if not ID.fullmatch(session_id):
        return None
    path = f"{os.fspath(folder)}/sessions/{session_id}"
    place = _place(session_id, path, os.path.islink(path))  # noqa: PTH114 - many, and quickly
    found = next(looked([place]), None) if place is not None else None
    return None if place is None or found is None else (place, found)


def places(folder: str | os.PathLike[str]) -> list[Place]:
    """Every log there is, the newest first."""
    found = []
    try:
        with os.scandir(f"{os.fspath(folder)}/sessions") as entries:
            for entry in entries:
                if not ID.fullmatch(entry.name):
                    continue
                place = _place(entry.name, entry.path, entry.is_symlink())
                if place is not None:
                    found.append(place)
    except FileNotFoundError:
        return []
    return sorted(found, reverse=True)


def _place(name: str, path: str, linked: bool) -> Place | None:
    """A log, or what stands in its place: a session never vanishes because of it."""
    try:
        info = os.lstat(f"{path}/log.jsonl")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Place(0.0, name, path, 0, 0, error.strerror or str(error))
    if linked:
        wrong = "its folder is a symlink"
    elif stat.S_ISREG(info.st_mode):
        return Place(info.st_mtime, name, path, info.st_size, info.st_ino)
    else:
        wrong = _KINDS.get(stat.S_IFMT(info.st_mode), "it is not a file")
    return Place(info.st_mtime, name, path, 0, info.st_ino, wrong)


def looked(logs: Iterable[Place]) -> Iterator[Glance]:
    """What a list shows of each of them; one that is gone by now is left out."""
    for place in logs:
        found = _unread(place, place.wrong) if place.wrong else _look(place)
        if found is not None:
            label = read_label(place.path)
            yield found if label is None else _labelled(found, label.title, label.tags)


def _labelled(found: Glance, title: str, tags: tuple[str, ...]) -> Glance:
    noted = not found.created_at and found.title.startswith("(")  # what is wrong is said first
    return found._replace(title=found.title if noted else title or found.title, tags=tags)


def _unread(place: Place, why: str) -> Glance:
    return _noted(place, f"(the log cannot be read: {why})")


def _noted(place: Place, note: str) -> Glance:
    """A session of which nothing is known but that it is there, and what is wrong with it."""
    return Glance(place.id, "", stamp(place.changed), note, "", "", place.size)


def _look(place: Place) -> Glance | None:
    try:
        head, end, file = _read(place)
    except (FileNotFoundError, NotADirectoryError):  # it was deleted just now
        return None
    except OSError as error:
        return _unread(place, error.strerror or str(error))
    if (ours := _OURS.match(head)) is not None:
        return _own(place, ours, (file, end))
    records = list(_records(head))
    if records or (head.startswith(b"{") and b"\n" not in head and len(head) == _HEAD):
        # or its first line is longer than that
        return _summary(place, records, head)._replace(file=file, end=end)
    if not head:
        return _noted(place, "(the log is empty)")
    return _noted(place, f"(damaged; bridle sessions verify {place.id})")


def _read(place: Place) -> tuple[bytes, bytes, tuple[int, int]]:
    """The log's first bytes, its last ones, and which file it is."""
    handle = os.open(f"{place.path}/log.jsonl", _READING)
    try:
        info = os.fstat(handle)
        head = os.read(handle, _HEAD)
        if info.st_size <= len(head):
            end = head[-_END:]
        else:
            end = os.pread(handle, _END, info.st_size - _END)
        return head, end, (info.st_dev, info.st_ino)
    finally:
        os.close(handle)


def _own(place: Place, ours: re.Match[bytes], kept: tuple[tuple[int, int], bytes]) -> Glance:
    """A log that bridle wrote: what is wanted stands at known places, and nothing is parsed."""
    workspace = model = title = prompt = parent = ""
    tags: tuple[str, ...] = ()
    for mark in _MARK.finditer(ours.string):
        kind = mark[1]
        if (kind == b"user_prompt" and prompt) or (match := _marked(mark)) is None:
            continue
        if kind == b"session_start":
            workspace = workspace or _plain(match[1])
            model = _plain(match[2]) or model
        elif kind == b"title":
            title = _plain(match[1])
        elif kind == b"tags":
            tags = _listed(match[1])
        elif kind in (b"child_of", b"fork"):  # a fork of a task is nobody's task
            parent = _plain(match[1])
        else:
            prompt = _plain(match[1])
    when = ours[1].decode("utf-8", "replace"), stamp(place.changed)
    found = (place.id, *when, title or prompt, workspace, model, place.size, tags, *kept)
    return Glance(*found, parent=parent)


def _marked(mark: re.Match[bytes]) -> re.Match[bytes] | None:
    """What the line says; None where the mark is not at its beginning: somebody's words."""
    head, at = mark.string, mark.start()
    line = head.rfind(b"\n", 0, at) + 1
    if head.find(_DATA, line, line + _BEGINNING) != at:
        return None
    end = head.find(b"\n", at)
    return _wanted(mark[1]).match(head, at, end if end >= 0 else len(head))


def _wanted(kind: bytes) -> re.Pattern[bytes]:
    if (pattern := _compiled.get(kind)) is None:
        pattern = _compiled[kind] = re.compile(_WANTED[kind])
    return pattern


def _beginning(head: bytes) -> str:
    """The first words of the first prompt, which may be longer than the head of its log."""
    match = _wanted(b"user_prompt").search(head)
    return _plain(match[1]) if match is not None else ""


def _plain(escaped: bytes) -> str:
    """A JSON string's inside as text."""
    words = escaped.decode("utf-8", "ignore")
    if "\\" not in words:
        return words
    import json

    try:
        return str(json.loads(f'"{words}"', strict=False))
    except ValueError:
        return ""


def _listed(spelled: bytes) -> tuple[str, ...]:
    import json

    try:
        found = json.loads(spelled or b"[]")
    except ValueError:
        return ()
    return tuple(tag for tag in found if isinstance(tag, str))


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    import json

    for line in head.splitlines()[:_LINES]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # cut off, or broken
            continue
        if isinstance(record, dict) and isinstance(record.get("data"), dict):
            yield record


def _summary(place: Place, records: list[dict[str, Any]], head: bytes) -> Glance:
    """A log that somebody else wrote, or whose beginning is broken."""
    workspace = model = title = first = ""
    for data in (record["data"] for record in records):
        match data:
            case {"type": "session_start"}:
                workspace = workspace or _text(data, "workspace")
                model = _text(data, "model") or model
            case {"type": "user_prompt", "content": str(content)} if not first:
                first = content
            case {"type": "title", "title": str(title)}:
                pass
    title = title or first[:_WORDS] or _beginning(head)
    created = _text(records[0], "timestamp") if records else ""
    updated = stamp(place.changed)
    return Glance(place.id, created, updated, title, workspace, model, place.size)


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""
