"""Files of hooks: the person's own, and that of a folder which they trust. YAML, each with a line.

A file that cannot be understood is refused with its line and what was expected: a hook that stands
before something and is not heard protects nothing. Reads what is to be run; runs nothing.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from bridle.config.marked import composed, decoded, pairs, place_of, read_text, says_something
from bridle.config.places import hooks_file, state_folder
from bridle.config.trust import HOOKS, Trust
from bridle.errors import ConfigError
from bridle.promises.hooks import Moment

MOMENTS: tuple[Moment, ...] = get_args(Moment)
SECONDS = 10.0
MOST_SECONDS = 600.0
_KEYS = ("on", "tool", "run", "seconds")
_EXAMPLE = (
    'For example `hooks:`, and below it `- on: before_tool`, `tool: write`, `run: ["./check"]`.'
)


class CommandLine(Struct, frozen=True):
    """A command that is a hook: at which moments, for which tools, and how long it may take.

    One string is for the shell; the words of a list are run as they are. `origin` is `file:line`;
    it runs in the folder of that file, so that `./check` is the script beside it.
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
        """When and what, on one line."""
        tools = "" if self.tools == ("*",) else f" of {', '.join(self.tools)}"
        return f"{', '.join(self.moments)}{tools}: {self.words}"


class StandingHooks(Struct, frozen=True):
    """The hooks of the files that count in a folder, and what deserves a word, with a hint."""

    lines: tuple[CommandLine, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def standing_hooks(root: str | Path, environ: Mapping[str, str] | None = None) -> StandingHooks:
    """The person's hooks, then those of the folder where it is trusted. Raise `ConfigError`."""
    environ = os.environ if environ is None else environ
    mine, theirs = hooks_file(environ), Path(root, HOOKS)
    lines = parse_hooks(read_text(mine, "hooks") or "", mine)
    if not os.path.lexists(theirs):
        return StandingHooks(lines)
    data = Trust(state_folder(environ)).hooks(root)
    if data is None:
        note = "this folder has its own hooks, which do not run"
        hint = "`bridle trust` shows them and lets you accept them."
        return StandingHooks(lines, ((note, hint),))
    return StandingHooks(lines + parse_hooks(decoded(data, theirs, "hooks"), theirs))


def parse_hooks(text: str, path: Path) -> tuple[CommandLine, ...]:
    """The hooks in a text. Raise `ConfigError` with the file, the line and what was expected."""
    if not says_something(text):
        return ()
    with composed(text, path) as (loader, root):
        return tuple(_hook(loader, item, path) for item in _items(root, path))


def _items(root: Any, path: Path) -> Iterator[Any]:
    """The entries of `hooks:`, or of a bare list."""
    if root is None:
        return
    if root.id == "sequence":
        yield from root.value
        return
    for key, node, place in pairs(root, path, "the file", _EXAMPLE):
        if key != "hooks":
            raise ConfigError(f"{place}: there is no `{key}` in a file of hooks", hint=_EXAMPLE)
        if node.id == "sequence":
            yield from node.value
        elif node.id != "scalar" or node.value:
            raise ConfigError(f"{place}: `hooks` has to be a list", hint=_EXAMPLE)


def _hook(loader: Any, node: Any, path: Path) -> CommandLine:
    found = {key: (value, place) for key, value, place in pairs(node, path, "a hook", _EXAMPLE)}
    place = place_of(node, path)
    for key, (_, where) in found.items():
        if key not in _KEYS:
            hint = f"A hook has {', '.join(_KEYS)}."
            raise ConfigError(f"{where}: there is no `{key}` in a hook", hint=hint)
    for key in ("on", "run"):
        if key not in found:
            raise ConfigError(f"{place}: this hook does not say `{key}`", hint=_EXAMPLE)
    moments = _moments(loader, *found["on"])
    tools = _tools(loader, *found["tool"], moments) if "tool" in found else ("*",)
    seconds = _seconds(loader, *found["seconds"]) if "seconds" in found else SECONDS
    return CommandLine(moments, _command(loader, *found["run"]), tools, seconds, place)


def _moments(loader: Any, node: Any, place: str) -> tuple[Moment, ...]:
    known: dict[str, Moment] = {one: one for one in MOMENTS}
    said = _texts(loader, node)
    if not said or any(one not in known for one in said):
        raise ConfigError(
            f"{place}: `on` has to name a moment, or a list of them",
            hint=f"There are {', '.join(MOMENTS)}.",
        )
    return tuple(dict.fromkeys(known[one] for one in said))


def _tools(loader: Any, node: Any, place: str, moments: tuple[Moment, ...]) -> tuple[str, ...]:
    if not any(one.endswith("_tool") for one in moments):
        hint = "Leave it out, or hear before_tool or after_tool."
        raise ConfigError(f"{place}: a prompt and a turn have no `tool`", hint=hint)
    said = _texts(loader, node)
    if not said or any(" " in one for one in said):
        hint = "Write `tool: write`, `tool: [write, edit, apply_patch]`, or `tool: mcp_*`."
        raise ConfigError(f"{place}: `tool` has to be the name of a tool, or a list", hint=hint)
    return said


def _command(loader: Any, node: Any, place: str) -> str | tuple[str, ...]:
    said = _texts(loader, node, lines=True)
    if said and node.id == "scalar":
        return said[0]
    if said:
        return said
    hint = 'Write `run: ["./check", "--fast"]`, or one line for the shell: `run: ./check >&2`.'
    raise ConfigError(f"{place}: `run` has to be a command", hint=hint)


def _seconds(loader: Any, node: Any, place: str) -> float:
    value = loader.construct_object(node, deep=True)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS:
        return float(value)
    hint = f"Write how long it may take, in seconds: up to {MOST_SECONDS:g}; 10 if nothing is said."
    raise ConfigError(f"{place}: `seconds` has to be a number above 0", hint=hint)


def _texts(loader: Any, node: Any, *, lines: bool = False) -> tuple[str, ...]:
    """One text or a list of them; nothing where it is anything else."""
    value = loader.construct_object(node, deep=True)
    found = value if isinstance(value, list) else [value]
    for one in found:
        seen = one.replace("\n", "").replace("\t", "") if lines and isinstance(one, str) else one
        if not isinstance(seen, str) or not seen.strip() or not seen.isprintable():
            return ()
    return tuple(found)
