"""Which colours the first picture has: a flag, the environment, a line of the settings, or a guess.

The settings are read whole later; here one line is looked for, so that a light window does not
begin dark. Knows no widget, and imports next to nothing.
"""

import os
import re
from collections.abc import Mapping

from bridle.config.paths import config_file_str

CHOICES = ("auto", "dark", "light", "plain")
_LINE = re.compile(rb"^theme[ \t]*:[ \t]*[\"']?([a-z]+)", re.M)
_LARGEST = 100_000  # bytes


def first_theme(flag: str | None, environ: Mapping[str, str]) -> str:
    """Dark, light or plain, as it will be when everything is read."""
    chosen = flag or environ.get("BRIDLE_THEME") or _saved(environ)
    if chosen not in CHOICES or chosen == "auto":
        return "light" if prefers_light(environ) else "dark"
    return chosen


def theme_name(choice: str, environ: Mapping[str, str]) -> str:
    """The name that Textual knows a choice by."""
    light = prefers_light(environ)
    if choice == "plain":
        return "ansi-light" if light else "ansi-dark"
    if choice == "auto":
        choice = "light" if light else "dark"
    return "bridle-light" if choice == "light" else "bridle-dark"


def prefers_light(environ: Mapping[str, str]) -> bool:
    """Does the terminal say that its ground is light?"""
    return environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def _saved(environ: Mapping[str, str]) -> str:
    """What the settings file says; whatever is wrong with it is told when it is read whole."""
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
