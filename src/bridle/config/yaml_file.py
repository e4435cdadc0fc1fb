"""YAML files, read as nodes that know their lines. Knows no settings and no rules."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridle.errors import ConfigError

LARGEST = 1_000_000  # bytes; a larger file was not written by hand


def read_text(path: Path, what: str) -> str | None:
    """Return the text of a file, or None if there is no such file. Raise `ConfigError`."""
    try:
        data = _read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        refuse_dangling_link(path, what)
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: the {what} cannot be read: {getattr(error, 'strerror', error)}",
            hint="Check that it is a file and that you may read it.",
        ) from error
    return decode(data, path, what)


def refuse_dangling_link(path: Path, what: str) -> None:
    """Raise `ConfigError` if the path, or a folder above it, is a link that leads nowhere."""
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            raise ConfigError(
                f"{path}: the {what} cannot be read: {place} is a link to {place.readlink()}, "
                "which is not there",
                hint="Correct the link, or remove it if you want none.",
            )


def _read_bytes(path: Path) -> bytes:
    """The bytes of a regular file. A pipe without a writer would hang, so it is not opened."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        return file.read(LARGEST + 1)


def decode(data: bytes, path: Path, what: str) -> str:
    """Decode the bytes of a file. Raise `ConfigError` with the line."""
    if len(data) > LARGEST:
        raise ConfigError(f"{path}: too large for a {what} file", hint="Is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: this line is not valid UTF-8", hint="Save the file as UTF-8."
        ) from None


def has_content(text: str) -> bool:
    """Is there a line that is neither empty nor a comment?"""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


@contextmanager
def open_yaml(text: str, path: Path, *, fast: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the loader, and the node of the whole text (None if it is empty). Raise `ConfigError`.

    `fast` uses libyaml if it is there. Its error messages differ, so use it only for a text that
    the other loader has accepted before.
    """
    import yaml  # it takes 20 ms, and most people have no file

    try:
        kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
        loader = kind(text)
        try:
            yield loader, loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise _not_yaml(place, error.problem or "it cannot be read") from None
    except yaml.reader.ReaderError as error:  # a control character; it comes without a mark
        line = text.count("\n", 0, error.position) + 1
        problem = f"it holds the character U+{error.character:04X}, which has no place in it"
        raise _not_yaml(f"{path}:{line}", problem) from None
    except yaml.YAMLError as error:
        raise _not_yaml(str(path), str(error).splitlines()[0]) from None
    except ValueError as error:  # a date in the thirteenth month
        raise _not_yaml(str(path), str(error)) from None
    except RecursionError:
        raise _not_yaml(str(path), "it is nested too deeply") from None


def location_of(node: Any, path: Path) -> str:
    """`file:line` of a node."""
    return f"{path}:{node.start_mark.line + 1}"


def items_of(node: Any, path: Path, what: str, example: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the items of a mapping: key, node of the value, location.

    Raise `ConfigError` if it is not a mapping, or has a key twice.
    """
    if node.id != "mapping":
        raise ConfigError(
            f"{location_of(node, path)}: {what} has to hold `key: value` lines", hint=example
        )
    seen: set[str] = set()
    for name, value in node.value:
        location = location_of(name, path)
        key = name.value if name.id == "scalar" else "…"
        if key in seen:
            raise ConfigError(
                f"{location}: `{key}` is set twice", hint="Keep one of the two lines."
            )
        seen.add(key)
        yield key, value, location


def _not_yaml(location: str, problem: str) -> ConfigError:
    return ConfigError(
        f"{location}: this is not YAML: {problem}",
        hint="Correct that line; each is `key: value`.",
    )
