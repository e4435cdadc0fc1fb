"""Copy what the model wrote: the whole answer, or one of its code blocks.

What is copied is pasted elsewhere, often into a shell, so control and invisible characters are
written out, as on the screen. The terminal is asked first (OSC 52), then a program of the desktop;
if neither may have worked, a private file holds the text too.
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
from bridle.tui.dialogs import ChoiceDialog
from bridle.tui.slash.interaction import Item
from bridle.workspace.fs import write_private
from bridle.workspace.text import neutral, one_line, quantity

LARGEST = 74_000  # bytes that terminals accept by OSC 52; many drop more
_PATIENCE = 2.0  # seconds for a program of the desktop
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)")
_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)


class CopyChoice(NamedTuple):
    """Something that can be copied."""

    label: str
    text: str


def copy_choices(answer: str) -> list[CopyChoice]:
    """Return the whole answer, then each of its code blocks."""
    found = [CopyChoice("the whole answer", answer)] if answer.strip() else []
    for number, (language, text) in enumerate(code_blocks(answer), 1):
        first = one_line(text.strip().partition("\n")[0], 60)
        about = f" ({one_line(language, 20)})" if language else ""
        found.append(CopyChoice(f"code {number}{about}: {first}", text))
    return found


def code_blocks(markdown: str) -> list[tuple[str, str]]:
    """Return fenced blocks as language and text; an unclosed one goes to the end."""
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


def neutral_text(text: str) -> str:
    """Return the text as it may be pasted anywhere."""
    return neutral(text.replace("\r\n", "\n"))


def copy_with_program(text: str, environ: Mapping[str, str]) -> bool:
    """Copy with a program of the desktop; return False if there is none or it failed."""
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


def write_copy(text: str, folder: Path) -> Path:
    """Write the text atomically to a private file, and return its path. Raise `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / "copied.txt"
    write_private(place, text.encode())
    return place


def copy_message(text: str, *, told: bool, program: bool, file: Path | None) -> str:
    """Say how much was copied, and where to."""
    size = quantity(len(text), "character")
    if program:
        return size
    if told:
        return f"{size}, if the terminal allows it" + (f"; also saved to {file}" if file else "")
    where = f"saved to {file}" if file else "and no file could be written"
    return f"{size} are too many for the terminal; {where}"


async def copy(app: App[Any], text: str) -> str:
    """Copy the text, made neutral; return a message about it."""
    text = neutral_text(text)
    told = len(text.encode()) <= LARGEST
    if told:
        app.copy_to_clipboard(text)
    program = await asyncio.to_thread(copy_with_program, text, os.environ)
    file = None if program else await asyncio.to_thread(_write_file, text)
    return copy_message(text, told=told, program=program, file=file)


async def copy_answer(app: App[Any], answer: str) -> str:
    """Copy the answer, or the part that the user chooses; return a message, or nothing."""
    pieces = copy_choices(answer)
    if not pieces:
        return "nothing to copy yet"
    if len(pieces) == 1:
        return f"copied: {await copy(app, pieces[0].text)}"
    items = [Item(str(at), piece.label) for at, piece in enumerate(pieces)]
    chosen = await app.push_screen_wait(ChoiceDialog("Copy", items))
    return "" if chosen is None else f"copied: {await copy(app, pieces[int(chosen)].text)}"


def _write_file(text: str) -> Path | None:
    try:
        return write_copy(text, state_folder(os.environ))
    except OSError:
        return None
