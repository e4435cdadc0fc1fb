"""The screen without colors, for `NO_COLOR`: attributes take their place.

What stands out by its background (the cursor, a selection) is reversed, what is secondary is dim,
bold stays bold. Grays are colors too.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter, Monochrome, NoColor

from bridle.tui.render.palette import Palette

_STANDS_OUT = 0.2  # of the way from black to white, between a ground and the window's own


def without_color_filters(filters: Iterable[LineFilter]) -> list[LineFilter]:
    """Return the filters without those that change colors."""
    return [one for one in filters if not isinstance(one, Monochrome | NoColor)]


class NoColorFilter(LineFilter):
    """Take the colors out of every line that is drawn."""

    def __init__(self, palette: Callable[[], Palette]) -> None:
        super().__init__()
        self._palette = palette

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        palette = self._palette()
        ground, faint = palette.background, palette.dim
        if ground == "default":  # nothing in it is told by its colour
            ground = faint = "#000000"
        return [
            Segment(text, attributes_only(style, ground, faint) if style else None, control)
            for text, style, control in segments
        ]


@lru_cache(1024)
def attributes_only(style: Style, ground: str, faint: str) -> Style:
    """Return a style without its colors; `faint` is the color that means dim."""
    stands_out = _stands_out(style.bgcolor, Color.parse(ground))
    is_faint = style.color is not None and _same(style.color, Color.parse(faint))
    return Style(
        bold=style.bold,
        dim=style.dim or (is_faint and not stands_out) or None,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=bool(style.reverse) != stands_out or None,
        link=style.link,
        meta=style.meta or None,
    )


def _stands_out(colour: RichColor | None, ground: Color) -> bool:
    if colour is None or colour.is_default:
        return False
    if colour.triplet is None:  # one of the terminal's own: black and white are its grounds
        return colour.number not in (0, 7, 15)
    return abs(Color(*colour.triplet).brightness - ground.brightness) > _STANDS_OUT


def _same(colour: RichColor, other: Color) -> bool:
    return colour.triplet is not None and tuple(colour.triplet) == other.rgb
