"""Copies from the screen: hands text to whoever can keep it, and lets the person choose a piece."""

import asyncio
import os
from pathlib import Path
from typing import Any

from textual.app import App

from bridle.config.paths import state_folder
from bridle.tui.copying import LARGEST, by_program, copied_words, copyable, pieces_of, to_file
from bridle.tui.dialogs import Choose, Item


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
