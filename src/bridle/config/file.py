"""The settings file: YAML, read so that each value knows its line. Knows no other layer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridle.config.checking import fitting, nearest
from bridle.config.patterns import check_pattern
from bridle.config.settings import TYPES
from bridle.errors import ConfigError

_LARGEST = 1_000_000  # bytes; what is larger is no settings file
_EXAMPLE = "For example `model: anthropic/MODEL`, or `limits:` with `steps: 50` indented below."

Entry = tuple[str, Any, str]  # key, value, `file:line`


def read_file(path: Path, *, required: bool) -> list[Entry]:
    """What the file sets. A file that is not there sets nothing, unless it was asked for."""
    text = _text(path, required=required)
    if text is None or not _says_something(text):
        return []
    import yaml  # 20 ms, and most people have no file

    try:
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            return list(_entries(loader, root, path, "")) if root is not None else []
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise _malformed(place, error.problem or "it cannot be read") from None
    except yaml.YAMLError as error:  # a control character; it comes without a mark
        raise _malformed(str(path), str(error).splitlines()[0]) from None
    except RecursionError:
        raise _malformed(str(path), "it is nested too deeply") from None


def _says_something(text: str) -> bool:
    """Is there a line that is neither empty nor a comment?"""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def exposed(path: Path) -> bool:
    """Can anybody but its owner read the file?"""
    return bool(path.stat().st_mode & 0o077)


def _malformed(place: str, problem: str) -> ConfigError:
    return ConfigError(
        f"{place}: this is not YAML: {problem}", hint="Mend that line; each is `key: value`."
    )


def _text(path: Path, *, required: bool) -> str | None:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if not required:
            return None
        hint = "Make the file, or unset BRIDLE_CONFIG."
        raise ConfigError(f"{path}: there is no such file", hint=hint) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: the settings cannot be read: {getattr(error, 'strerror', error)}",
            hint="Check that it is a file and that you may read it.",
        ) from error
    if len(data) > _LARGEST:
        raise ConfigError(f"{path}: too large for a settings file", hint="Is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: this line is not valid UTF-8", hint="Save the file as UTF-8."
        ) from None


def _entries(loader: Any, node: Any, path: Path, before: str) -> Iterator[Entry]:
    """The keys of a mapping, those of `limits` with a dot between."""
    if node.id != "mapping":
        what = f"`{before[:-1]}`" if before else "the file"
        place = f"{path}:{node.start_mark.line + 1}"
        raise ConfigError(f"{place}: {what} has to hold `key: value` lines", hint=_EXAMPLE)
    seen: set[str] = set()
    for name, value in node.value:
        place = f"{path}:{name.start_mark.line + 1}"
        key = before + (name.value if name.id == "scalar" else "…")
        if key in seen:
            raise ConfigError(f"{place}: `{key}` is set twice", hint="Keep one of the two lines.")
        seen.add(key)
        if key == "limits":
            yield from _entries(loader, value, path, "limits.")
            continue
        found = loader.construct_object(value, deep=True)
        if key == "redact" and value.id == "sequence":
            for pattern, item in zip(found, value.value, strict=True):
                check_pattern(pattern, f"{path}:{item.start_mark.line + 1}")
        yield from _entry(key, found, place)


def _entry(key: str, value: Any, place: str) -> Iterator[Entry]:
    if key not in TYPES:
        raise ConfigError(f"{place}: there is no setting `{key}`", hint=nearest(key))
    if value not in (None, ""):  # `api_key:` with nothing behind it is not set
        yield key, fitting(key, value, place), place
