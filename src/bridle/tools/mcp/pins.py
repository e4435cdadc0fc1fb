"""What was known of a server's tools when the person last saw them: one private file a server.

It lies in the state folder. A file that cannot be read is as good as none: the server is then one
that was never seen. What cannot be written is told once, and costs the memory of it alone.
"""

import logging
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.tools.mcp.definition import Definition
from bridle.workspace.fs import replace_file

log = logging.getLogger(__name__)
_LARGEST = 64 * 1024 * 1024


class Pinned(Struct, frozen=True, omit_defaults=True):
    """The tools of a server as they were accepted, those that were looked for, and its protocol.

    `identity` is that of the server's settings: for others this says nothing. `files` are, for
    each workspace, those that its command names there, and what they hold. `seen`: its tools are
    known, too.
    """

    server: str
    identity: str
    tools: tuple[Definition, ...] = ()
    wanted: tuple[str, ...] = ()
    mode: str = "auto"
    files: dict[str, dict[str, str]] = {}
    seen: bool = True
    format: int = 1


class Pins:
    """The file of one server; without a folder nothing is kept."""

    def __init__(self, folder: str, server: str, identity: str) -> None:
        mark = sha256(identity.encode()).hexdigest()[:16]
        self._path = Path(folder, f"{server}-{mark}.json") if folder else None
        self._server, self._identity = server, identity

    def read(self) -> Pinned | None:
        """What is known; None: this server was never seen."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                found = msgspec.json.decode(file.read(_LARGEST), type=Pinned)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None
        if found.format != 1 or (found.server, found.identity) != (self._server, self._identity):
            return None
        return found

    def keep(self, found: Pinned) -> None:
        """Write it, in one step, for nobody else to read."""
        if self._path is None:
            return
        try:
            replace_file(self._path, msgspec.json.encode(found))
        except OSError as error:
            log.warning("what is known of MCP server %s cannot be kept: %s", self._server, error)

    def forget(self) -> None:
        """The server is not there any more."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
