"""A server put into the person's settings, or taken out of them.

The file is theirs: every other line stays as it is, and what comes out is read back before it is
kept. Where that does not work, nothing is changed, and they are told to write it themselves.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridle.config.marked import composed, read_text, says_something
from bridle.config.mcp import ServerSettings, check_name, servers_in
from bridle.errors import ConfigError
from bridle.workspace.replacing import replace_file

_Told = tuple[Any, ...]
_NOTHING: tuple[Any, ...] = (None, {}, {"servers": None}, {"servers": {}})


def add_server(path: Path, server: ServerSettings) -> None:
    """Put a server into that file; one of the same name is replaced. Raise `ConfigError`."""
    check_name(server.name)

    def change(text: str) -> str:
        return _with(_without(text, server.name, path), server, path)

    _change(path, server.name, change, _plain(server))


def remove_server(path: Path, name: str) -> bool:
    """Take it out of that file; False where it is not in it. Raise `ConfigError`."""
    text = read_text(path, "settings") or ""
    if name not in _told(text, path):
        return False
    _change(path, name, lambda said: _without(said, name, path), None)
    return True


def _change(path: Path, name: str, change: Callable[[str], str], wanted: _Told | None) -> None:
    """Write what comes out, if it says of that server what is wanted, and of all else the same."""
    text = read_text(path, "settings") or ""
    before = _told(text, path)
    after = change(text)
    try:
        now = _told(after, path)
        sound = now.pop(name, None) == wanted and _others(after, path) == _others(text, path)
    except ConfigError:
        sound = False
    before.pop(name, None)
    sound = sound and now == before
    if not sound:
        hint = "Write it there yourself, below `mcp:` and `servers:`."
        raise ConfigError(f"{path}: there is no place for this server in it", hint=hint)
    try:
        replace_file(path, after.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: it cannot be written: {error.strerror}",
            hint="Check that you may write there.",
        ) from error


def _plain(one: ServerSettings) -> _Told:
    return (one.command, one.env, one.cwd, one.url, one.headers, one.timeout, one.enabled, one.auth)


def _told(text: str, path: Path) -> dict[str, _Told]:
    if not says_something(text):
        return {}
    return {one.name: _plain(one) for one in servers_in(text, path)}


def _others(text: str, path: Path) -> dict[str, Any]:
    """What the file says besides."""
    if not says_something(text):
        return {}
    with composed(text, path) as (loader, root):
        found: Any = loader.construct_object(root, deep=True)
    return {key: value for key, value in found.items() if key != "mcp"}


def _with(text: str, server: ServerSettings, path: Path) -> str:
    """The text with the server as the first of its section."""
    text = _opened(text, path)
    spot = _spot(text, path)
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    if spot is None:
        head = [*lines, ""] if lines else []
        return "\n".join((*head, "mcp:", "  servers:", *_written(server, 4))) + "\n"
    line, indent, before = spot
    new = [*before, *_written(server, indent)]
    return "\n".join((*lines[:line], *new, *lines[line:])) + "\n"


def _opened(text: str, path: Path) -> str:
    """The text without a `{}` or a `null` in the place where servers are to stand."""
    if not says_something(text):
        return text
    with composed(text, path) as (loader, root):
        section = _value(root, "mcp")
        servers = _value(section[1], "servers") if section else None
        places = [root, *(pair[1] for pair in (section, servers) if pair)]
        for node in places:
            if _is_inline(node) and loader.construct_object(node, deep=True) in _NOTHING:
                return _cut_out(text, node.start_mark, node.end_mark)
    return text


def _is_inline(node: Any) -> bool:
    return node.id == "scalar" or bool(node.flow_style)


def _cut_out(text: str, start: Any, end: Any) -> str:
    """The text without what stands between two marks; comments after it stay."""
    lines = text.split("\n")
    line = lines[start.line][: start.column] + lines[end.line][end.column :]
    return "\n".join((*lines[: start.line], line.rstrip(), *lines[end.line + 1 :]))


def _spot(text: str, path: Path) -> tuple[int, int, tuple[str, ...]] | None:
    """Where the first server would stand: line, indent, what has to be written before it."""
    if not says_something(text):
        return None
    with composed(text, path) as (_, root):
        section = _value(root, "mcp")
        if section is None:
            return None
        key, node = section
        if node.id != "mapping":  # `mcp:` with nothing behind it
            return key.start_mark.line + 1, 4, ("  servers:",)
        found = _value(node, "servers")
        if found is None:
            column = node.start_mark.column
            return node.start_mark.line, column + 2, (" " * column + "servers:",)
        head, servers = found
        if servers.id == "mapping" and servers.value and not servers.flow_style:
            return servers.start_mark.line, servers.start_mark.column, ()
        return head.start_mark.line + 1, head.start_mark.column + 2, ()


def _value(node: Any, name: str) -> tuple[Any, Any] | None:
    if node is None or node.id != "mapping":
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _written(server: ServerSettings, indent: int) -> list[str]:
    """The server in YAML. JSON is YAML, and quotes what has to be quoted."""
    found: list[tuple[str, Any]] = []
    if server.command:
        found += [("command", list(server.command)), ("env", server.env), ("cwd", server.cwd)]
    else:
        found += [("url", server.url), ("headers", server.headers)]
        found += [("auth", server.auth)] if server.auth else []
    if server.timeout != ServerSettings("x").timeout:
        found.append(("timeout", server.timeout))
    if not server.enabled:
        found.append(("enabled", False))
    said = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in found if value != {}
    ]
    said = [line for line in said if line != 'cwd: ""']
    return [" " * indent + f"{server.name}:", *(" " * (indent + 2) + line for line in said)]


def _without(text: str, name: str, path: Path) -> str:
    """The text without that server's lines; as it is where it has none."""
    if name not in _told(text, path):
        return text
    with composed(text, path) as (_, root):
        section = _value(root, "mcp")
        servers = _value(section[1], "servers") if section else None
        found = _value(servers[1], name) if servers else None
        if found is None or servers is None or servers[1].flow_style:
            return text
        key, value = found
        first, last = key.start_mark.line, _end(value)
    lines = text.split("\n")
    return "\n".join((*lines[:first], *lines[last + 1 :]))


def _end(node: Any) -> int:
    """The last line of a value; comments and empty lines after it are not part of it."""
    if node.id == "mapping" and node.value and not node.flow_style:
        return _end(node.value[-1][1])
    if node.id == "sequence" and node.value and not node.flow_style:
        return _end(node.value[-1])
    return int(node.end_mark.line)
