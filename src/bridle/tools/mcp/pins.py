"""The tools of a server as the person accepted them: one private file per server.

The files are in the state folder. One that cannot be read counts as missing: then the server has
never been seen. If a file cannot be written, that is logged, and costs only what it would remember.
"""

import logging
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.tools.mcp.tool import ToolDefinition
from bridle.workspace.fs import replace_file

log = logging.getLogger(__name__)
_MAX_BYTES = 64 * 1024 * 1024


class PinnedServer(Struct, frozen=True, omit_defaults=True, rename={"requested_tools": "wanted"}):
    """What is remembered of a server.

    `identity` is that of its settings; if they change, this does not apply any more. `tools` are
    the accepted definitions, and valid if `seen` is true. `requested_tools` are those that the
    model has looked for, `mode` is the SDK's connection mode. `files` are for each workspace the
    files there that its command names, with their content's hash.
    """

    server: str
    identity: str
    tools: tuple[ToolDefinition, ...] = ()
    requested_tools: tuple[str, ...] = ()
    mode: str = "auto"
    files: dict[str, dict[str, str]] = {}
    seen: bool = True
    format: int = 1


class Pins:
    """The file of one server. Without a folder nothing is remembered."""

    def __init__(self, folder: str, server: str, identity: str) -> None:
        digest = sha256(identity.encode()).hexdigest()[:16]
        self._path = Path(folder, f"{server}-{digest}.json") if folder else None
        self._server, self._identity = server, identity

    def read(self) -> PinnedServer | None:
        """Return what is remembered, None if the server has never been seen."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                pinned = msgspec.json.decode(file.read(_MAX_BYTES), type=PinnedServer)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None
        is_same = (pinned.server, pinned.identity) == (self._server, self._identity)
        return pinned if is_same and pinned.format == 1 else None

    def write(self, pinned: PinnedServer) -> None:
        """Replace the file in one step. No one else may read it."""
        if self._path is None:
            return
        try:
            replace_file(self._path, msgspec.json.encode(pinned))
        except OSError as error:
            log.warning("what is known of MCP server %s cannot be saved: %s", self._server, error)

    def remove(self) -> None:
        """Remove the file: the server has been removed from the settings."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
