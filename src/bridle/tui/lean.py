"""Textual's application without its palette of commands, which is not ours and brings a dozen
widgets along: a tenth of the time until the first picture. What it only may need is read later,
and its text area is made without the parser that colours programs: nobody writes one there.

While the application is imported, an empty module stands in the palette's place; from then on
whoever asks for the palette, or for the parser, gets the real one. A Textual that wants more of it
than is known here is imported whole.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from bridle.tui.late import unread

_PALETTE = "textual.command"
_PARSER = "tree_sitter"
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


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Inside, that module seems not to be installed; one that is there already stays."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


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
        with unread(), _without(_PARSER):
            import textual.app  # noqa: F401
            from textual.widgets import TextArea  # noqa: F401
    except (ImportError, AttributeError, TypeError):
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "textual":
                del sys.modules[name]
        return False
    finally:
        sys.modules.pop(_PALETTE, None)
    return True
