"""Load the settings: defaults, file, environment, flags; the later wins.

Two things do not simply follow "the later wins": a key in the file comes before keys in the
environment, and the file's key and address belong to the file's own provider, so that another
vendor never gets them. An error never repeats a value, because it may be a key.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.config.paths import config_file
from bridle.config.settings import (
    FLAGS,
    KEY_VARIABLES,
    PROVIDERS,
    TYPES,
    URL_VARIABLES,
    VARIABLES,
    LimitSettings,
    LoadedSettings,
    Settings,
    vendor_of,
)
from bridle.config.yaml_file import has_content, items_of, location_of, open_yaml, read_text
from bridle.errors import ConfigError
from bridle.workspace.regex_safety import SHORT, is_slow

_EXAMPLE = "For example `model: anthropic/MODEL`, or `limits:` with `max_steps: 50` indented below."

Entry = tuple[str, Any, str]  # key, value, `file:line`


class _Value(Struct, frozen=True):
    value: Any
    origin: str


_Layer = dict[str, _Value]


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    """Load the settings. Raise `ConfigError`, with the file and the line if there is one.

    Flags are given by key (`model`, `limits.max_steps`); a flag that was not used is None.
    """
    environ = os.environ if environ is None else environ
    path = config_file(environ) if file is None else file
    required = file is not None or bool(environ.get("BRIDLE_CONFIG"))
    entries = read_settings_file(path, required=required)
    from_file = {key: _Value(value, f"file {location}") for key, value, location in entries}
    merged = _merge(from_file, _from_environment(environ), _from_flags(flags or {}))
    _set_vendor(merged, from_file, environ)
    for key, check in (("api_key", check_key), ("base_url", check_url)):
        if key in merged:
            check(merged[key].value, merged[key].origin)
    plain = {key: item.value for key, item in merged.items() if "." not in key}
    limits = {key.partition(".")[2]: item.value for key, item in merged.items() if "." in key}
    origins = {key: merged[key].origin if key in merged else "default" for key in TYPES}
    exposed = "api_key" in from_file and _is_readable_by_others(path)
    warning = f"{path} holds an API key and others can read it: chmod 600 {path}"
    return LoadedSettings(
        settings=Settings(**plain, limits=LimitSettings(**limits)),
        origins=origins,
        file=path,
        warnings=(warning,) if exposed else (),
    )


def _merge(*layers: _Layer) -> _Layer:
    """Merge layers; the later wins. A model that names its provider replaces an earlier one."""
    merged: _Layer = {}
    for layer in layers:
        if "model" in layer and vendor_of(layer["model"].value) in PROVIDERS:
            merged.pop("provider", None)
        earlier = merged.get("model")
        if "provider" in layer and earlier and vendor_of(earlier.value) in PROVIDERS:
            del merged["model"]
        merged |= layer
    return merged


def _set_vendor(merged: _Layer, from_file: _Layer, environ: Mapping[str, str]) -> None:
    """Use the key and the address of the vendor that was chosen."""
    chosen, in_file = _vendor(merged), _vendor(from_file)
    foreign = bool(chosen and in_file) and _family(chosen) != _family(in_file)
    for key, variables in (("api_key", KEY_VARIABLES), ("base_url", URL_VARIABLES)):
        if foreign and merged.get(key) == from_file.get(key):
            merged.pop(key, None)  # another vendor must not get this key, or be asked there
        elif key == "api_key" and key in from_file and not foreign:
            merged[key] = from_file[key]
        variable = variables.get(chosen, "")
        if key not in merged and (value := environ.get(variable, "").strip()):
            merged[key] = _Value(value, f"environment {variable}")


def _vendor(layer: _Layer) -> str:
    name = layer.get("provider") or layer.get("model")
    return vendor_of(name.value) if name else ""


def _family(vendor: str) -> str:
    """`openai` and `openai-chat` are one vendor."""
    return vendor.partition("-")[0]


# --- the layers --------------------------------------------------------------------------------


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    return {
        key: _Value(_convert(key, value, variable, strict=False), f"environment {variable}")
        for key, variable in VARIABLES.items()
        if (value := environ.get(variable, "").strip())
    }


def _from_flags(flags: Mapping[str, Any]) -> _Layer:
    if unknown := [key for key in flags if key not in TYPES]:
        raise ConfigError(f"there is no setting `{unknown[0]}`", hint=_suggest(unknown[0]))
    return {
        key: _Value(_convert(key, value, FLAGS[key]), f"flag {FLAGS[key]}")
        for key, value in flags.items()
        if value is not None
    }


def read_settings_file(path: Path, *, required: bool) -> list[Entry]:
    """Return what the file sets: nothing if it does not exist, unless it is required."""
    text = read_text(path, "settings")
    if text is None and required:
        hint = "Make the file, or unset BRIDLE_CONFIG."
        raise ConfigError(f"{path}: there is no such file", hint=hint)
    if text is None or not has_content(text):
        return []
    with open_yaml(text, path) as (loader, root):
        return list(_entries(loader, root, path, "")) if root is not None else []


def _is_readable_by_others(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _entries(loader: Any, node: Any, path: Path, prefix: str) -> Iterator[Entry]:
    """Yield the entries of a mapping; the keys of `limits` have a dot in them."""
    what = f"`{prefix[:-1]}`" if prefix else "the file"
    for name, node_of_value, location in items_of(node, path, what, _EXAMPLE):
        key = prefix + name
        if key == "limits":
            yield from _entries(loader, node_of_value, path, "limits.")
            continue
        if key == "mcp":  # servers: config/mcp.py reads them when they are needed
            continue
        value = loader.construct_object(node_of_value, deep=True)
        if key == "redact" and node_of_value.id == "sequence":
            for pattern, item in zip(value, node_of_value.value, strict=True):
                check_pattern(pattern, location_of(item, path))
        if key not in TYPES:
            raise ConfigError(f"{location}: there is no setting `{key}`", hint=_suggest(key))
        if value not in (None, ""):  # `api_key:` without a value sets nothing
            yield key, _convert(key, value, location), location


# --- one value ---------------------------------------------------------------------------------


def _convert(key: str, value: Any, location: str, *, strict: bool = True) -> Any:
    """Convert a value to the setting's type. `strict=False` accepts numbers written as text."""
    try:
        converted = msgspec.convert(value, TYPES[key], strict=strict)
    except msgspec.ValidationError as error:
        subject = location if location.startswith("--") else f"{location}: `{key}`"
        raise ConfigError(f"{subject} {_in_words(str(error))}", hint=_expected(key)) from None
    if isinstance(converted, str) and not converted.isprintable():
        raise ConfigError(
            f"{location}: `{key}` has characters that cannot be shown", hint="Type it again."
        )
    return converted


_WORDS = {
    " | null`": "`",
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a mapping",
    " >= ": " of at least ",
    " <= ": " of at most ",
    " > ": " above ",
}


def _in_words(problem: str) -> str:
    if problem.startswith("Invalid enum value"):
        return "has a value that is not among the choices"
    for word, plain in _WORDS.items():
        problem = problem.replace(word, plain)
    return "should be " + problem.removeprefix("Expected ").replace(", got ", ", not ")


def _expected(key: str) -> str:
    choices = getattr(TYPES[key], "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return f"Choose one of {', '.join(choices)}."
    if TYPES[key] is str:
        return "Text that could be read as a number, a date or yes/no needs quotes."
    if TYPES[key] in (bool, bool | None):
        return "Write true or false."
    if key == "redact":
        return "Write one pattern a line, in single quotes: - 'ACME-[0-9]{6}'."
    if key == "hosts":
        return "Write one host a line: - docs.python.org."
    if key == "agent_env":
        return "Write one name a line: - GEMINI_API_KEY."
    return "Write a plain number, without quotes or units."


def _suggest(key: str) -> str:
    """Return a hint for a name that is not a setting."""
    from difflib import get_close_matches  # only a mistake needs it

    if near := get_close_matches(key, [*TYPES, "limits"], 1, 0.6):
        return f"Did you mean `{near[0]}`?"
    return f"There are: {', '.join(TYPES)}."


def check_key(key: str, origin: str) -> None:
    """Raise `ConfigError` if the key cannot be sent in an HTTP header."""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(
            f"{origin}: the API key has characters that no key has",
            hint="Copy the key again, without quotes, spaces or line ends.",
        )


def check_url(url: str, origin: str) -> None:
    """Raise `ConfigError` if it is not a web address."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{origin}: the base URL has to begin with http:// or https://",
            hint="For example http://127.0.0.1:11434/v1 for a local server.",
        )


# Check the person's `redact` patterns, which are matched against everything that is recorded.
#
# A pattern has to be a regular expression, to match something, and to be fast on every text: the
# time of a pattern like `(a+)+$` doubles with each character. Speed is tested on samples, not
# proved. An error never repeats a pattern, because it may contain a secret.

_LENGTHS = (*SHORT, 500, 2000)  # characters of the texts that are tried
_SLOW = 0.004  # seconds of our own: hundreds of times what a text of that length should take
_LONGEST = 1000  # characters of a pattern
_HINT = "Say how often at most, for example \\w{1,64} instead of \\w+, and repeat no repeats."


def check_patterns(patterns: Iterable[str], location: str) -> tuple[str, ...]:
    """Return the patterns. Raise `ConfigError` for the first that cannot be used."""
    checked = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for number, pattern in enumerate(checked, 1):
        check_pattern(pattern, f"{location}, pattern {number}")
    return checked


def check_pattern(pattern: str, location: str) -> None:
    """Raise `ConfigError` if it is not a regular expression, matches an empty text, or is slow."""
    if not isinstance(pattern, str):
        raise ConfigError(
            f"{location}: `redact` should hold text, not {type(pattern).__name__}",
            hint="Write each pattern in single quotes: - 'ACME-[0-9]{6}'.",
        )
    if len(pattern) > _LONGEST:
        raise ConfigError(f"{location}: the pattern is too long", hint="Write it as several.")
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"{location}: the pattern is not a regular expression: {error}",
            hint="Correct it; a sign that stands for itself needs a backslash: \\. \\( \\[ \\+",
        ) from None
    if compiled.search("") is not None:
        raise ConfigError(
            f"{location}: the pattern matches an empty text",
            hint="Let it ask for at least one character: + instead of *.",
        )
    if is_slow(compiled, _LENGTHS, _SLOW):
        raise ConfigError(f"{location}: the pattern may take for ever on some texts", hint=_HINT)
