"""Where the user's own files lie. Reads nothing; knows the environment it is handed."""

from collections.abc import Mapping
from pathlib import Path


def config_file(environ: Mapping[str, str]) -> Path:
    """`$BRIDLE_CONFIG`, or `bridle/config.yaml` in the user's config folder."""
    if chosen := environ.get("BRIDLE_CONFIG"):
        return Path(chosen).expanduser()
    return _user_folder(environ, "XDG_CONFIG_HOME", ".config") / "config.yaml"


def policy_file(environ: Mapping[str, str]) -> Path:
    """The person's own rules: `policy.yaml` in the user's config folder, and nowhere else."""
    return _user_folder(environ, "XDG_CONFIG_HOME", ".config") / "policy.yaml"


def hooks_file(environ: Mapping[str, str]) -> Path:
    """The person's own hooks: `hooks.yaml` in the user's config folder, and nowhere else."""
    return _user_folder(environ, "XDG_CONFIG_HOME", ".config") / "hooks.yaml"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where sessions lie: `$BRIDLE_STATE`, or `bridle` in the user's state folder."""
    if chosen := environ.get("BRIDLE_STATE"):
        return Path(chosen).expanduser().absolute()
    return _user_folder(environ, "XDG_STATE_HOME", ".local/state")


def _user_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    named = environ.get(variable, "")
    if named.startswith("/"):  # the XDG rules: a relative path is to be ignored
        return Path(named, "bridle")
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / usual / "bridle"
