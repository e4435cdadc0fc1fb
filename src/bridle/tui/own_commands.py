"""A user's own `/` commands: Markdown files, whose name is the command and whose text the prompt.

`review.md` is `/review`; `$ARGUMENTS` stands for what is typed behind it. What the first line says
after `#`, or `description:` in a head between `---`, is its meaning in lists. Reads files with
bounds and runs nothing; whether a folder's own commands may be read is the caller's to say.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from bridle.config.paths import policy_file
from bridle.presentation.commands import Command, command_of
from bridle.workspace.fs import READ
from bridle.workspace.text import one_line

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_LARGEST = 100_000  # bytes
_MOST = 200  # files of a folder
_HEAD = re.compile(r"\A---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.S)
_FIELD = re.compile(r"^(description|argument-hint):[ \t]*(.*)$", re.M)
_SLOT = "$ARGUMENTS"


def own_commands(folder: Path, trusted: Iterable[tuple[str, bytes]] = ()) -> tuple[Command, ...]:
    """The commands of the user's folder, and of files that the user trusts: path and content.

    Of two of one name the user's counts. What is no command (a strange name, a link, too large, no
    text) is left out, and so is one that has the name of one of ours.
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


def own_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's own lie."""
    return policy_file(environ).parent / "commands"


def prompt_of(command: Command, arguments: str) -> str:
    """The prompt that a user's own command stands for, as its file was when it was listed."""
    body = command.text
    if _SLOT in body:
        return body.replace(_SLOT, arguments)
    return f"{body}\n\n{arguments}".strip() if arguments else body


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
    argument = f"[{hint.strip('[]')}]" if hint else "[WORDS]" if _SLOT in body else ""
    return Command(name=name, argument=argument, meaning=meaning, own=path, text=body)
