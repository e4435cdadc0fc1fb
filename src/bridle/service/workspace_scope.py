"""The workspaces that a service is limited to, and so the sessions that exist for its callers.

A session of another folder is as unknown as one that never existed, or an id that is none.
"""

import os
from functools import lru_cache

from bridle.errors import UnknownSession
from bridle.protocols.session_catalog import SessionCatalog, SessionHead
from bridle.protocols.session_errors import BadRequest, UnknownWorkspace


class WorkspaceScope:
    """The allowed workspaces. `workspaces` None allows any folder."""

    def __init__(self, catalog: SessionCatalog, workspaces: tuple[str, ...] | None) -> None:
        self.catalog = catalog
        self.workspaces = None if workspaces is None else tuple(map(_real_path, workspaces))

    def allows(self, workspace: str) -> bool:
        """Whether this is one of the folders."""
        if self.workspaces is None:
            return True
        return bool(workspace) and _real_path(workspace) in self.workspaces

    def workspace(self, path: str) -> str:
        """Return the resolved folder; an empty path is the first one. Raise `UnknownWorkspace`."""
        if not path and self.workspaces:
            return self.workspaces[0]
        if not path:
            raise BadRequest("the session needs a folder to work in", hint="Set workspacePath.")
        if "\0" not in path and os.path.isabs(path):  # noqa: PTH117 - it is not a path yet
            real = _real_path(path)
            if self.allows(real) and os.path.isdir(real):  # noqa: PTH112 - see above
                return real
        raise UnknownWorkspace(f"{path[:200]!r} is not a folder that this server works in")

    def session(self, session_id: str) -> SessionHead:
        """Return what is known of a session. Raise `UnknownSession`, also if it is not allowed."""
        head = self.catalog.head(session_id)
        if head is None or not self.allows(head.workspace):
            raise UnknownSession(f"there is no session {session_id[:60]!r}")
        return head


@lru_cache(maxsize=1024)
def _real_path(path: str) -> str:
    return os.path.realpath(path)
