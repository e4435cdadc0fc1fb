"""The keys of the main screen and what each does: one table, for the bindings and for F1."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key, the screen's action and its meaning; `first`: before any widget gets it."""

    key: str
    action: str
    meaning: str
    shown: str
    first: bool = False


KEYS = (
    Key("escape", "stop", "stop the turn and put queued prompts on hold", "Esc"),
    Key(
        "ctrl+c",
        "leave",
        "copy the selection, or stop the turn, or clear the prompt; press twice to quit",
        "Ctrl+C",
        first=True,
    ),
    Key("ctrl+d", "leave_empty", "quit, if the prompt is empty", "Ctrl+D", first=True),
    Key("ctrl+z", "suspend", "suspend bridle; fg in the shell resumes it", "Ctrl+Z", first=True),
    Key("ctrl+l", "repaint", "redraw the screen", "Ctrl+L", first=True),
    Key("f1", "keys", "show this help", "F1", first=True),
    Key("f2", "side", "show or hide the side panel", "F2", first=True),
    Key(
        "f3", "approvals", "show and answer the pending approvals of all sessions", "F3", first=True
    ),
    Key("f4", "answer", "switch between prompt and approval", "F4", first=True),
    Key("f5", "copy", "copy the last answer or one of its code blocks", "F5", first=True),
    Key("shift+tab", "mode", "next mode: ask, edits, plan", "Shift+Tab", first=True),
    Key(
        "ctrl+o",
        "unfold",
        "expand or collapse the selected block, or the latest tool call",
        "Ctrl+O",
        first=True,
    ),
    Key("ctrl+up", "choose(-1)", "select the block above", "Ctrl+Up", first=True),
    Key("ctrl+down", "choose(1)", "select the block below", "Ctrl+Down", first=True),
    Key("ctrl+t", "thoughts", "expand or collapse all thinking", "Ctrl+T", first=True),
    Key("pageup", "page(-1)", "scroll up", "PageUp", first=True),
    Key("pagedown", "page(1)", "scroll down", "PageDown", first=True),
    Key("ctrl+home", "first", "go to the beginning", "Ctrl+Home", first=True),
    Key("ctrl+end", "last", "go to the end and follow it", "Ctrl+End", first=True),
    Key("alt+up", "take_back", "edit the last waiting prompt", "Alt+Up", first=True),
    Key("alt+down", "release", "send the oldest prompt that is on hold", "Alt+Down", first=True),
)

COMPOSER = (  # handled by the composer itself
    ("Enter", "send; queue while a turn runs"),
    ("Shift+Enter, Ctrl+J", "new line"),
    ("Ctrl+S", "send to the running turn at its next step"),
    ("Up, Down", "earlier prompts"),
    ("Ctrl+R", "search earlier prompts"),
    ("Ctrl+G", "open the prompt in your editor"),
    ("Ctrl+U, Ctrl+K, Ctrl+W", "delete to the start of the line, to its end, a word"),
    ("Ctrl+Y", "insert what was last deleted"),
    ("Ctrl+_", "undo typing"),
    ("Mouse", "select text, Ctrl+C copies it; hold Shift to select as in the shell"),
    ("@, /", "complete files and commands; Tab accepts"),
)


def help_lines() -> list[tuple[str, str]]:
    """Return all keys with their meaning."""
    return [*COMPOSER, ("", ""), *((key.shown, key.meaning) for key in KEYS)]
