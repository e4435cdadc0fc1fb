"""A YAML file as nodes that know their lines. Knows no setting and no rule."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridle.errors import ConfigError

LARGEST = 1_000_000  # bytes; what is larger was not written by hand


def read_text(path: Path, what: str) -> str | None:
    """The text of a file, None where there is none. Raise `ConfigError`."""
    try:
        data = _bytes_of(path)
    except (FileNotFoundError, NotADirectoryError):
        refuse_dangling(path, what)
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: the {what} cannot be read: {getattr(error, 'strerror', error)}",
            hint="Check that it is a file and that you may read it.",
        ) from error
    return decoded(data, path, what)


def refuse_dangling(path: Path, what: str) -> None:
    """A link that leads nowhere was meant to be a file. Raise `ConfigError`."""
    for one in (path, *path.parents):
        if one.is_symlink() and not one.exists():
            raise ConfigError(
                f"{path}: the {what} cannot be read: {one} is a link to {one.readlink()}, "
                "which is not there",
                hint="Mend the link, or remove it if you want none.",
            )


def _bytes_of(path: Path) -> bytes:
    """The bytes of a regular file. Nobody is waited for: a pipe without a writer would hang."""
    import stat

    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        return file.read(LARGEST + 1)


def decoded(data: bytes, path: Path, what: str) -> str:
    """Bytes of a file as text. Raise `ConfigError` with the line."""
    if len(data) > LARGEST:
        raise ConfigError(f"{path}: too large for a {what} file", hint="Is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: this line is not valid UTF-8", hint="Save the file as UTF-8."
        ) from None


def says_something(text: str) -> bool:
    """Is there a line that is neither empty nor a comment?"""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


@contextmanager
def composed(text: str, path: Path, *, quick: bool = False) -> Iterator[tuple[Any, Any]]:
    """The loader, and the node of the whole text (None: it says nothing). Raise `ConfigError`.

    `quick`: by libyaml where it is there, for a text that has been read by the other way before;
    its complaints are worded otherwise.
    """
    import yaml  # 20 ms, and most people have no file

    try:
        kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if quick else yaml.SafeLoader
        loader = kind(text)
        try:
            yield loader, loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise _malformed(place, error.problem or "it cannot be read") from None
    except yaml.reader.ReaderError as error:  # a control character; it comes without a mark
        line = text.count("\n", 0, error.position) + 1
        problem = f"it holds the character U+{error.character:04X}, which has no place in it"
        raise _malformed(f"{path}:{line}", problem) from None
    except yaml.YAMLError as error:
        raise _malformed(str(path), str(error).splitlines()[0]) from None
    except ValueError as error:  # the thirteenth month
        raise _malformed(str(path), str(error)) from None
    except RecursionError:
        raise _malformed(str(path), "it is nested too deeply") from None


def place_of(node: Any, path: Path) -> str:
    """`file:line` of a node."""
    return f"{path}:{node.start_mark.line + 1}"


def pairs(node: Any, path: Path, what: str, example: str) -> Iterator[tuple[str, Any, str]]:
    """The keys of a mapping: name, node of the value, place. Raise `ConfigError` for one twice."""
    if node.id != "mapping":
        raise ConfigError(
            f"{place_of(node, path)}: {what} has to hold `key: value` lines", hint=example
        )
    seen: set[str] = set()
    for name, value in node.value:
        place = place_of(name, path)
        key = name.value if name.id == "scalar" else "…"
        if key in seen:
            raise ConfigError(f"{place}: `{key}` is set twice", hint="Keep one of the two lines.")
        seen.add(key)
        yield key, value, place


def _malformed(place: str, problem: str) -> ConfigError:
    return ConfigError(
        f"{place}: this is not YAML: {problem}", hint="Mend that line; each is `key: value`."
    )
