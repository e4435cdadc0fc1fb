"""The keys of the main screen and what each does: one table, for the bindings and for F1. Pure."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key, the screen's action, what it does; `first`: before any widget gets it."""

    key: str
    action: str
    meaning: str
    shown: str = ""
    first: bool = False


KEYS = (
    Key("escape", "stop", "stop the running turn; what is queued is held back", "Esc"),
    Key(
        "ctrl+c",
        "leave",
        "copy marked text; or stop the turn; or clear what is typed; or, pressed twice, leave",
        "Ctrl+C",
        first=True,
    ),
    Key("ctrl+d", "leave_empty", "leave, if nothing is typed", "Ctrl+D", first=True),
    Key("ctrl+z", "suspend", "back to the shell; fg continues", "Ctrl+Z", first=True),
    Key("ctrl+l", "repaint", "redraw the screen", "Ctrl+L", first=True),
    Key("f1", "keys", "this help", "F1", first=True),
    Key("f2", "side", "show or hide the side panel", "F2", first=True),
    Key("f3", "tray", "the questions of all sessions, to be answered there", "F3", first=True),
    Key("f4", "answer", "from the composer to the question and back", "F4", first=True),
    Key("f5", "copy", "copy the last answer, or one of its blocks of code", "F5", first=True),
    Key("shift+tab", "mode", "the next mode: ask, edits, plan", "Shift+Tab", first=True),
    Key("ctrl+o", "unfold", "unfold or fold the chosen block, or the newest call", "Ctrl+O", True),
    Key("ctrl+up", "choose(-1)", "choose the block above", "Ctrl+Up", first=True),
    Key("ctrl+down", "choose(1)", "choose the block below", "Ctrl+Down", first=True),
    Key("ctrl+t", "thoughts", "unfold or fold all thoughts", "Ctrl+T", first=True),
    Key("pageup", "page(-1)", "scroll up", "PageUp", first=True),
    Key("pagedown", "page(1)", "scroll down", "PageDown", first=True),
    Key("ctrl+home", "first", "to the beginning", "Ctrl+Home", first=True),
    Key("ctrl+end", "last", "to the end, and stay there", "Ctrl+End", first=True),
    Key("alt+up", "take_back", "take a waiting prompt back into the composer", "Alt+Up", True),
    Key("alt+down", "release", "send a prompt that was held back", "Alt+Down", first=True),
)

COMPOSER = (  # the composer's own, for the help
    ("Enter", "send; while a turn runs, queue"),
    ("Shift+Enter, Ctrl+J", "a new line"),
    ("Ctrl+S", "steer: send to the running turn at its next step"),
    ("Up, Down", "earlier prompts"),
    ("Ctrl+R", "search the earlier prompts"),
    ("Ctrl+G", "write in your editor"),
    ("Ctrl+U, Ctrl+K, Ctrl+W", "delete to line start, to line end, a word"),
    ("Ctrl+Y", "insert what was deleted last"),
    ("Ctrl+_", "undo what was typed"),
    ("Mouse", "mark text, and Ctrl+C copies it; with Shift, the terminal marks it"),
    ("@, /", "files, commands; Tab completes"),
)


def help_lines() -> list[tuple[str, str]]:
    """All keys, with what each does."""
    own = [(one.shown or one.key, one.meaning) for one in KEYS]
    return [*COMPOSER, ("", ""), *own]
