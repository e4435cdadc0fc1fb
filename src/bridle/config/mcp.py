"""MCP servers from files: the person's own settings, and those of a folder which they trust.

A section that cannot be understood is refused with its line and what was expected. Reads what is
to be reached; starts nothing, and looks up no variable.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.config.marked import composed, decoded, pairs, place_of, read_text, says_something
from bridle.config.places import config_file, state_folder
from bridle.errors import ConfigError

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}")
FOLDERS_OWN = ".bridle/mcp.yaml"
SECONDS = 30.0
MOST_SECONDS = 600.0
_KEYS = ("command", "env", "cwd", "url", "headers", "auth", "timeout", "enabled")
_SECTION = re.compile(r"^[\"']?mcp[\"']?\s*:", re.M)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE = 'For example `github:`, and below it `command: ["npx", "-y", "PACKAGE"]`, or `url: …`.'


class ServerSettings(Struct, frozen=True):
    """One server as it was written. `here`: it is the folder's own, and not the person's.

    Values of `env` and `headers`, and the address, may name variables: `${GITHUB_TOKEN}`. With
    `auth`, a person signs in at the server.
    """

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = SECONDS
    enabled: bool = True
    auth: str = ""
    origin: str = ""
    here: bool = False

    def __repr__(self) -> str:
        return f"<settings of server {self.name}>"  # values may be secret


class StandingServers(Struct, frozen=True):
    """The servers that count in a folder, and what deserves a word, with a hint."""

    servers: tuple[ServerSettings, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def standing_servers(root: str | Path, environ: Mapping[str, str] | None = None) -> StandingServers:
    """The person's servers, then those of the folder where it is trusted. Raise `ConfigError`."""
    environ = os.environ if environ is None else environ
    mine = own_servers(config_file(environ))
    theirs = Path(root, FOLDERS_OWN)
    if not os.path.lexists(theirs):
        return StandingServers(mine)
    from bridle.config.trust import Trust  # most folders have none

    data = Trust(state_folder(environ)).servers(root)
    if data is None:
        note = "this folder has its own MCP servers, which are not used"
        hint = "`bridle trust` shows them and lets you accept them."
        return StandingServers(mine, ((note, hint),))
    found = parse_servers(decoded(data, theirs, "servers"), theirs)
    known = {one.name for one in mine}
    notes = [
        (f"the folder's MCP server {one.name} is not used: you have one of that name", "")
        for one in found
        if one.name in known
    ]
    more = tuple(one for one in found if one.name not in known)
    return StandingServers(mine + more, tuple(notes))


def own_servers(path: Path) -> tuple[ServerSettings, ...]:
    """The servers in the person's settings. Raise `ConfigError`."""
    text = read_text(path, "settings")
    return servers_in(text, path) if text and _SECTION.search(text) else ()


def servers_in(text: str, path: Path) -> tuple[ServerSettings, ...]:
    """The servers that a text of settings names, below `mcp:` and `servers:`."""
    with composed(text, path, quick=True) as (loader, root):
        for name, node in root.value if root is not None and root.id == "mapping" else ():
            if name.value == "mcp":
                return tuple(_section(loader, node, path, here=False))
    return ()


def parse_servers(text: str, path: Path) -> tuple[ServerSettings, ...]:
    """The servers in a folder's own file, below `servers:`. Raise `ConfigError`."""
    if not says_something(text):
        return ()
    with composed(text, path) as (loader, root):
        return tuple(_section(loader, root, path, here=True)) if root is not None else ()


def _section(loader: Any, node: Any, path: Path, *, here: bool) -> Iterator[ServerSettings]:
    if _says_nothing(node):
        return
    for key, value, place in pairs(node, path, "`mcp`", _EXAMPLE):
        if key != "servers":
            raise ConfigError(f"{place}: there is no `{key}` here", hint="Write `servers:`.")
        if _says_nothing(value):
            continue
        for name, each, where in pairs(value, path, "`servers`", _EXAMPLE):
            check_name(name, f"{where}: ")
            yield _server(loader, name, each, path, here)


def _says_nothing(node: Any) -> bool:
    return node.id == "scalar" and node.value in ("", "~", "null")


def check_name(name: str, place: str = "") -> None:
    """Can a server be called so? Raise `ConfigError`."""
    if not NAME.fullmatch(name):
        said = name if name.isprintable() and len(name) < 60 else "that"
        raise ConfigError(
            f"{place}a server cannot be called `{said}`",
            hint="Take letters, digits, - and single _, 32 of them at most.",
        )


def _server(loader: Any, name: str, node: Any, path: Path, here: bool) -> ServerSettings:
    found: dict[str, Any] = {}
    place = place_of(node, path)
    for key, value, where in pairs(node, path, f"the server `{name}`", _EXAMPLE):
        if key not in _KEYS:
            hint = f"A server has {', '.join(_KEYS)}."
            raise ConfigError(f"{where}: there is no `{key}` in a server", hint=hint)
        found[key] = _READERS[key](loader.construct_object(value, deep=True), f"{where}: `{key}`")
    if ("command" in found) == ("url" in found):
        raise ConfigError(
            f"{place}: {name} needs a `command` or a `url`, and not both", hint=_EXAMPLE
        )
    if (idle := {"env", "cwd"} & found.keys()) and "url" in found:
        raise ConfigError(f"{place}: a `url` has no `{min(idle)}`", hint="It has `headers`.")
    if (idle := {"headers", "auth"} & found.keys()) and "command" in found:
        raise ConfigError(f"{place}: a `command` has no `{min(idle)}`", hint="It has `env`.")
    return ServerSettings(name, origin=place, here=here, **found)


def _command(value: Any, place: str) -> tuple[str, ...]:
    words = value if isinstance(value, list) else []
    if words and all(isinstance(one, str) and one.isprintable() for one in words) and words[0]:
        return tuple(words)
    hint = 'Write its words as a list: command: ["npx", "-y", "PACKAGE"].'
    raise ConfigError(f"{place} has to be a list of words", hint=hint)


def _texts(names: re.Pattern[str], value: Any, place: str) -> dict[str, str]:
    """A mapping of texts. What they are is not said again: they may be secret."""
    if value is None:
        return {}
    sound = isinstance(value, dict) and all(
        isinstance(name, str) and names.fullmatch(name) and isinstance(one, str | int | float)
        for name, one in value.items()
    )
    if not sound or any("\0" in str(one) or "\n" in str(one) for one in value.values()):
        raise ConfigError(f"{place} has to hold `NAME: text` lines", hint="Quote the text.")
    return {name: one if isinstance(one, str) else str(one) for name, one in value.items()}


def _env(value: Any, place: str) -> dict[str, str]:
    return _texts(_VARIABLE, value, place)


def _headers(value: Any, place: str) -> dict[str, str]:
    return _texts(_HEADER, value, place)


def _text(value: Any, place: str) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise ConfigError(f"{place} has to be text", hint="Write it in quotes.")


def _url(value: Any, place: str) -> str:
    url = _text(value, place)
    if not url.startswith(("http://", "https://")) or " " in url:
        hint = "Write where the server is: url: https://example.com/mcp."
        raise ConfigError(f"{place} has to begin with http:// or https://", hint=hint)
    return url


def _timeout(value: Any, place: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS:
        return float(value)
    hint = f"Write how long its start may take, in seconds: up to {MOST_SECONDS:g}."
    raise ConfigError(f"{place} has to be a number above 0", hint=hint)


def _auth(value: Any, place: str) -> str:
    if value == "oauth":
        return "oauth"
    raise ConfigError(
        f"{place} can be `oauth`, and nothing else", hint="A token goes to `headers`."
    )


def _enabled(value: Any, place: str) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{place} has to be true or false", hint="Write true or false.")


_READERS: dict[str, Any] = {
    "command": _command,
    "env": _env,
    "cwd": _text,
    "url": _url,
    "headers": _headers,
    "timeout": _timeout,
    "enabled": _enabled,
    "auth": _auth,
}
