"""The styles of a palette, as Rich has them. Knows no block and no widget."""

from rich.style import Style

from bridle.tui.block_palette import Palette


class Pen:
    """The styles of a palette."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        self.base = Style(color=palette.text, bgcolor=palette.background)
        self.text = Style(color=palette.text)
        self.bold = Style(color=palette.text, bold=True)
        self.dim = Style(color=palette.dim)
        self.accent = Style(color=palette.accent)
        self.tones = {
            "dim": self.dim,
            "good": Style(color=palette.good),
            "warn": Style(color=palette.warn),
            "bad": Style(color=palette.bad),
        }
        self.added = Style(color=palette.good, bgcolor=palette.added)
        self.removed = Style(color=palette.bad, bgcolor=palette.removed)
        self.ground = Style(color=palette.text, bgcolor=palette.panel)
        self.prompt = Style(color=palette.accent, bgcolor=palette.panel, bold=True)
