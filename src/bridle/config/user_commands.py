"""Load a user's own slash commands: Markdown files, named after the command, that hold its prompt.

`review.md` is `/review`; `$ARGUMENTS` stands for what is typed after it. Lists show its first line,
or `description:` in a head between `---`. The caller decides whether a folder's commands are
trusted.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from bridle.config.paths import policy_file
from bridle.presentation.commands import ARGUMENTS, Command, command_of
from bridle.workspace.fs import READ
from bridle.workspace.text import one_line

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_LARGEST = 100_000  # bytes
_MOST = 200  # files of a folder
_HEAD = re.compile(r"\A---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.S)
_FIELD = re.compile(r"^(description|argument-hint):[ \t]*(.*)$", re.M)


def load_user_commands(
    folder: Path, trusted: Iterable[tuple[str, bytes]] = ()
) -> tuple[Command, ...]:
    """Return the commands in the user's folder and in trusted files, given as path and content.

    If two have the same name, the user's is returned. Files that are no commands (an invalid name,
    a link, too large, not text) are left out, and so are names of built-in commands.
    """
    found: dict[str, Command] = {}
    mine = ((str(path), _read(path)) for path in _files(folder))
    for path, data in (*mine, *trusted):
        name = Path(path).stem
        if name in found or command_of(name) is not None or not _NAME.fullmatch(name):
            continue
        if text := _text(data):
            found[name] = _command(name, text, path)
    return tuple(found[name] for name in sorted(found))


def user_command_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the user's own commands."""
    return policy_file(environ).parent / "commands"


def _files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in entries if one.name.endswith(".md")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)[:_MOST]]


def _read(path: Path) -> bytes | None:
    try:
        handle = os.open(path, READ)
        with os.fdopen(handle, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(handle).st_mode)
            return file.read(_LARGEST + 1) if is_file else None
    except OSError:
        return None


def _text(data: bytes | None) -> str | None:
    try:
        return data.decode() if data is not None and len(data) <= _LARGEST else None
    except UnicodeDecodeError:
        return None


def _command(name: str, text: str, path: str) -> Command:
    head = _HEAD.match(text)
    said = dict(_FIELD.findall(head[1])) if head else {}
    body = _HEAD.sub("", text, 1).strip()
    first = body.partition("\n")[0].lstrip("# ").strip()
    meaning = one_line(said.get("description", "").strip("\"' ") or first or "your own", 100)
    hint = one_line(said.get("argument-hint", "").strip("\"' "), 30)
    argument = f"[{hint.strip('[]')}]" if hint else "[WORDS]" if ARGUMENTS in body else ""
    return Command(name=name, argument=argument, meaning=meaning, own=path, text=body)
