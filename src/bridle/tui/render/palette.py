"""The few colours of the screen, for dark and for light windows. Values; no widget.

A colour means one thing: accent is the person and what is active, good and bad how things came
out, warn what wants a look. Everything else is text or dim.
"""

from typing import NamedTuple

FAINT = "faint"  # no colour of its own: the terminal's text, dimmed


class Palette(NamedTuple):
    """Colours as #rrggbb, or names of the terminal's own; `code` names the highlighter's style.

    Without any, the terminal's own.
    """

    name: str
    dark: bool
    accent: str
    code: str
    background: str = "default"
    surface: str = "default"
    panel: str = "default"
    text: str = "default"
    dim: str = FAINT
    good: str = "green"
    warn: str = "yellow"
    bad: str = "red"
    added: str = "default"
    removed: str = "default"
    marked: str = "default"  # the ground of text that is marked with the mouse


DARK = Palette(
    name="bridle-dark",
    dark=True,
    accent="#7fb4d6",
    code="nord-darker",
    background="#14161a",
    surface="#1a1d22",
    panel="#22262d",
    text="#d4d8de",
    dim="#8b929e",
    good="#8bbf86",
    warn="#d8b26a",
    bad="#e08080",
    added="#1b2a20",
    removed="#2e1f22",
    marked="#38597a",
)
LIGHT = Palette(
    name="bridle-light",
    dark=False,
    accent="#1d6a94",
    code="friendly",
    background="#fbfaf7",
    surface="#f4f2ed",
    panel="#ebe8e1",
    text="#23262c",
    dim="#5f646d",
    good="#3a7a36",
    warn="#8a5c00",
    bad="#b0342c",
    added="#e2f0dd",
    removed="#f8e2df",
    marked="#b5d5ea",
)
PLAIN_DARK = Palette(name="ansi-dark", dark=True, accent="cyan", code="ansi_dark")
PLAIN_LIGHT = Palette(name="ansi-light", dark=False, accent="blue", code="ansi_light")
PALETTES = {one.name: one for one in (DARK, LIGHT, PLAIN_DARK, PLAIN_LIGHT)}


def palette_of(theme: str, *, dark: bool) -> Palette:
    """Ours by its name; for a theme from elsewhere, the one that is as dark."""
    return PALETTES.get(theme) or (DARK if dark else LIGHT)
