"""Write a value, such as a theme or a model, into the user's settings file.

All other lines stay as they are, and the result is read back before it is written.
"""

import json
import os
import re
import tempfile
from pathlib import Path

from bridle.config.loader import read_settings_file
from bridle.config.paths import config_file
from bridle.config.yaml_file import read_text
from bridle.errors import ConfigError
from bridle.workspace.fs import replace_file

THEMES = {
    "auto": "light if the terminal says that it is light, otherwise dark",
    "dark": "for a dark window",
    "light": "for a light window",
    "plain": "the terminal's own colors",
}


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


def settings_path() -> Path:
    """Return the path of the user's settings file."""
    return config_file(os.environ)


def save_setting(key: str, value: str) -> None:
    """Write a setting into the settings file. If `ConfigError` is raised, nothing changed."""
    path = settings_path()
    text = read_text(path, "settings") or ""
    said = f"{key}: {json.dumps(value) if not _PLAIN.fullmatch(value) else value}"
    line = re.compile(rf"^{key}[ \t]*:[^\n]*$", re.M)
    if line.search(text):
        after = line.sub(lambda _: said, text, count=1)
    else:
        after = f"{text.rstrip()}\n{said}\n".lstrip("\n")
    if _parsed(after) != {**_parsed(text), key: value}:
        raise ConfigError(
            f"{path}: `{key}` cannot be added to it",
            hint=f"Add this line yourself: {said}",
        )
    try:
        replace_file(path, after.encode())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}",
            hint="Check its permissions. The value holds until you quit.",
        ) from error


def _parsed(text: str) -> dict[str, object]:
    """Return the settings in a text; none if it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="bridle-theme-") as folder:
        path = Path(folder, "config.yaml")
        path.write_text(text)
        try:
            return {key: value for key, value, _ in read_settings_file(path, required=True)}
        except ConfigError:
            return {}
