"""The settings file: YAML, read so that each value knows its line. Knows no other layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridle.config.checking import fitting, nearest
from bridle.config.marked import composed, pairs, place_of, read_text, says_something
from bridle.config.patterns import check_pattern
from bridle.config.settings import TYPES
from bridle.errors import ConfigError

_EXAMPLE = "For example `model: anthropic/MODEL`, or `limits:` with `steps: 50` indented below."

Entry = tuple[str, Any, str]  # key, value, `file:line`


def read_file(path: Path, *, required: bool) -> list[Entry]:
    """What the file sets. A file that is not there sets nothing, unless it was asked for."""
    text = read_text(path, "settings")
    if text is None and required:
        hint = "Make the file, or unset BRIDLE_CONFIG."
        raise ConfigError(f"{path}: there is no such file", hint=hint)
    if text is None or not says_something(text):
        return []
    with composed(text, path) as (loader, root):
        return list(_entries(loader, root, path, "")) if root is not None else []


def exposed(path: Path) -> bool:
    """Can anybody but its owner read the file?"""
    return bool(path.stat().st_mode & 0o077)


def _entries(loader: Any, node: Any, path: Path, before: str) -> Iterator[Entry]:
    """The keys of a mapping, those of `limits` with a dot between."""
    what = f"`{before[:-1]}`" if before else "the file"
    for name, value, place in pairs(node, path, what, _EXAMPLE):
        key = before + name
        if key == "limits":
            yield from _entries(loader, value, path, "limits.")
            continue
        if key == "mcp":  # servers: read by config/mcp.py, where they are needed
            continue
        found = loader.construct_object(value, deep=True)
        if key == "redact" and value.id == "sequence":
            for pattern, item in zip(found, value.value, strict=True):
                check_pattern(pattern, place_of(item, path))
        yield from _entry(key, found, place)


def _entry(key: str, value: Any, place: str) -> Iterator[Entry]:
    if key not in TYPES:
        raise ConfigError(f"{place}: there is no setting `{key}`", hint=nearest(key))
    if value not in (None, ""):  # `api_key:` with nothing behind it is not set
        yield key, fitting(key, value, place), place
