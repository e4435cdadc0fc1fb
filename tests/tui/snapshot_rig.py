"""A screen as a text file: what is on it, and below it how each cell is painted.

What differs from run to run (times, folders) is masked, by as many characters. `make snapshots`
writes the files anew: look at what has changed before you keep it.
"""

import os
import re
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).with_name("snapshots")
RENEW = os.environ.get("SNAPSHOTS") == "renew"  # read before tests clean their environment
_LETTERS = "·abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + "".join(
    map(chr, range(0x370, 0x400))
)
_VARYING = (
    re.compile(r"(?<![\d.])\d+(?:\.\d)?(?= s\b)"),
    re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}"),
    re.compile(r"\d\d:\d\d(?::\d\d)?"),
    re.compile(r"(?<=bridle-shot-)[a-z0-9_]{8}"),
    re.compile(r"[⠀-⣿]"),
)


def picture(app):
    """The screen of an app: lines of text, a legend of styles, and a letter for each cell."""
    screen = app.screen
    width, height = screen.size
    legend, lines, grid = {}, [], []
    for strip in screen._compositor.render_strips()[:height]:
        text, row = "", ""
        for segment in strip:
            letter = legend.setdefault(_style(segment.style), _LETTERS[len(legend) % len(_LETTERS)])
            text += segment.text
            row += letter * len(segment.text)
        lines.append(masked(text).rstrip())
        grid.append(row)
    styles = [f"{letter} {style}" for style, letter in legend.items()]
    head = f"{width}×{height}"
    return "\n".join([head, *lines, "", "styles", *styles, "", "cells", *grid]) + "\n"


async def still(pilot):
    """Cursors stand still, and what is on its way is drawn: a picture is of no moment."""
    await pilot.pause(0.1)
    while any(one.group == "looking" and not one.is_finished for one in pilot.app.workers):
        await pilot.pause(0.02)
    screens = pilot.app.screen_stack
    for field in [
        one for screen in screens for one in screen.query("PromptInput, TextArea, Input")
    ]:
        field.cursor_blink = False
        field._pause_blink()
        field._cursor_visible = True
        if (drawn := getattr(field, "_line_cache", None)) is not None:
            drawn.clear()  # a line in whose moment the cursor was away looks the same to it
            field.refresh()
    await pilot.pause()


def masked(text):
    for pattern in _VARYING:
        text = pattern.sub(lambda found: "#" * len(found[0]), text)
    return text


def _style(style):
    if style is None:
        return "plain"
    names = ("bold", "dim", "italic", "underline", "reverse", "strike")
    attributes = [name for name in names if getattr(style, name)]
    ground = f"on {style.bgcolor.name}" if style.bgcolor else ""
    return " ".join(filter(None, (style.color.name if style.color else "", ground, *attributes)))


def compare(name, app):
    """Is the screen what the file says? With the variable set, the file says it from now on."""
    file = FOLDER / f"{name}.txt"
    found = picture(app)
    if RENEW:
        FOLDER.mkdir(exist_ok=True)
        file.write_text(found, "utf-8")
    assert file.exists(), f"there is no {file.name}: make snapshots"
    kept = file.read_text("utf-8")
    changed = "\n".join(unified_diff(kept.splitlines(), found.splitlines(), "kept", name, n=0))
    assert not changed, (
        "the screen looks otherwise; if it should: make snapshots, and look at what changed\n"
        + changed
    )
