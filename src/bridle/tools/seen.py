"""What the model has seen of each file, so that nothing is changed that it does not know.

A file may be changed when it was read, or written by one of our own tools, in this session, and is
still what it was then. Its content is compared; of a file that is too large for that, what the
system says of it. The memory is the session's and ends with it: after that a file is read again.
"""

import os
from hashlib import blake2b

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolContext
from bridle.tools.opening import on_disk, status
from bridle.workspace.text import one_line

WHOLE = 20 * 1024 * 1024  # bytes; a larger file is known by what the system says of it
_KEY = "files that were read"
_MOST = 20_000  # files remembered; the oldest go first


def mark_of(data: bytes) -> str:
    """A short name for this content."""
    return blake2b(data, digest_size=16).hexdigest()


def mark_on_disk(files: Files, path: str, data: bytes) -> str:
    """A short name for the file that holds this."""
    if len(data) <= WHOLE:
        return mark_of(data)
    found = status(files, path)
    return "" if found is None else mark_of_large(found)


def mark_of_large(found: os.stat_result) -> str:
    """A short name for the state of a file that nobody reads as a whole."""
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"


class Seen:
    """The files that were seen in one session."""

    def __init__(self, context: ToolContext[object]) -> None:
        self._files: Files = context.workspace
        self._marks: dict[str, str] = context.memory.setdefault(_KEY, {})
        self._agreed = context.agreed

    def remember(self, path: str, mark: str) -> None:
        """The model knows this state of the file."""
        name = on_disk(self._files).resolve(path)
        self._marks.pop(name, None)
        self._marks[name] = mark
        while len(self._marks) > _MOST:
            del self._marks[next(iter(self._marks))]

    def forget(self, path: str) -> None:
        """What was known of the file holds no longer."""
        self._marks.pop(on_disk(self._files).resolve(path), None)

    def require(self, path: str, mark: str, *, fits: bool = False) -> None:
        """Raise `ToolError` unless this is the state of the file that the model knows.

        A change that `fits` names what it takes the place of. Where a person has agreed to one and
        the memory ended meanwhile, that is enough.
        """
        known = self._marks.get(on_disk(self._files).resolve(path))
        where = one_line(self._files.relative(path), 200)
        if known is None and fits and self._agreed:
            return
        if known is None:
            raise ToolError(
                f"`{where}` exists and has not been read in this session. Nothing was changed; "
                "read it first."
            )
        if known != mark:
            raise ToolError(
                f"`{where}` has changed on disk since you read it. Nothing was changed; "
                "read it again."
            )
