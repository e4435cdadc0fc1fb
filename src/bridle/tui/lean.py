"""Textual's application without its palette of commands, which is not ours and brings a dozen
widgets along: a tenth of the time until the first picture. What it only may need is read later.

While the application is imported, an empty module stands in the palette's place; from then on
whoever asks for the palette gets the real one. A Textual that wants more of it than is known here
is imported whole.
"""

import sys
from types import ModuleType

from bridle.tui.late import unread

_PALETTE = "textual.command"
_NAMES = (
    "CommandListItem",
    "CommandPalette",
    "DiscoveryHit",
    "Hit",
    "Hits",
    "Provider",
    "SimpleProvider",
)


class _Absent:
    """In the place of a class of the palette, which nobody here makes."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("the palette of commands is not part of this screen")


def import_textual() -> bool:
    """Import `textual.app`; was it without the palette?"""
    known = set(sys.modules)
    if "textual.app" in known or _PALETTE in known:
        return False
    empty = ModuleType(_PALETTE)
    for name in _NAMES:
        setattr(empty, name, type(name, (_Absent,), {}))
    sys.modules[_PALETTE] = empty
    try:
        with unread():
            import textual.app  # noqa: F401
    except (ImportError, AttributeError, TypeError):
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "textual":
                del sys.modules[name]
        return False
    finally:
        sys.modules.pop(_PALETTE, None)
    return True
