"""What the full screen asks before a session starts: trust in the folder's files, and the model.

Collects the facts and applies the answers; the screen asks. Only a new session needs this, because
a resumed one has its folder and its model already.
"""

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from bridle.cli.options import CHOOSE, to_settings
from bridle.config.folder import check_files
from bridle.config.loader import load_settings
from bridle.config.paths import state_folder
from bridle.config.settings import KEY_VARIABLES
from bridle.config.trust import COMMANDS, FILES, SKILLS, Trust
from bridle.runtime import providers
from bridle.tui.model.onboarding import EarlierSessions, ModelSearch, UntrustedFolder
from bridle.workspace.fs import replace_file

_FILES = (*FILES, *SKILLS, COMMANDS)  # if there are none of these, nothing has to be read
_MAX_DECLINED = 200  # folders
_MAX_BYTES = 1_000_000


class StartChecks:
    """The checks of one start with these flags. The person may choose another model."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._state = state_folder(os.environ)
        self._declined = self._state / "declined.json"
        self._earlier = bool(flags.get("resume") is not None or flags.get("go_on"))

    def theme(self) -> str:
        """Return the theme of the settings; "auto" if a flag names one."""
        return "auto" if self._flags.get("theme") else load_settings().settings.theme

    def untrusted_folder(self) -> UntrustedFolder | None:
        """Return the files that are not trusted; None if there are none, or they were declined."""
        root = Path(self._flags.get("workspace") or Path.cwd())
        if self._earlier or not any(os.path.lexists(root / name) for name in _FILES):
            return None
        files = Trust(self._state).files(root)
        if all(one.trusted or one.problem for one in files):
            return None
        found = UntrustedFolder(root, files)
        return None if self._read_declined().get(_key(found)) == _digest(found) else found

    def trust(self, shown: UntrustedFolder) -> None:
        """Trust exactly these files. Raise `ConfigError` if bridle could not start with them."""
        check_files(shown.files, shown.root)
        Trust(self._state).grant(shown.root, shown.files)

    def decline(self, shown: UntrustedFolder) -> None:
        """Do not ask about exactly these files again."""
        kept = {**self._read_declined(), _key(shown): _digest(shown)}
        newest = dict(list(kept.items())[-_MAX_DECLINED:])
        with suppress(OSError):  # then the screen asks again
            replace_file(self._declined, json.dumps(newest).encode())

    def earlier_sessions(self) -> EarlierSessions | None:
        """Return the sessions to choose from, if `--resume` names none."""
        if self._flags.get("resume") != CHOOSE:
            return None
        from bridle.cli.local_backend import EarlierSessions as Earlier

        return Earlier(self._flags)

    def resume(self, session_id: str) -> None:
        """Resume that session."""
        self._flags["resume"] = session_id

    def missing_model(self) -> ModelSearch | None:
        """Return what is missing if no API key was found."""
        settings = load_settings(to_settings(self._flags)).settings
        if self._earlier or settings.name or settings.agent not in ("", "loop"):
            return None
        servers: list[tuple[str, str, str]] = []

        def probe() -> list[tuple[str, str, str]]:
            servers.extend(providers.local_servers())
            return servers

        choice = providers.find_provider(settings, probe=probe)
        if any(step.used and step.place.startswith("key") for step in choice.considered):
            return None
        looked = tuple(dict.fromkeys(KEY_VARIABLES.values()))
        return ModelSearch(looked, tuple(f"{name}/{model}" for name, _, model in servers))

    def use(self, model: str) -> None:
        """Use this model, this time."""
        self._flags["model"] = model

    def _read_declined(self) -> dict[str, str]:
        try:
            with self._declined.open("rb") as file:
                found = json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        sound = isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
        return found if sound else {}


def _key(found: UntrustedFolder) -> str:
    return os.path.realpath(found.root)


def _digest(found: UntrustedFolder) -> str:
    """Return a digest of what was shown."""
    whole = sha256()
    for one in found.files:
        whole.update(os.fsencode(one.name) + f"\0{len(one.data)}\0".encode() + one.data)
    return whole.hexdigest()
