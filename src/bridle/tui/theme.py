"""The theme of the first frame: from a flag, the environment, one line of the settings, or a guess.

The settings are read completely later; only one line is looked for here, so that a light terminal
does not start dark. Imports next to nothing.
"""

import os
import re
from collections.abc import Mapping

from bridle.config.paths import config_file_str

CHOICES = ("auto", "dark", "light", "plain")
_LINE = re.compile(rb"^theme[ \t]*:[ \t]*[\"']?([a-z]+)", re.M)
_LARGEST = 100_000  # bytes


def initial_theme(flag: str | None, environ: Mapping[str, str]) -> str:
    """Return dark, light or plain, as it will be once all settings are read."""
    chosen = flag or environ.get("BRIDLE_THEME") or _saved(environ)
    if chosen not in CHOICES or chosen == "auto":
        return "light" if prefers_light(environ) else "dark"
    return chosen


def theme_name(choice: str, environ: Mapping[str, str]) -> str:
    """Return Textual's name of a chosen theme."""
    light = prefers_light(environ)
    if choice == "plain":
        return "ansi-light" if light else "ansi-dark"
    if choice == "auto":
        choice = "light" if light else "dark"
    return "bridle-light" if choice == "light" else "bridle-dark"


def prefers_light(environ: Mapping[str, str]) -> bool:
    """Does the terminal say that its background is light?"""
    return environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def _saved(environ: Mapping[str, str]) -> str:
    """Return the theme of the settings file; errors are reported when it is read completely."""
    try:
        handle = os.open(config_file_str(environ), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        found = _LINE.findall(os.read(handle, _LARGEST))
    except OSError:
        return ""
    finally:
        os.close(handle)
    return str(found[-1], "ascii") if found else ""
