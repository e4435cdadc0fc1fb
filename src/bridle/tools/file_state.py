"""Which state of each file the model knows, so that it changes no file it has not read.

A file may be changed if the model has read it, or written it with one of our tools, in this
session, and it is still the same. Its content is compared, or for very large files what the system
says about them. This is remembered while the session is open; after a resume, files have to be read
again.
"""

import os
from hashlib import blake2b

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolContext
from bridle.tools.workspace_files import file_status, workspace_of
from bridle.workspace.text import one_line

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


class KnownFiles:
    """The files that the model has read or written in this session, each with its state then."""

    def __init__(self, context: ToolContext[object]) -> None:
        self._workspace = workspace_of(context.workspace)
        self._states: dict[str, str] = context.memory.setdefault(_KEY, {})
        self._agreed = context.agreed

    def remember(self, path: str, state: str) -> None:
        """Note that the model knows this state of the file."""
        name = self._workspace.resolve(path)
        self._states.pop(name, None)
        self._states[name] = state
        while len(self._states) > _MAX_FILES:
            del self._states[next(iter(self._states))]

    def forget(self, path: str) -> None:
        """Note that the model does not know the file any more."""
        self._states.pop(self._workspace.resolve(path), None)

    def require(self, path: str, state: str, *, fits: bool = False) -> None:
        """Raise `ToolError` unless the model knows this state of the file.

        `fits`: the change quotes the text that it replaces, and the file has that text. If a person
        approved such a change before the session was resumed, that is enough.
        """
        known = self._states.get(self._workspace.resolve(path))
        if known == state or (known is None and fits and self._agreed):
            return
        name = one_line(self._workspace.relative(path), 200)
        if known is None:
            raise ToolError(
                f"`{name}` exists and has not been read in this session. Nothing was changed; "
                "read it first."
            )
        raise ToolError(
            f"`{name}` has changed on disk since you read it. Nothing was changed; read it again."
        )
