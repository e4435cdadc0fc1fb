"""The styles of a palette, as Rich has them. Knows no block and no widget."""

from rich.style import Style

from bridle.tui.render.palette import FAINT, Palette


def ink(colour: str, *, bold: bool | None = None, italic: bool | None = None) -> Style:
    """Text in a colour of the palette."""
    if colour == FAINT:
        return Style(dim=True, bold=bold, italic=italic)
    return Style(color=colour, bold=bold, italic=italic)


class Pen:
    """The styles of a palette."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        self.base = Style(color=palette.text, bgcolor=palette.background)
        self.text = ink(palette.text)
        self.bold = ink(palette.text, bold=True)
        self.dim = ink(palette.dim)
        self.accent = ink(palette.accent)
        self.tones = {
            "dim": self.dim,
            "good": ink(palette.good),
            "warn": ink(palette.warn),
            "bad": ink(palette.bad),
        }
        self.added = Style(color=palette.good, bgcolor=palette.added)
        self.removed = Style(color=palette.bad, bgcolor=palette.removed)
        self.ground = Style(color=palette.text, bgcolor=palette.panel)
        self.prompt = Style(color=palette.accent, bgcolor=palette.panel, bold=True)
        self.chosen = _ground(palette.panel)
        self.marked = _ground(palette.marked)


def _ground(colour: str) -> Style:
    """A ground that stands out; what has the terminal's own is reversed."""
    return Style(reverse=True) if colour == "default" else Style(bgcolor=colour)
