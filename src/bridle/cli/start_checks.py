"""What the screen asks before a session begins: the folder's own files, and the model.

Finds out and does; asks nothing itself. Both questions are for a new session: one that is taken up
again has its folder and its model, and what does not count there is told as ever.
"""

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from bridle.cli.options import CHOOSE, to_settings
from bridle.config.loader import load_settings
from bridle.config.paths import state_folder
from bridle.config.settings import KEY_VARIABLES
from bridle.config.trust import COMMANDS, FILES, SKILLS, Trust
from bridle.tui.model.onboarding import EarlierSessions, Lacking, Untrusted
from bridle.workspace.fs import replace_file

_COUNTING = (*FILES, *SKILLS, COMMANDS)  # where none of these lies, nothing has to be read
_MOST = 200  # folders that were said no to
_LARGEST = 1_000_000


class ChatPreface:
    """For one start with these flags, of which it may change the model."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._state = state_folder(os.environ)
        self._declined = self._state / "declined.json"
        self._earlier = bool(flags.get("resume") is not None or flags.get("go_on"))

    def theme(self) -> str:
        """The colours of the settings, unless a flag says which."""
        return "auto" if self._flags.get("theme") else load_settings().settings.theme

    def untrusted(self) -> Untrusted | None:
        """The files that would count and do not; None where there are none, or they were seen."""
        root = Path(self._flags.get("workspace") or Path.cwd())
        if self._earlier or not any(os.path.lexists(root / name) for name in _COUNTING):
            return None
        files = Trust(self._state).files(root)
        if all(one.trusted or one.problem for one in files):
            return None
        found = Untrusted(root, files)
        return None if self._kept().get(_name(found)) == _print(found) else found

    def trust(self, shown: Untrusted) -> None:
        """Exactly these bytes. Raise `ConfigError` where they would keep bridle from starting."""
        from bridle.cli.commands.trust import check_files

        check_files(shown.files, shown.root)
        Trust(self._state).grant(shown.root, shown.files)

    def decline(self, shown: Untrusted) -> None:
        """These bytes are not asked about again."""
        kept = {**self._kept(), _name(shown): _print(shown)}
        newest = dict(list(kept.items())[-_MOST:])
        with suppress(OSError):  # then it is asked again
            replace_file(self._declined, json.dumps(newest).encode())

    def earlier(self) -> EarlierSessions | None:
        """The sessions to choose from, if `--resume` names none."""
        if self._flags.get("resume") != CHOOSE:
            return None
        from bridle.cli.local_backend import EarlierSessions as Earlier

        return Earlier(self._flags)

    def resume(self, session_id: str) -> None:
        """Open that session."""
        self._flags["resume"] = session_id

    def lacking(self) -> Lacking | None:
        """What was looked for, where no key was found."""
        from bridle.runtime.providers import find_provider, local_servers

        settings = load_settings(to_settings(self._flags)).settings
        if self._earlier or settings.name or settings.agent not in ("", "loop"):
            return None
        servers: list[tuple[str, str, str]] = []

        def probe() -> list[tuple[str, str, str]]:
            servers.extend(local_servers())
            return servers

        choice = find_provider(settings, probe=probe)
        if any(step.used and step.place.startswith("key") for step in choice.considered):
            return None
        looked = tuple(dict.fromkeys(KEY_VARIABLES.values()))
        return Lacking(looked, tuple(f"{name}/{model}" for name, _, model in servers))

    def use(self, model: str) -> None:
        """For this time."""
        self._flags["model"] = model

    def _kept(self) -> dict[str, str]:
        try:
            with self._declined.open("rb") as file:
                found = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        sound = isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
        return found if sound else {}


def _name(found: Untrusted) -> str:
    return os.path.realpath(found.root)


def _print(found: Untrusted) -> str:
    """What was shown, as one number."""
    whole = sha256()
    for one in found.files:
        whole.update(os.fsencode(one.name) + f"\0{len(one.data)}\0".encode() + one.data)
    return whole.hexdigest()
