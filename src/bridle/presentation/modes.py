"""The permission modes as a person reads them: a name, a short label, what the mode means."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the status bar is on the screen before the values are loaded
    from bridle.policy import Mode


class ModeText(NamedTuple):
    """How a mode is shown. `label` is for a status bar, `meaning` for lists."""

    name: str
    label: str
    meaning: str


MODE_TEXTS: "dict[Mode, ModeText]" = {
    "plan": ModeText("Plan", "plan (read-only)", "reads and plans; changes nothing"),
    "ask": ModeText("Ask", "ask", "asks before anything that changes something"),
    "edits": ModeText(
        "Edits", "edits allowed", "edits files in the workspace; asks before the rest"
    ),
    "auto": ModeText("Auto", "auto (no questions)", "asks nothing; what is denied stays denied"),
}


def mode_sentence(mode: "Mode") -> str:
    """Return what a mode means as a sentence: `Asks nothing; what is denied stays denied.`"""
    meaning = MODE_TEXTS[mode].meaning
    return f"{meaning[0].upper()}{meaning[1:]}."
