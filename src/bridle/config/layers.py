"""Puts the layers of settings on top of each other: default, file, environment, flag.

Two things are not simply "the later wins": a key in the file comes before keys in the environment,
and the file's key and address are the file's own provider's, never another vendor's.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bridle.config.checking import check_key, check_url, fitting, nearest
from bridle.config.file import exposed, read_file
from bridle.config.places import config_file
from bridle.config.settings import (
    FLAGS,
    KEY_VARIABLES,
    PROVIDERS,
    TYPES,
    URL_VARIABLES,
    VARIABLES,
    LimitSettings,
    Loaded,
    Settings,
    vendor_of,
)
from bridle.errors import ConfigError


class _Found(NamedTuple):
    value: Any
    origin: str


_Layer = dict[str, _Found]


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """The settings that hold. Raise `ConfigError`, with the file and the line where there is one.

    Flags are given by key (`model`, `limits.steps`); None is a flag that was not used.
    """
    environ = os.environ if environ is None else environ
    path = config_file(environ) if file is None else file
    filed = _from_file(path, required=file is not None or bool(environ.get("BRIDLE_CONFIG")))
    found = _stack(filed, _from_environment(environ), _from_flags(flags or {}))
    _give_vendor(found, filed, environ)
    for key, check in (("api_key", check_key), ("base_url", check_url)):
        if key in found:
            check(*found[key])
    origins = {key: found[key].origin if key in found else "default" for key in TYPES}
    open_to_all = "api_key" in filed and exposed(path)
    warning = f"{path} holds an API key and others can read it: chmod 600 {path}"
    return Loaded(_to_settings(found), origins, path, (warning,) if open_to_all else ())


def _to_settings(found: _Layer) -> Settings:
    plain = {key: item.value for key, item in found.items() if "." not in key}
    limits = {key.partition(".")[2]: item.value for key, item in found.items() if "." in key}
    return Settings(**plain, limits=LimitSettings(**limits))


def _from_file(path: Path, *, required: bool) -> _Layer:
    entries = read_file(path, required=required)
    return {key: _Found(value, f"file {place}") for key, value, place in entries}


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    return {
        key: _Found(fitting(key, value, variable, strict=False), f"environment {variable}")
        for key, variable in VARIABLES.items()
        if (value := environ.get(variable, "").strip())
    }


def _from_flags(flags: Mapping[str, Any]) -> _Layer:
    if unknown := [key for key in flags if key not in TYPES]:
        raise ConfigError(f"there is no setting `{unknown[0]}`", hint=nearest(unknown[0]))
    return {
        key: _Found(fitting(key, value, FLAGS[key]), f"flag {FLAGS[key]}")
        for key, value in flags.items()
        if value is not None
    }


def _stack(*layers: _Layer) -> _Layer:
    """The later wins. A model that names its provider also wins over a provider set before."""
    found: _Layer = {}
    for layer in layers:
        if "model" in layer and vendor_of(layer["model"].value) in PROVIDERS:
            found.pop("provider", None)
        before = found.get("model")
        if "provider" in layer and before and vendor_of(before.value) in PROVIDERS:
            del found["model"]
        found |= layer
    return found


def _give_vendor(found: _Layer, filed: _Layer, environ: Mapping[str, str]) -> None:
    """The key and the address that belong to the vendor that was chosen."""
    chosen, home = _vendor(found), _vendor(filed)
    foreign = bool(chosen and home) and _family(chosen) != _family(home)
    for key, variables in (("api_key", KEY_VARIABLES), ("base_url", URL_VARIABLES)):
        if foreign and found.get(key) == filed.get(key):
            found.pop(key, None)  # another vendor must not be handed this key, or asked there
        elif key == "api_key" and key in filed and not foreign:
            found[key] = filed[key]
        variable = variables.get(chosen, "")
        if key not in found and (value := environ.get(variable, "").strip()):
            found[key] = _Found(value, f"environment {variable}")


def _vendor(found: _Layer) -> str:
    named = found.get("provider") or found.get("model")
    return vendor_of(named.value) if named else ""


def _family(vendor: str) -> str:
    """`openai` and `openai-chat` are one vendor."""
    return vendor.partition("-")[0]
