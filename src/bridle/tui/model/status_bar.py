"""What the status bar shows, cut to a width. Pure.

What a person must not be wrong about stays longest: the mode is the last thing to go.
"""

from typing import NamedTuple

from bridle.presentation.modes import MODE_TEXTS
from bridle.tui.render.safe_text import clean_line


class Facts(NamedTuple):
    """What is known. Empty: not known yet."""

    mode: str = ""
    then: str = ""  # the mode that was agreed to, as long as it does not hold yet
    model: str = ""
    agent: str = ""
    workspace: str = ""
    branch: str = ""
    sandbox: str = ""
    server: str = ""
    waits: int = 0  # questions of other sessions
    opening: bool = False


class Cell(NamedTuple):
    """One thing on the bar; `tone` is text, dim, accent, warn or bad."""

    text: str
    tone: str = "dim"


_TONES = {"auto": "bad", "plan": "accent", "edits": "warn"}
_GAP = 3


def cells(facts: Facts, width: int) -> list[Cell]:
    """The cells that fit, in their order on the bar."""
    if facts.opening and not facts.mode:
        return [Cell("opening …")]
    ranked = _ranked(facts)
    chosen: list[tuple[int, Cell]] = []
    room = width
    for place, cell in ranked:
        need = len(cell.text) + (_GAP if chosen else 0)
        if need <= room or not chosen:
            chosen.append((place, cell))
            room -= need
    return [cell for _, cell in sorted(chosen, key=lambda one: one[0])]


def _ranked(facts: Facts) -> list[tuple[int, Cell]]:
    """The most important first, each with its place from left to right."""
    ranked = [(0, _mode(facts))]
    if facts.waits:
        ranked.append((1, Cell(f"{facts.waits} waiting elsewhere", "warn")))
    if facts.model:
        ranked.append((2, Cell(clean_line(facts.model, 40), "text")))
    if facts.sandbox:
        none = facts.sandbox == "none"
        said = "no sandbox" if none else f"sandbox {clean_line(facts.sandbox, 20)}"
        ranked.append((6, Cell(said, "warn" if none else "dim")))
    if facts.workspace:
        ranked.append((4, Cell(short_path(clean_line(facts.workspace, 200)))))
    if facts.branch:
        ranked.append((5, Cell(f"⎇ {clean_line(facts.branch, 30)}")))
    if facts.agent and facts.agent != "loop":
        ranked.append((3, Cell(clean_line(facts.agent, 24))))
    if facts.server:
        ranked.append((7, Cell(f"at {clean_line(facts.server, 40)}")))
    return ranked


def _mode(facts: Facts) -> Cell:
    said = _mode_label(facts.mode)
    if facts.then in ("", facts.mode):
        return Cell(said, _TONES.get(facts.mode, "text"))
    then = _mode_label(facts.then)
    return Cell(f"{clean_line(facts.mode, 20)} → {then}", _TONES.get(facts.then, "text"))


def _mode_label(mode: str) -> str:
    labels = (text.label for name, text in MODE_TEXTS.items() if name == mode)
    return next(labels, clean_line(mode, 20))


def short_path(path: str, most: int = 32) -> str:
    """The end of a path, from a folder's name on."""
    if len(path) <= most:
        return path
    parts = path.split("/")
    kept = parts[-1]
    for part in reversed(parts[:-1]):
        if len(part) + len(kept) + 3 > most:
            break
        kept = f"{part}/{kept}"
    return f"…/{kept}"
