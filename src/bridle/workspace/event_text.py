"""Text for answers, approvals and ends of turns, the same in every interface. Pure.

This is not part of `text.py`, which quick commands import: events take ten times as long to import.
"""

from typing import Any

import msgspec

from bridle.events import ApprovalAnswered, ApprovalAsked, TurnEnded
from bridle.policy import CLASSES
from bridle.workspace.text import flat

_AUTOMATIC = ("nobody", "expiry")  # who answers a request that no person has answered


def answer_text(answer: ApprovalAnswered, me: str = "me") -> str:
    """Return the answer, and who gave it, unless that is `me`, the reader."""
    if is_unanswered(answer):
        return flat(f"not run: {answer.word or 'nobody answered'}")
    verdict = "allowed" if answer.allowed else "refused"
    by = "" if answer.by in ("me", "approver", me) else f" by {answer.by}"
    until = {"session": ", for the session", "rule": f", by the rule {answer.rule}"}
    word = f": {answer.word}" if answer.word else ""
    return flat(f"{verdict}{by}{until.get(answer.scope, '')}{word}")


NETWORK = "if you allow it, this command gets the network; its sandbox has none otherwise"


def session_grant_text(asked: ApprovalAsked) -> str:
    """Return what an approval for the session allows."""
    if not asked.covers:
        return "allow for this session"
    what = CLASSES.get(asked.covers, flat(asked.covers))
    return f"allow {what} in this folder for this session"


def is_unanswered(answer: ApprovalAnswered) -> bool:
    """Was it refused because no person answered, or not in time?"""
    return not answer.allowed and answer.by in _AUTOMATIC


def end_text(end: TurnEnded) -> str:
    """Return why a turn ended, or empty if it is simply done."""
    if end.reason == "done" and not end.detail:
        return ""
    return flat(end.detail) or flat(end.reason)


def as_json(value: Any) -> str:
    """Return compact JSON of any value."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half of a surrogate pair: only the slower one writes it out
        import json

        return json.dumps(value, default=str, separators=(",", ":"))
