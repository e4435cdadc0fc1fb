"""The colours that a person can choose, and how a choice is kept. Knows no widget.

It is written into the person's own settings file, and only when they ask for it: every other line
stays as it is, and what comes out is read back before it is kept.
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

MEANINGS = {
    "auto": "light where the terminal says that it is, else dark",
    "dark": "a dark window",
    "light": "a light window",
    "plain": "the terminal's own colours",
}


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


def config_place() -> Path:
    """Where the person's settings lie."""
    return config_file(os.environ)


def save_choice(key: str, choice: str) -> None:
    """Write a setting into the settings file. Raise `ConfigError`; then nothing changed."""
    path = config_place()
    text = read_text(path, "settings") or ""
    said = f"{key}: {json.dumps(choice) if not _PLAIN.fullmatch(choice) else choice}"
    line = re.compile(rf"^{key}[ \t]*:[^\n]*$", re.M)
    if line.search(text):
        after = line.sub(lambda _: said, text, count=1)
    else:
        after = f"{text.rstrip()}\n{said}\n".lstrip("\n")
    if _told(after) != {**_told(text), key: choice}:
        raise ConfigError(
            f"{path}: there is no place for `{key}` in it",
            hint=f"Write it there yourself: {said}",
        )
    try:
        replace_file(path, after.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: it cannot be written: {error.strerror}",
            hint="Check that you may write there. It holds for this time.",
        ) from error


def _told(text: str) -> dict[str, object]:
    """What a text would set, read as the file is; None of it where it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="bridle-theme-") as folder:
        path = Path(folder, "config.yaml")
        path.write_text(text)
        try:
            return {key: value for key, value, _ in read_settings_file(path, required=True)}
        except ConfigError:
            return {}
