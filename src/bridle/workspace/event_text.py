"""Answers, approvals and ends of turns in the words that every interface uses. Pure.

Apart from `text.py`, which quick commands import: events take ten times as long to import.
"""

from typing import Any

import msgspec

from bridle.events import ApprovalAnswered, ApprovalAsked, TurnEnded
from bridle.policy import CLASSES
from bridle.workspace.text import flat

_UNHEARD = ("nobody", "expiry")  # in whose names a question is closed that no person answered


def answered_words(answer: ApprovalAnswered, me: str = "me") -> str:
    """The answer, and who gave it, unless that was `me`, who reads it."""
    if is_unheard(answer):
        return flat(f"not run: {answer.word or 'nobody answered'}")
    said = "allowed" if answer.allowed else "refused"
    by = "" if answer.by in ("me", "approver", me) else f" by {answer.by}"
    until = {"session": ", for the session", "rule": f", by the rule {answer.rule}"}
    word = f": {answer.word}" if answer.word else ""
    return flat(f"{said}{by}{until.get(answer.scope, '')}{word}")


NETWORK = "if you allow it, this command gets the network; its sandbox has none otherwise"


def session_words(asked: ApprovalAsked) -> str:
    """What a yes for the session allows."""
    if not asked.covers:
        return "allow for this session"
    what = CLASSES.get(asked.covers, flat(asked.covers))
    return f"allow {what} in this folder for this session"


def is_unheard(answer: ApprovalAnswered) -> bool:
    """Is it a no that nobody has said: none was there, or none in time?"""
    return not answer.allowed and answer.by in _UNHEARD


def ended_words(end: TurnEnded) -> str:
    """Why a turn ended, where that is worth a word."""
    if end.reason == "done" and not end.detail:
        return ""
    return flat(end.detail) or flat(end.reason)


def as_json(value: Any) -> str:
    """Compact JSON of anything."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half of a surrogate pair: only the slower one writes it out
        import json

        return json.dumps(value, default=str, separators=(",", ":"))
