"""What the terminal itself is told: window title, bell and notifications, suspending the job."""

import os
import signal
from collections.abc import Mapping

from bridle.workspace.text import one_line

SAVE, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
_MARKS = {"waiting for your answer": "? ", "working": "* ", "stopping": "* "}
_LONGEST_TITLE = 80


def window_title(state: str, title: str) -> str:
    """Return what sets the window title. `state` is the line above the composer."""
    name = one_line(title, _LONGEST_TITLE).encode("utf-8", "replace").decode()
    text = f"{_MARKS.get(state, '')}{name} · bridle" if name else f"{_MARKS.get(state, '')}bridle"
    return f"\x1b]2;{text}\x07"


class WindowTitle:
    """The window title; the one before is saved first and restored at the end."""

    def __init__(self) -> None:
        self._last = ""

    def change(self, state: str, title: str) -> str:
        """Return what to write now; empty if the title stays the same."""
        said = window_title(state, title)
        if said == self._last:
            return ""
        before = "" if self._last else SAVE
        self._last = said
        return before + said

    def restore(self) -> str:
        """Return what restores the title from before, if it was changed."""
        changed, self._last = self._last, ""
        return RESTORE if changed else ""


BELL = "\x07"
_HAVE = ("iterm.app", "wezterm", "ghostty", "warpterminal")  # as TERM_PROGRAM says it
_TERMS = ("xterm-ghostty", "foot", "foot-extra", "wezterm")
_BETWEEN = ("TMUX", "STY")
_LONGEST_CALL = 120


def notification(how: str, words: str, environ: Mapping[str, str]) -> str:
    """Return what to write to notify the user: a bell, OSC 9, or nothing.

    `auto` uses OSC 9 if the terminal is known to support it and nothing stands in between (tmux,
    screen), and the bell otherwise. The text comes from models and files: it is made neutral and
    short, and follows a name, so that no terminal takes it for one of its own commands.
    """
    if how == "off":
        return ""
    if how == "osc9" or (how == "auto" and has_osc9(environ)):
        return f"\x1b]9;bridle: {_call_text(words)}\x07"
    return BELL


def has_osc9(environ: Mapping[str, str]) -> bool:
    """Does this terminal show notifications, with nothing in between?"""
    if any(environ.get(name) for name in _BETWEEN):
        return False
    program = environ.get("TERM_PROGRAM", "").lower()
    return program in _HAVE or environ.get("TERM", "") in _TERMS


def _call_text(words: str) -> str:
    return one_line(words, _LONGEST_CALL).encode("utf-8", "replace").decode()


def has_shell() -> bool:
    """Would a shell with job control continue the program if it stopped?"""
    group, session = os.getpgrp(), os.getsid(0)
    parent = os.getppid()
    try:
        while parent > 1 and os.getsid(parent) == session:
            if os.getpgid(parent) != group:
                return True
            parent = _parent_of(parent)  # a script that runs us: its shell is further up
    except (OSError, ValueError, IndexError):
        return False
    return False


def stop_job() -> None:
    """Stop every process of this job; return when a shell continues it."""
    ours = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        os.killpg(os.getpgrp(), signal.SIGTSTP)  # the others: a script, a pipe
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, ours)


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[1])
