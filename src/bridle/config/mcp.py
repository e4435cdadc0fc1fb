"""MCP servers in files: read them, and add one to the person's settings or remove it.

Reading starts nothing and looks up no variable. A section that cannot be understood is refused with
its line and what was expected. A change keeps every other line of the person's file, and is read
back before it is written; if that does not work, the file stays as it is and the person is told to
edit it.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.config.yaml_file import has_content, items_of, location_of, open_yaml, read_text
from bridle.errors import ConfigError
from bridle.workspace.fs import replace_file

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}")
SECONDS = 30.0
MOST_SECONDS = 600.0
_KEYS = ("command", "env", "cwd", "url", "headers", "auth", "timeout", "enabled")
_SECTION = re.compile(r"^[\"']?mcp[\"']?\s*:", re.M)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE = 'For example `github:`, and below it `command: ["npx", "-y", "PACKAGE"]`, or `url: …`.'
_EMPTY: tuple[Any, ...] = (None, {}, {"servers": None}, {"servers": {}})


class ServerSettings(Struct, frozen=True):
    """One server as it was written. `here`: it belongs to the folder, not to the person.

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


# --- read --------------------------------------------------------------------------------------


def own_servers(path: Path) -> tuple[ServerSettings, ...]:
    """Return the servers in the person's settings file. Raise `ConfigError`."""
    text = read_text(path, "settings")
    return parse_own_servers(text, path) if text and _SECTION.search(text) else ()


def parse_own_servers(text: str, path: Path) -> tuple[ServerSettings, ...]:
    """The servers in a text of settings, below `mcp:` and `servers:`. Raise `ConfigError`."""
    with open_yaml(text, path, fast=True) as (loader, root):
        for name, node in root.value if root is not None and root.id == "mapping" else ():
            if name.value == "mcp":
                return tuple(_section(loader, node, path, here=False))
    return ()


def parse_servers(text: str, path: Path) -> tuple[ServerSettings, ...]:
    """Return the servers in a folder's own file, below `servers:`. Raise `ConfigError`."""
    if not has_content(text):
        return ()
    with open_yaml(text, path) as (loader, root):
        return tuple(_section(loader, root, path, here=True)) if root is not None else ()


def _section(loader: Any, node: Any, path: Path, *, here: bool) -> Iterator[ServerSettings]:
    if _is_empty(node):
        return
    for key, value, location in items_of(node, path, "`mcp`", _EXAMPLE):
        if key != "servers":
            raise ConfigError(f"{location}: there is no `{key}` here", hint="Write `servers:`.")
        if _is_empty(value):
            continue
        for name, server, location_of_name in items_of(value, path, "`servers`", _EXAMPLE):
            check_name(name, f"{location_of_name}: ")
            yield _server(loader, name, server, path, here=here)


def _is_empty(node: Any) -> bool:
    return node.id == "scalar" and node.value in ("", "~", "null")


def check_name(name: str, prefix: str = "") -> None:
    """Raise `ConfigError` if a server cannot have that name. `prefix` begins the message."""
    if not NAME.fullmatch(name):
        shown = name if name.isprintable() and len(name) < 60 else "that"
        raise ConfigError(
            f"{prefix}a server cannot be called `{shown}`",
            hint="Take letters, digits, - and single _, 32 of them at most.",
        )


def _server(loader: Any, name: str, node: Any, path: Path, *, here: bool) -> ServerSettings:
    fields: dict[str, Any] = {}
    location = location_of(node, path)
    for key, value, location_of_key in items_of(node, path, f"the server `{name}`", _EXAMPLE):
        if key not in _KEYS:
            hint = f"A server has {', '.join(_KEYS)}."
            raise ConfigError(f"{location_of_key}: there is no `{key}` in a server", hint=hint)
        subject = f"{location_of_key}: `{key}`"
        fields[key] = _READERS[key](loader.construct_object(value, deep=True), subject)
    if ("command" in fields) == ("url" in fields):
        raise ConfigError(
            f"{location}: {name} needs a `command` or a `url`, and not both", hint=_EXAMPLE
        )
    if (unused := {"env", "cwd"} & fields.keys()) and "url" in fields:
        raise ConfigError(f"{location}: a `url` has no `{min(unused)}`", hint="It has `headers`.")
    if (unused := {"headers", "auth"} & fields.keys()) and "command" in fields:
        raise ConfigError(f"{location}: a `command` has no `{min(unused)}`", hint="It has `env`.")
    return ServerSettings(name, origin=location, here=here, **fields)


def _command(value: Any, subject: str) -> tuple[str, ...]:
    words = value if isinstance(value, list) else []
    if words and all(isinstance(word, str) and word.isprintable() for word in words) and words[0]:
        return tuple(words)
    hint = 'Write its words as a list: command: ["npx", "-y", "PACKAGE"].'
    raise ConfigError(f"{subject} has to be a list of words", hint=hint)


def _texts(names: re.Pattern[str], value: Any, subject: str) -> dict[str, str]:
    """Return a mapping of texts. An error does not repeat them: they may be secret."""
    if value is None:
        return {}
    sound = isinstance(value, dict) and all(
        isinstance(name, str) and names.fullmatch(name) and isinstance(text, str | int | float)
        for name, text in value.items()
    )
    if not sound or any("\0" in str(text) or "\n" in str(text) for text in value.values()):
        raise ConfigError(f"{subject} has to hold `NAME: text` lines", hint="Quote the text.")
    return {name: text if isinstance(text, str) else str(text) for name, text in value.items()}


def _env(value: Any, subject: str) -> dict[str, str]:
    return _texts(_VARIABLE, value, subject)


def _headers(value: Any, subject: str) -> dict[str, str]:
    return _texts(_HEADER, value, subject)


def _text(value: Any, subject: str) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise ConfigError(f"{subject} has to be text", hint="Write it in quotes.")


def _url(value: Any, subject: str) -> str:
    url = _text(value, subject)
    if not url.startswith(("http://", "https://")) or " " in url:
        hint = "Write the server's address: url: https://example.com/mcp."
        raise ConfigError(f"{subject} has to begin with http:// or https://", hint=hint)
    return url


def _timeout(value: Any, subject: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS:
        return float(value)
    hint = f"Write how long its start may take, in seconds: up to {MOST_SECONDS:g}."
    raise ConfigError(f"{subject} has to be a number above 0", hint=hint)


def _auth(value: Any, subject: str) -> str:
    if value == "oauth":
        return "oauth"
    raise ConfigError(
        f"{subject} can be `oauth`, and nothing else", hint="A token goes to `headers`."
    )


def _enabled(value: Any, subject: str) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{subject} has to be true or false", hint="Write true or false.")


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


# --- add and remove ----------------------------------------------------------------------------


def add_server(path: Path, server: ServerSettings) -> None:
    """Put a server into that file, in the place of one of the same name. Raise `ConfigError`."""
    check_name(server.name)

    def edit(text: str) -> str:
        return _add_to_text(_remove_from_text(text, server.name, path), server, path)

    _edit(path, server.name, edit, _comparable(server))


def remove_server(path: Path, name: str) -> bool:
    """Take a server out of that file; False if it is not there. Raise `ConfigError`."""
    text = read_text(path, "settings") or ""
    if name not in _servers(text, path):
        return False
    _edit(path, name, lambda before: _remove_from_text(before, name, path), None)
    return True


_Comparable = tuple[Any, ...]  # what a file says of a server, without where it says it


def _edit(path: Path, name: str, edit: Callable[[str], str], expected: _Comparable | None) -> None:
    """Write the edited text if it has the expected server, and all else is the same."""
    text = read_text(path, "settings") or ""
    before = _servers(text, path)
    after = edit(text)
    try:
        now = _servers(after, path)
        sound = now.pop(name, None) == expected and _other_settings(after, path) == _other_settings(
            text, path
        )
    except ConfigError:
        sound = False
    before.pop(name, None)
    if not sound or now != before:
        hint = "Write it there yourself, below `mcp:` and `servers:`."
        raise ConfigError(f"{path}: there is no place for this server in it", hint=hint)
    try:
        replace_file(path, after.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: it cannot be written: {error.strerror}",
            hint="Check that you may write there.",
        ) from error


def _comparable(server: ServerSettings) -> _Comparable:
    return (
        server.command,
        server.env,
        server.cwd,
        server.url,
        server.headers,
        server.timeout,
        server.enabled,
        server.auth,
    )


def _servers(text: str, path: Path) -> dict[str, _Comparable]:
    if not has_content(text):
        return {}
    return {server.name: _comparable(server) for server in parse_own_servers(text, path)}


def _other_settings(text: str, path: Path) -> dict[str, Any]:
    if not has_content(text):
        return {}
    with open_yaml(text, path) as (loader, root):
        settings: Any = loader.construct_object(root, deep=True)
    return {key: value for key, value in settings.items() if key != "mcp"}


def _add_to_text(text: str, server: ServerSettings, path: Path) -> str:
    """Return the text with the server as the first of its section."""
    text = _without_empty_value(text, path)
    place = _insertion_point(text, path)
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    if place is None:
        head = [*lines, ""] if lines else []
        return "\n".join((*head, "mcp:", "  servers:", *_to_yaml(server, 4))) + "\n"
    line, indent, before = place
    new = [*before, *_to_yaml(server, indent)]
    return "\n".join((*lines[:line], *new, *lines[line:])) + "\n"


def _without_empty_value(text: str, path: Path) -> str:
    """Return the text without a `{}` or a `null` in place of the servers."""
    if not has_content(text):
        return text
    with open_yaml(text, path) as (loader, root):
        section = _item_nodes(root, "mcp")
        servers = _item_nodes(section[1], "servers") if section else None
        for node in (root, *(pair[1] for pair in (section, servers) if pair)):
            is_inline = node.id == "scalar" or node.flow_style
            if is_inline and loader.construct_object(node, deep=True) in _EMPTY:
                return _delete_span(text, node.start_mark, node.end_mark)
    return text


def _delete_span(text: str, start: Any, end: Any) -> str:
    """Return the text without what is between two marks; comments after it stay."""
    lines = text.split("\n")
    line = lines[start.line][: start.column] + lines[end.line][end.column :]
    return "\n".join((*lines[: start.line], line.rstrip(), *lines[end.line + 1 :]))


def _insertion_point(text: str, path: Path) -> tuple[int, int, tuple[str, ...]] | None:
    """Where to write the first server: line, indent, and lines to write before it."""
    if not has_content(text):
        return None
    with open_yaml(text, path) as (_, root):
        section = _item_nodes(root, "mcp")
        if section is None:
            return None
        key, node = section
        if node.id != "mapping":  # `mcp:` without a value
            return key.start_mark.line + 1, 4, ("  servers:",)
        servers = _item_nodes(node, "servers")
        if servers is None:
            column = node.start_mark.column
            return node.start_mark.line, column + 2, (" " * column + "servers:",)
        key, node = servers
        if node.id == "mapping" and node.value and not node.flow_style:
            return node.start_mark.line, node.start_mark.column, ()
        return key.start_mark.line + 1, key.start_mark.column + 2, ()


def _item_nodes(node: Any, name: str) -> tuple[Any, Any] | None:
    """Return the nodes of a mapping's key and its value."""
    if node is None or node.id != "mapping":
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _to_yaml(server: ServerSettings, indent: int) -> list[str]:
    """Return the server in YAML. JSON is YAML, and quotes what has to be quoted."""
    fields: list[tuple[str, Any]] = []
    if server.command:
        fields += [("command", list(server.command)), ("env", server.env)]
        fields += [("cwd", server.cwd)] if server.cwd else []
    else:
        fields += [("url", server.url), ("headers", server.headers)]
        fields += [("auth", server.auth)] if server.auth else []
    if server.timeout != SECONDS:
        fields.append(("timeout", server.timeout))
    if not server.enabled:
        fields.append(("enabled", False))
    lines = [
        f"{' ' * (indent + 2)}{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in fields
        if value != {}
    ]
    return [" " * indent + f"{server.name}:", *lines]


def _remove_from_text(text: str, name: str, path: Path) -> str:
    """Return the text without that server's lines; unchanged if it has none."""
    if name not in _servers(text, path):
        return text
    with open_yaml(text, path) as (_, root):
        section = _item_nodes(root, "mcp")
        servers = _item_nodes(section[1], "servers") if section else None
        server = _item_nodes(servers[1], name) if servers else None
        if server is None or servers is None or servers[1].flow_style:
            return text
        key, value = server
        first, last = key.start_mark.line, _last_line(value)
    lines = text.split("\n")
    return "\n".join((*lines[:first], *lines[last + 1 :]))


def _last_line(node: Any) -> int:
    """Return the last line of a value, without comments and empty lines after it."""
    if node.id == "mapping" and node.value and not node.flow_style:
        return _last_line(node.value[-1][1])
    if node.id == "sequence" and node.value and not node.flow_style:
        return _last_line(node.value[-1])
    return int(node.end_mark.line)
