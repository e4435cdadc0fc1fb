"""Files and folders of the workspace: their status, and the entries of a folder.

Everything is opened by the workspace itself, folder by folder without following links, so that
whatever is read or listed here lies inside of it, even if somebody swaps a folder for a link
meanwhile.
"""

import difflib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from heapq import nlargest, nsmallest
from itertools import islice
from time import thread_time
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolContext
from bridle.tools.encoding import split_lines
from bridle.workspace.text import one_line
from bridle.workspace.workspace import NotAFolder, Workspace

MAX_ENTRIES = 100_000  # of one folder; further ones are not looked at


class Entry(NamedTuple):
    """An entry of a folder. `kind` is file, folder, link or other; `size` is -1 if unknown."""

    name: str
    kind: str
    size: int = -1


def workspace_of(files: Files) -> Workspace:
    """Return `files` as a `Workspace`, which has more methods."""
    return files if isinstance(files, Workspace) else Workspace(files.root)


def file_status(files: Files, path: str) -> os.stat_result | None:
    """Return the status of a file or folder, None if there is none."""
    try:
        with workspace_of(files).open_path(path) as location:
            return location.status
    except NotAFolder:
        return None


def iter_entries(files: Files, path: str) -> Iterator[Entry]:
    """Yield the entries of a folder in the system's order, one at a time: there may be millions."""
    with _folder_handle(files, path) as handle:
        yield from _entries(handle)


def first_entries(
    files: Files, path: str, count: int, keep: Callable[[Entry], bool] = lambda entry: True
) -> tuple[list[Entry], int]:
    """Return the first entries of a folder by name, with sizes, and how many there are in all.

    No more than `MAX_ENTRIES` are looked at. A larger total means that there are even more.
    """
    total = 0

    def count_entries(handle: int) -> Iterator[Entry]:
        nonlocal total
        for entry in islice(_entries(handle), MAX_ENTRIES + 1):
            if keep(entry):
                total += 1
                yield entry

    with _folder_handle(files, path) as handle:
        entries = nsmallest(count, count_entries(handle))
        return [entry._replace(size=_size(handle, entry)) for entry in entries], total


@contextmanager
def _folder_handle(files: Files, path: str) -> Iterator[int]:
    with workspace_of(files).open_path(path) as location:
        handle = location.open_folder()
        try:
            yield handle
        finally:
            os.close(handle)


def _entries(handle: int) -> Iterator[Entry]:
    with os.scandir(handle) as entries:
        for entry in entries:
            if entry.is_symlink():
                kind = "link"
            elif entry.is_dir(follow_symlinks=False):
                kind = "folder"
            else:
                kind = "file" if entry.is_file(follow_symlinks=False) else "other"
            yield Entry(entry.name, kind)


def _size(handle: int, entry: Entry) -> int:
    if entry.kind != "file":
        return -1
    try:
        return os.stat(entry.name, dir_fd=handle, follow_symlinks=False).st_size
    except OSError:  # it is gone
        return -1


# What the model may have meant: files with a similar name, and similar lines of a file.

_MAX_NAMES = 2000  # compared
_MAX_LINE = 160  # characters of a line that are compared and shown
_SIMILAR = 0.6  # ratio
_SECONDS = 0.5  # of this thread's CPU time, to compare lines


def missing_file_error(files: Files, path: str) -> ToolError:
    """Return the error for a file that does not exist. It suggests files with a similar name."""
    folder, _, name = files.relative(path).rpartition("/")
    try:
        entries = islice(iter_entries(files, folder or "."), _MAX_NAMES)
        names = sorted(entry.name for entry in entries)
    except ToolError:
        return ToolError(f"`{one_line(path, 200)}` does not exist, nor does its folder.")
    prefix = f"{folder}/" if folder else ""
    matches = difflib.get_close_matches(name, names, 3)
    similar = ", ".join(f"`{prefix}{one_line(match)}`" for match in matches)
    hint = f"Did you mean {similar}?" if similar else "Use glob to find it."
    return ToolError(f"`{one_line(path, 200)}` does not exist. {hint}")


def similar_lines(text: str, old: str) -> str:
    """Return lines that resemble the first line of `old`, with their numbers."""
    lines = [line[:_MAX_LINE].rstrip() for line in split_lines(text)]
    stripped = (line.strip()[:_MAX_LINE] for line in old.splitlines())
    first = next(filter(None, stripped), "")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip() == first and first]
    if not numbers:
        similar = _most_similar(first, dict.fromkeys(line.strip() for line in lines))
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() in similar]
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in numbers[:5])


def _most_similar(text: str, lines: Iterable[str]) -> set[str]:
    """Return the three most similar lines, among those that there is time to compare."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(text)
    until = thread_time() + _SECONDS
    similar: list[tuple[float, str]] = []
    for line in lines:
        if thread_time() > until:
            break
        matcher.set_seq1(line)
        # The quick ones first: they are never below the exact one.
        ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
        if all((ratio := compute()) >= _SIMILAR for compute in ratios):
            similar.append((ratio, line))
    return {line for _, line in nlargest(3, similar)}


# Which state of each file the model knows, so that it changes no file it has not read.
#
# A file may be changed if the model has read it, or written it with one of our tools, in this
# session, and it is still the same. Its content is compared, or for very large files what the
# system says about them. This is remembered while the session is open; after a resume, files have
# to be read again.

MAX_COMPARED = 20 * 1024 * 1024  # bytes; of a larger file only the status is compared
_KEY = "file states"
_MAX_FILES = 20_000  # remembered; the oldest are dropped first


def content_state(data: bytes) -> str:
    """Return what identifies a file with this content."""
    return blake2b(data, digest_size=16).hexdigest()


def status_state(status: os.stat_result) -> str:
    """Return what identifies the state of a file that is too large to be compared."""
    return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}"


def file_state(files: Files, path: str, data: bytes) -> str:
    """Return what identifies the present state of a file, which has this content."""
    if len(data) <= MAX_COMPARED:
        return content_state(data)
    status = file_status(files, path)
    return "" if status is None else status_state(status)


def remember_file(context: ToolContext[Any], path: str, state: str) -> None:
    """Note that the model knows this state of the file."""
    states: dict[str, str] = context.memory.setdefault(_KEY, {})
    name = workspace_of(context.workspace).resolve(path)
    states.pop(name, None)
    states[name] = state
    while len(states) > _MAX_FILES:
        del states[next(iter(states))]


def forget_file(context: ToolContext[Any], path: str) -> None:
    """Note that the model does not know the file any more."""
    states: dict[str, str] = context.memory.get(_KEY, {})
    states.pop(workspace_of(context.workspace).resolve(path), None)


def require_known_file(
    context: ToolContext[Any], path: str, state: str, *, fits: bool = False
) -> None:
    """Raise `ToolError` unless the model knows this state of the file.

    `fits`: the change quotes the text that it replaces, and the file has that text. If a person
    approved such a change before the session was resumed, that is enough.
    """
    workspace = workspace_of(context.workspace)
    states: dict[str, str] = context.memory.get(_KEY, {})
    known = states.get(workspace.resolve(path))
    if known == state or (known is None and fits and context.was_approved):
        return
    name = one_line(workspace.relative(path), 200)
    if known is None:
        raise ToolError(
            f"`{name}` exists and has not been read in this session. Nothing was changed; "
            "read it first."
        )
    raise ToolError(
        f"`{name}` has changed on disk since you read it. Nothing was changed; read it again."
    )
