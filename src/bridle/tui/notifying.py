"""Calls a person who looks elsewhere: the bell, or a notification of the terminal (OSC 9). Pure.

`auto` takes OSC 9 where the terminal is known to have it and nothing stands between (tmux, screen),
and the bell elsewhere. Words come from models and files: they are made neutral and short, and stand
behind a name, so that no terminal takes them for one of its own commands. Writes nothing itself.
"""

from collections.abc import Mapping

from bridle.workspace.text import one_line

BELL = "\x07"
_HAVE = ("iterm.app", "wezterm", "ghostty", "warpterminal")  # as TERM_PROGRAM says it
_TERMS = ("xterm-ghostty", "foot", "foot-extra", "wezterm")
_BETWEEN = ("TMUX", "STY")
_LONGEST = 120


def calling(how: str, words: str, environ: Mapping[str, str]) -> str:
    """What is to be written to the terminal; nothing where the person wants no calls."""
    if how == "off":
        return ""
    if how == "osc9" or (how == "auto" and has_osc9(environ)):
        return f"\x1b]9;bridle: {_said(words)}\x07"
    return BELL


def has_osc9(environ: Mapping[str, str]) -> bool:
    """Is this a terminal that shows notifications, with nothing in between?"""
    if any(environ.get(name) for name in _BETWEEN):
        return False
    program = environ.get("TERM_PROGRAM", "").lower()
    return program in _HAVE or environ.get("TERM", "") in _TERMS


def _said(words: str) -> str:
    return one_line(words, _LONGEST).encode("utf-8", "replace").decode()
