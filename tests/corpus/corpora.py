"""Reads the corpora: one command a line, with a mark, in files beside this one.

Knows nothing of how a command is judged.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Hostile(NamedTuple):
    """A command that must not run unasked; a `final` one must not run at all."""

    row: str
    command: str
    final: bool


def marked(path):
    """(mark, command) of each line that is no comment."""
    for line in path.read_text("utf-8").split("\n"):
        if line and not line.startswith("#"):
            mark, _, command = line.partition(" ")
            yield mark, command


def hostile():
    """Every hostile command, in order."""
    found = []
    for path in sorted((FOLDER / "hostile").glob("*.txt")):
        row = re.sub(r"^\d+-|\.txt$", "", path.name)
        for mark, command in marked(path):
            assert mark in {"-", "!", "j"}, (path.name, mark)
            text = json.loads(command) if mark == "j" else command
            found.append(Hostile(row, text, mark == "!"))
    return found


def everyday(mark):
    """The commands of an ordinary day that run unasked (`+`), or ask (`?`)."""
    return [command for found, command in marked(FOLDER / "everyday.txt") if found == mark]
