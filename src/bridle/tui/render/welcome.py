"""What an empty conversation shows: a name and three hints."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from bridle.tui.render.pen import Pen

EDGE = 1  # columns left free at both sides
STEP = 40  # blocks that come at once when somebody looks back
_LINES = (
    ("bridle", "bold"),
    ("", "dim"),
    ("Describe a task and press Enter.", "dim"),
    ("/ lists commands, @ completes file names, F1 shows the keys.", "dim"),
)
_SHORT = (("bridle", "bold"), ("", "dim"), ("F1 shows the keys.", "dim"))


def welcome(y: int, size: Size, pen: Pen) -> Strip | None:
    """Return one line of it."""
    lines = _LINES if size.width > 64 else _SHORT
    at = y - max(0, (size.height - len(lines)) // 2)
    if not 0 <= at < len(lines):
        return None
    text, style = lines[at]
    left = max(0, (size.width - cell_len(text)) // 2 - 1)
    return Strip([Segment(" " * left), Segment(text, pen.bold if style == "bold" else pen.dim)])
