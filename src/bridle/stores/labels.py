"""A session's label: its title and tags in a file of their own, beside the log, for lists.

A copy: the log is the truth, and a label that is gone or broken is no loss. Read without the
codec, as lists are.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bridle.errors import StoreFailed
from bridle.stores.placing import entered, place

if TYPE_CHECKING:
    from pathlib import Path  # for lists: it takes longer to load than a list

_NAME = "label.json"
_LARGEST = 65536  # bytes
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Label(NamedTuple):
    """What a list shows of a session, beside what never changes."""

    title: str = ""
    tags: tuple[str, ...] = ()


def write(folder: "Path", title: str, tags: Sequence[str]) -> None:
    """Keep title and tags in the session's folder. Not synced: the log has them."""
    import json

    data = json.dumps({"title": title[:2000], "tags": [tag[:200] for tag in tags[:100]]})
    try:
        with entered(folder) as inside:
            place(inside, _NAME, data.encode(), sync=False)
    except OSError as error:
        raise StoreFailed(
            f"the title of session {folder.name} is in its log, but lists will not show it: "
            f"{error.strerror or error}",
            error,
        ) from error


def read(folder: str) -> Label | None:
    """The label in a session's folder; None where there is none that can be read."""
    try:
        handle = os.open(f"{folder}/{_NAME}", _READING)
    except OSError:
        return None
    try:
        data = os.read(handle, _LARGEST)
    except OSError:  # a folder, a disk that fails
        return None
    finally:
        os.close(handle)
    return _parsed(data)


def _parsed(data: bytes) -> Label | None:
    import json

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    title, tags = found.get("title"), found.get("tags")
    named = tags if isinstance(tags, list) else []
    return Label(
        title if isinstance(title, str) else "",
        tuple(tag for tag in named if isinstance(tag, str)),
    )
