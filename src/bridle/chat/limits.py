"""The limits of one turn, and which messages can be answered at all. Plain values."""

import unicodedata
from dataclasses import dataclass

_PLAIN = "\n\r\t"


@dataclass(frozen=True)
class RunLimits:
    """The limits of one run.

    `message` is the length of a message in characters, `confirm_seconds` how long a question waits
    for its phrase, `history` how many earlier messages the model gets, and `max_cost` what one turn
    may cost in dollars (0: no limit).
    """

    max_tool_calls: int = 10
    max_seconds: float = 30.0
    message: int = 10_000
    confirm_seconds: float = 300.0
    history: int = 20
    max_cost: float = 0.0


def message_problem(message: object, limits: RunLimits) -> str:
    """Return the key of the sentence that says what is wrong; empty if it can be answered."""
    if not isinstance(message, str):
        return "missing_message"
    if len(message) > limits.message:
        return "missing_message_long"
    if not message.isprintable() and any(_is_unreadable(one) for one in message):
        return "missing_message"
    return "" if any(_is_visible(one) for one in message) else "missing_message"


def _is_unreadable(character: str) -> bool:
    """Is it a control character or half of a surrogate pair? Line breaks and tabs are allowed."""
    return unicodedata.category(character) in ("Cc", "Cs") and character not in _PLAIN


def _is_visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character)[0] not in "CZ"
