"""Files of hooks, in YAML. Parses them; runs nothing.

A file that cannot be understood is refused with its line and what was expected: a hook that is
ignored protects nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from bridle.config.yaml_file import has_content, items_of, location_of, open_yaml
from bridle.errors import ConfigError
from bridle.protocols.hooks import Moment

MOMENTS: tuple[Moment, ...] = get_args(Moment)
SECONDS = 10.0
MOST_SECONDS = 600.0
_KEYS = ("on", "tool", "run", "seconds")
_EXAMPLE = (
    'For example `hooks:`, and below it `- on: before_tool`, `tool: write`, `run: ["./check"]`.'
)


class CommandLine(Struct, frozen=True):
    """A command that is a hook: at which moments, for which tools, and how long it may take.

    A string is run by the shell; a list of words is run as it is. `origin` is `file:line`. The
    command runs in the folder of that file, so that `./check` is the script beside it.
    """

    moments: tuple[Moment, ...]
    run: str | tuple[str, ...]
    tools: tuple[str, ...] = ("*",)
    seconds: float = SECONDS
    origin: str = ""

    @property
    def words(self) -> str:
        """The command, for a person."""
        return self.run if isinstance(self.run, str) else " ".join(self.run)

    @property
    def summary(self) -> str:
        """When it runs and what, on one line."""
        tools = "" if self.tools == ("*",) else f" of {', '.join(self.tools)}"
        return f"{', '.join(self.moments)}{tools}: {self.words}"


def parse_hooks(text: str, path: Path) -> tuple[CommandLine, ...]:
    """Parse a file of hooks. Raise `ConfigError` with the file, the line and what was expected."""
    if not has_content(text):
        return ()
    with open_yaml(text, path) as (loader, root):
        return tuple(_hook(loader, item, path) for item in _entries(root, path))


def _entries(root: Any, path: Path) -> Iterator[Any]:
    """Yield the entries of `hooks:`, or of a bare list."""
    if root is None:
        return
    if root.id == "sequence":
        yield from root.value
        return
    for key, node, location in items_of(root, path, "the file", _EXAMPLE):
        if key != "hooks":
            raise ConfigError(f"{location}: there is no `{key}` in a file of hooks", hint=_EXAMPLE)
        if node.id == "sequence":
            yield from node.value
        elif node.id != "scalar" or node.value:
            raise ConfigError(f"{location}: `hooks` has to be a list", hint=_EXAMPLE)


def _hook(loader: Any, node: Any, path: Path) -> CommandLine:
    fields = {
        key: (value, location) for key, value, location in items_of(node, path, "a hook", _EXAMPLE)
    }
    location = location_of(node, path)
    for key, (_, location_of_key) in fields.items():
        if key not in _KEYS:
            hint = f"A hook has {', '.join(_KEYS)}."
            raise ConfigError(f"{location_of_key}: there is no `{key}` in a hook", hint=hint)
    for key in ("on", "run"):
        if key not in fields:
            raise ConfigError(f"{location}: this hook does not say `{key}`", hint=_EXAMPLE)
    moments = _moments(loader, *fields["on"])
    return CommandLine(
        moments=moments,
        run=_command(loader, *fields["run"]),
        tools=_tools(loader, *fields["tool"], moments) if "tool" in fields else ("*",),
        seconds=_seconds(loader, *fields["seconds"]) if "seconds" in fields else SECONDS,
        origin=location,
    )


def _moments(loader: Any, node: Any, location: str) -> tuple[Moment, ...]:
    known: dict[str, Moment] = {moment: moment for moment in MOMENTS}
    names = _texts(loader, node)
    if not names or any(name not in known for name in names):
        raise ConfigError(
            f"{location}: `on` has to name a moment, or a list of them",
            hint=f"There are {', '.join(MOMENTS)}.",
        )
    return tuple(dict.fromkeys(known[name] for name in names))


def _tools(loader: Any, node: Any, location: str, moments: tuple[Moment, ...]) -> tuple[str, ...]:
    if not any(moment.endswith("_tool") for moment in moments):
        hint = "Leave it out, or use the moment before_tool or after_tool."
        raise ConfigError(f"{location}: a prompt and a turn have no `tool`", hint=hint)
    names = _texts(loader, node)
    if not names or any(" " in name for name in names):
        hint = "Write `tool: write`, `tool: [write, edit, apply_patch]`, or `tool: mcp_*`."
        raise ConfigError(f"{location}: `tool` has to be the name of a tool, or a list", hint=hint)
    return names


def _command(loader: Any, node: Any, location: str) -> str | tuple[str, ...]:
    words = _texts(loader, node, lines=True)
    if words:
        return words[0] if node.id == "scalar" else words
    hint = 'Write `run: ["./check", "--fast"]`, or one line for the shell: `run: ./check >&2`.'
    raise ConfigError(f"{location}: `run` has to be a command", hint=hint)


def _seconds(loader: Any, node: Any, location: str) -> float:
    value = loader.construct_object(node, deep=True)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS:
        return float(value)
    hint = f"Write how long it may take, in seconds: up to {MOST_SECONDS:g}; without it, 10."
    raise ConfigError(f"{location}: `seconds` has to be a number above 0", hint=hint)


def _texts(loader: Any, node: Any, *, lines: bool = False) -> tuple[str, ...]:
    """A text or a list of texts; nothing if it is anything else. `lines` allows several lines."""
    value = loader.construct_object(node, deep=True)
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            return ()
        visible = text.replace("\n", "").replace("\t", "") if lines else text
        if not visible.isprintable():
            return ()
    return tuple(texts)
