"""What was asked of a person, what they said, what they allowed for longer, and the mode. A fold.

The half of a session's history that the gate looks at; the conversation is the other half.
"""

from typing import Literal

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Checkpoint,
    Grant,
    GrantRevoked,
    ModeChanged,
)
from bridle.policy import MODES, Mode
from bridle.promises.store import Record

_KNOWN: dict[str, Mode] = {mode: mode for mode in MODES}


class Permissions:
    """Questions, answers and grants of one session, grown record by record."""

    def __init__(self) -> None:
        self.mode: Mode | Literal[""] = ""  # as it was set for this session; empty: it was not
        self.pending: dict[str, ApprovalAsked] = {}  # by what was shown
        self.answers: dict[str, ApprovalAnswered] = {}  # to calls of this step, by call
        self.grants: dict[str, Grant] = {}  # what a person allowed for the session, by id
        self.times: dict[str, int] = {}  # how often the like of a call was allowed

    def _asked(self, record: Record, event: ApprovalAsked) -> None:
        if event.shown not in self.pending:  # by now it would do something else: it is asked anew
            self._forget_questions(event.call.id)
        self.pending[event.shown] = event

    def _answered(self, record: Record, event: ApprovalAnswered) -> None:
        self._done(event.letter)
        asked = self.pending.pop(event.shown, None)
        if asked is None and not event.shown:
            asked = self._asked_of(event.call_id)
        if asked is None:
            return  # the first answer stands
        self.answers[event.call_id] = event
        if event.allowed is True:
            from bridle.engine.grants import given, likeness

            like = likeness(asked)
            self.times[like] = self.times.get(like, 0) + 1
            for grant in given(asked, event, record.timestamp):
                self.grants[grant.id] = grant

    def _asked_of(self, call_id: str) -> ApprovalAsked | None:
        """Early answers named the call alone."""
        shown = next((key for key, one in self.pending.items() if one.call.id == call_id), "")
        return self.pending.pop(shown, None)

    def _forget_questions(self, *calls: str) -> None:
        """Whoever has a result needs no answer any more."""
        if self.pending:
            found = self.pending.items()
            for shown in [shown for shown, one in found if one.call.id in calls]:
                del self.pending[shown]

    def _revoked(self, record: Record, event: GrantRevoked) -> None:
        self._done(event.letter)
        if event.grant:
            self.grants.pop(event.grant, None)
        else:
            self.grants.clear()

    def _moded(self, record: Record, event: ModeChanged) -> None:
        self.mode = _KNOWN.get(event.mode, "ask")

    def _summed(self, record: Record, event: Checkpoint) -> None:
        """What a checkpoint says; grants in place, because the gate looks at these very ones."""
        self.pending = {one.shown: one for one in event.asked}
        self.answers = {one.call_id: one for one in event.answered}
        found = event.granted or [Grant(one, since=record.timestamp) for one in event.grants]
        self.grants.update((one.id, one) for one in found)
        self.times = dict(event.times)
        self.mode = _KNOWN.get(event.mode, "")

    def _done(self, letter: str) -> None:
        raise NotImplementedError
