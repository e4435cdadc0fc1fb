"""Which sessions are open in a server, as empty files in the state folder, as a kill leaves them.

A mark says where to look, and nothing more: what became of a session is in its log.
"""

import logging
import os
from contextlib import suppress

from bridle.stores.log_format import SESSION_ID
from bridle.stores.reader import SessionFolder

log = logging.getLogger(__name__)

_MAKING = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Marks:
    """The marks in one state folder. They are a help: where they cannot be made, it goes on."""

    def __init__(self, folder: SessionFolder) -> None:
        self._path = folder.folder / "serving"
        self._told = False

    def put(self, session_id: str) -> None:
        """That session is open."""
        try:
            os.close(os.open(self._path / session_id, _MAKING, 0o600))
        except FileNotFoundError:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._again(session_id)
        except OSError as error:
            self._warn(error)

    def remove(self, session_id: str) -> None:
        """It is no longer."""
        with suppress(OSError):
            (self._path / session_id).unlink()

    def left(self) -> list[str]:
        """Those that are there."""
        try:
            return sorted(name for name in os.listdir(self._path) if SESSION_ID.fullmatch(name))  # noqa: PTH208 - names are wanted
        except OSError:
            return []

    def _again(self, session_id: str) -> None:
        try:
            os.close(os.open(self._path / session_id, _MAKING, 0o600))
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._told:
            log.warning("it cannot be noted which sessions are open: %s", error.strerror or error)
        self._told = True
