"""The heads of the logs, for a list that is there at once.

Read without the codec: that alone would take longer than all the rest of `bridle sessions list`.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_HEAD = 8192  # bytes; the first prompt is in there, or it has no title
_LINES = 12
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PROMPT = re.compile(rb'"type":"user_prompt","content":"((?:[^"\\]|\\.){0,200})')


class Glance(NamedTuple):
    """What a list shows of a session: the fields of a `SessionSummary`."""

    id: str
    created_at: str
    updated_at: str
    title: str
    workspace: str
    model: str
    size: int


def glance(folder: str | os.PathLike[str]) -> list[Glance]:
    """All sessions of a state folder, the newest first."""
    try:
        with os.scandir(f"{os.fspath(folder)}/sessions") as entries:
            found = [_look(entry) for entry in entries if ID.fullmatch(entry.name)]
    except FileNotFoundError:
        return []
    return sorted(filter(None, found), key=lambda one: one.updated_at, reverse=True)


def _look(entry: "os.DirEntry[str]") -> Glance | None:
    try:
        handle = os.open(f"{entry.path}/log.jsonl", _READING)
    except OSError:
        return None
    try:
        head, info = os.read(handle, _HEAD), os.fstat(handle)
    except OSError:  # a folder, a disk that fails
        return None
    finally:
        os.close(handle)
    records = list(_records(head))
    if not records:
        return None
    found = _summary(entry.name, records, info)
    return found if found.title else found._replace(title=_beginning(head))


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    import json

    for line in head.splitlines()[:_LINES]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # cut off, or broken
            continue
        if isinstance(record, dict) and isinstance(record.get("data"), dict):
            yield record


def _beginning(head: bytes) -> str:
    """The first words of a prompt that is too long for the head of its log."""
    import json

    match = _PROMPT.search(head)
    words = match[1].decode("utf-8", "ignore") if match else ""
    try:
        return str(json.loads(f'"{words}"'))
    except ValueError:
        return ""


def _summary(name: str, records: list[dict[str, Any]], info: os.stat_result) -> Glance:
    from bridle.stores.clock import stamp

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
    created, updated = _text(records[0], "timestamp"), stamp(info.st_mtime)
    return Glance(name, created, updated, title or first[:200], workspace, model, info.st_size)


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""
