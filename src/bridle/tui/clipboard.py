"""Copies what the model said: the whole answer, or one of its blocks of code. Neutral text only.

Whatever is copied is pasted somewhere, often into a shell: control characters and what cannot be
seen are written out, as on the screen. The terminal is asked first (OSC 52), then a program of the
desktop; where neither may have worked, a private file holds it too.
"""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App

from bridle.config.paths import state_folder
from bridle.tui.dialogs import Choose
from bridle.tui.slash.interaction import Item
from bridle.workspace.fs import write_private
from bridle.workspace.text import neutral, one_line, quantity

LARGEST = 74_000  # bytes that terminals take by OSC 52; more is dropped by many
_PATIENCE = 2.0  # seconds for a program of the desktop
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)")
_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)


class Piece(NamedTuple):
    """Something that can be copied."""

    label: str
    text: str


def pieces_of(answer: str) -> list[Piece]:
    """The whole answer, then each of its blocks of code."""
    found = [Piece("the whole answer", answer)] if answer.strip() else []
    for number, (language, text) in enumerate(code_blocks(answer), 1):
        first = one_line(text.strip().partition("\n")[0], 60)
        about = f" ({one_line(language, 20)})" if language else ""
        found.append(Piece(f"code {number}{about}: {first}", text))
    return found


def code_blocks(markdown: str) -> list[tuple[str, str]]:
    """Fenced blocks as language and text; one that was never closed goes to the end."""
    found: list[tuple[str, str]] = []
    fence, language, lines = "", "", list[str]()
    for line in markdown.split("\n"):
        match = _FENCE.fullmatch(line.removesuffix("\r"))
        if not fence and match:
            fence, language, lines = match[1], match[2].strip().split(" ")[0], []
        elif fence and match and match[1].startswith(fence) and not match[2].strip():
            found.append((language, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    return [*found, (language, "\n".join(lines))] if fence else found


def copyable(text: str) -> str:
    """As it may be pasted anywhere."""
    return neutral(text.replace("\r\n", "\n"))


def by_program(text: str, environ: Mapping[str, str]) -> bool:
    """Hand it to a program of the desktop; False where there is none, or it failed."""
    for variable, command in _PROGRAMS:
        found = shutil.which(command[0], path=environ.get("PATH"))
        if not environ.get(variable) or found is None:
            continue
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                (found, *command[1:]),
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE,
                check=True,
            )
            return True
    return False


def to_file(text: str, folder: Path) -> Path:
    """A file that only its owner can read, there whole or not at all. Raise `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / "copied.txt"
    write_private(place, text.encode())
    return place


def copied_words(text: str, *, told: bool, program: bool, file: Path | None) -> str:
    """How much went where."""
    size = quantity(len(text), "character")
    if program:
        return size
    if told:
        return f"{size}, if the terminal allows it" + (f"; also in {file}" if file else "")
    where = f"they are in {file}" if file else "and no file could be written"
    return f"{size} are too many for the terminal, {where}"


async def copy(app: App[Any], text: str) -> str:
    """Copy it, neutral; how much went where."""
    text = copyable(text)
    told = len(text.encode()) <= LARGEST
    if told:
        app.copy_to_clipboard(text)
    program = await asyncio.to_thread(by_program, text, os.environ)
    file = None if program else await asyncio.to_thread(_kept, text)
    return copied_words(text, told=told, program=program, file=file)


async def copy_piece(app: App[Any], answer: str) -> str:
    """Copy the answer, or what the person chooses of it; empty where they leave it."""
    pieces = pieces_of(answer)
    if not pieces:
        return "there is no answer to copy yet"
    if len(pieces) == 1:
        return f"copied: {await copy(app, pieces[0].text)}"
    items = [Item(str(at), piece.label) for at, piece in enumerate(pieces)]
    chosen = await app.push_screen_wait(Choose("Copy", items))
    return "" if chosen is None else f"copied: {await copy(app, pieces[int(chosen)].text)}"


def _kept(text: str) -> Path | None:
    try:
        return to_file(text, state_folder(os.environ))
    except OSError:
        return None
