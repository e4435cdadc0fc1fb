"""Paths of the user's own files. Reads nothing but the environment that is passed in."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def config_file(environ: Mapping[str, str]) -> "Path":
    """`$BRIDLE_CONFIG`, or `bridle/config.yaml` in the user's configuration folder."""
    return _path(config_file_str(environ))


def config_file_str(environ: Mapping[str, str]) -> str:
    """Return the path as a string, for code that runs before `pathlib` is imported."""
    if chosen := environ.get("BRIDLE_CONFIG"):
        return os.path.expanduser(chosen)  # noqa: PTH111 - see above
    return f"{_user_folder(environ, 'XDG_CONFIG_HOME', '.config')}/config.yaml"


def policy_file(environ: Mapping[str, str]) -> "Path":
    """Return the person's own rules: `policy.yaml` in their configuration folder."""
    return _path(_user_folder(environ, "XDG_CONFIG_HOME", ".config")) / "policy.yaml"


def hooks_file(environ: Mapping[str, str]) -> "Path":
    """Return the person's own hooks: `hooks.yaml` in their configuration folder."""
    return _path(_user_folder(environ, "XDG_CONFIG_HOME", ".config")) / "hooks.yaml"


def skills_folder(environ: Mapping[str, str]) -> "Path":
    """Return the person's own skills: `skills` in their configuration folder."""
    return _path(_user_folder(environ, "XDG_CONFIG_HOME", ".config")) / "skills"


def state_folder(environ: Mapping[str, str]) -> "Path":
    """The folder of the sessions: `$BRIDLE_STATE`, or `bridle` in the user's state folder."""
    return _path(state_folder_str(environ))


def state_folder_str(environ: Mapping[str, str]) -> str:
    """Return the path as a string, for code that runs before `pathlib` is imported."""
    if chosen := environ.get("BRIDLE_STATE"):
        return os.path.abspath(os.path.expanduser(chosen))  # noqa: PTH100, PTH111 - see above
    return _user_folder(environ, "XDG_STATE_HOME", ".local/state")


def _user_folder(environ: Mapping[str, str], variable: str, default: str) -> str:
    folder = environ.get(variable, "")
    if folder.startswith("/"):  # XDG says that a relative path is to be ignored
        return f"{folder}/bridle"
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - see above
    return f"{home}/{default}/bridle"


def _path(text: str) -> "Path":
    from pathlib import Path  # it costs quick commands too much time

    return Path(text)
