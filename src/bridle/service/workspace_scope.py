"""Which folders the server works in, and so which sessions there are for it. Reads heads of logs.

A session of another folder is as unknown as one that never was, and so is a name that is no id.
"""

import os
from functools import lru_cache

from bridle.errors import UnknownSession
from bridle.protocols.session_errors import BadRequest, UnknownWorkspace
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import LogEntry, SessionEntry, get_session, read_entries


class WorkspaceScope:
    """The folders, and what the beginnings of logs say. `workspaces` None: any folder."""

    def __init__(self, folder: SessionFolder, workspaces: tuple[str, ...] | None) -> None:
        self.folder = folder
        self.workspaces = None if workspaces is None else tuple(map(_real, workspaces))
        self._heads: dict[str, tuple[int, SessionEntry]] = {}  # by id, with the file's inode

    def allows(self, workspace: str, within: str = "") -> bool:
        """Is this one of the folders, and the one that is meant, where one is?"""
        if self.workspaces is None and not within:
            return True
        found = _real(workspace) if workspace else ""
        here = self.workspaces is None or found in self.workspaces
        return bool(found) and here and within in ("", found)

    def workspace(self, path: str) -> str:
        """The folder that is meant; nothing is the first. Raise `UnknownWorkspace`."""
        if not path and self.workspaces:
            return self.workspaces[0]
        if not path:
            raise BadRequest(
                "no folder was named for the session to work in", hint="Say its workspacePath."
            )
        if "\0" in path or not os.path.isabs(path):  # noqa: PTH117 - it is not a path yet
            raise UnknownWorkspace(f"{path[:200]!r} is no folder that this server works in")
        found = _real(path)
        if not self.allows(found) or not os.path.isdir(found):  # noqa: PTH112 - see above
            raise UnknownWorkspace(f"{path[:200]!r} is no folder that this server works in")
        return found

    def head(self, place: LogEntry) -> SessionEntry | None:
        """What the beginning of a log says, read once; None where it is gone by now.

        Its title, tags and times may have changed since.
        """
        known = self._heads.get(place.id)
        if known is not None and known[0] == place.inode:
            return known[1]
        found = next(read_entries([place]), None)
        if found is not None and found.workspace:
            self._heads[place.id] = place.inode, found._replace(end=b"")
        return found

    def forget(self, there: set[str]) -> None:
        """Only these sessions are there."""
        for gone in self._heads.keys() - there:
            del self._heads[gone]

    def known(self, session_id: str) -> tuple[LogEntry, SessionEntry]:
        """That session as it is now. Raise `UnknownSession`, for a foreign one too."""
        found = get_session(self.folder.folder, session_id)
        if found is None or not self.allows(found[1].workspace):
            raise UnknownSession(f"there is no session {session_id[:60]!r}")
        return found


@lru_cache(maxsize=1024)
def _real(path: str) -> str:
    return os.path.realpath(path)
