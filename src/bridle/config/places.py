"""Where the user's own files lie. Reads nothing; knows the environment it is handed."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def config_file(environ: Mapping[str, str]) -> "Path":
    """`$BRIDLE_CONFIG`, or `bridle/config.yaml` in the user's config folder."""
    return _path(config_place(environ))


def config_place(environ: Mapping[str, str]) -> str:
    """The same, spelled, for what is there before `pathlib` is."""
    if chosen := environ.get("BRIDLE_CONFIG"):
        return os.path.expanduser(chosen)  # noqa: PTH111 - see above
    return f"{_user_folder(environ, 'XDG_CONFIG_HOME', '.config')}/config.yaml"


def policy_file(environ: Mapping[str, str]) -> "Path":
    """The person's own rules: `policy.yaml` in the user's config folder, and nowhere else."""
    return _configured(environ) / "policy.yaml"


def hooks_file(environ: Mapping[str, str]) -> "Path":
    """The person's own hooks: `hooks.yaml` in the user's config folder, and nowhere else."""
    return _configured(environ) / "hooks.yaml"


def skills_folder(environ: Mapping[str, str]) -> "Path":
    """The person's own skills: `skills` in the user's config folder, and nowhere else."""
    return _configured(environ) / "skills"


def state_folder(environ: Mapping[str, str]) -> "Path":
    """Where sessions lie: `$BRIDLE_STATE`, or `bridle` in the user's state folder."""
    return _path(state_place(environ))


def state_place(environ: Mapping[str, str]) -> str:
    """The same, spelled: a list of sessions needs no more, and is there before `pathlib` is."""
    if chosen := environ.get("BRIDLE_STATE"):
        return os.path.abspath(os.path.expanduser(chosen))  # noqa: PTH100, PTH111 - see above
    return _user_folder(environ, "XDG_STATE_HOME", ".local/state")


def _configured(environ: Mapping[str, str]) -> "Path":
    return _path(_user_folder(environ, "XDG_CONFIG_HOME", ".config"))


def _user_folder(environ: Mapping[str, str], variable: str, usual: str) -> str:
    named = environ.get(variable, "")
    if named.startswith("/"):  # the XDG rules: a relative path is to be ignored
        return f"{named}/bridle"
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - as above
    return f"{home}/{usual}/bridle"


def _path(spelled: str) -> "Path":
    from pathlib import Path

    return Path(spelled)
