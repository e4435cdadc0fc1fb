"""Judge the calls of a past session again, under other rules, from its log alone. Runs nothing.

What was decided then is read from the log: a request, an intent, a denial. What would be decided
now is up to `DryRun`, in the folder as it is today.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Event,
    ModeChanged,
    ResponseCompleted,
    ToolResultEvent,
)
from bridle.messages import ToolCall, ToolOutput, outcome_of
from bridle.policy import MODES, Mode, Verdict
from bridle.promises.store import Record
from bridle.runtime.dry_run import DryRun
from bridle.runtime.replay import key_of


class PastDecision(Struct, frozen=True, omit_defaults=True):
    """A call: what was decided about it then, and what would be now, by which rule and why."""

    session_id: str
    seq: int
    name: str
    arguments: dict[str, Any]
    then: Verdict
    now: Verdict
    reason: str = ""
    rule: str = ""

    @property
    def is_same(self) -> bool:
        """Whether nothing would change."""
        return self.then == self.now


class _OpenCall:
    """A call without a result yet, and what was recorded about it."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.asked = False
        self.begun = False

    def verdict(self, output: ToolOutput) -> Verdict | None:
        """Return what was decided about it, or None if it did not come to a decision."""
        if self.asked:
            return "ask"
        if self.begun:
            return "allow"
        return "deny" if outcome_of(output) == "denied" else None


class ReEvaluation:
    """Goes through the log of one session."""

    def __init__(self, session_id: str, dry_run: DryRun, mode: Mode = "ask") -> None:
        self._session_id = session_id
        self._dry_run = dry_run
        self._mode: Mode = mode
        self._cwd = ""
        self._open: dict[str, _OpenCall] = {}
        self._requests: dict[str, ApprovalAsked] = {}
        self._granted: set[bytes] = set()  # a call that a grant covers was asked about once
        self._covered: set[str] = set()

    def decisions(self, records: Iterable[Record]) -> Iterator[PastDecision]:
        """Yield every call about which something was decided."""
        for record in records:
            if isinstance(record.event, ToolResultEvent):
                yield from self._finish(record.seq, record.event)
            else:
                self._add(record.event)

    def _add(self, event: Event) -> None:
        match event:
            case ResponseCompleted(message=message) if message is not None:
                calls = {call.id: _OpenCall(call) for call in message.tool_calls}
                self._open = {**self._open, **calls} if event.grows else calls
            case ModeChanged(mode=mode) if mode in MODES:
                self._mode = next(known for known in MODES if known == mode)
            case ApprovalAsked(call=call):
                self._requests[event.shown] = event
                if call.id in self._open:
                    self._open[call.id].asked = True
            case ApprovalAnswered(allowed=True):
                self._answered(event)
            case CallIntended(call_id=call_id) if call_id in self._open:
                self._open[call_id].begun = True

    def _answered(self, answer: ApprovalAnswered) -> None:
        asked = self._requests.get(answer.shown)
        if asked is None:
            return
        if asked.covers and answer.until and answer.scope in ("once", "session"):
            self._covered.add(asked.covers)
        elif answer.scope == "session":
            self._granted.add(key_of(asked.call))

    def _finish(self, seq: int, event: ToolResultEvent) -> Iterator[PastDecision]:
        output = event.output
        known = self._open.pop(output.call_id, None)
        then = known.verdict(output) if known is not None else None
        if known is not None and then is not None:
            call, foreign = known.call, event.foreign
            cwd = "" if foreign else self._cwd
            decision = self._dry_run.judge(call, self._mode, cwd=cwd, foreign=foreign).decision
            granted = key_of(call) in self._granted or decision.covers in self._covered
            if then == "allow" and granted:
                then = "ask"
            yield PastDecision(
                session_id=self._session_id,
                seq=seq,
                name=call.name,
                arguments=call.arguments,
                then=then,
                now=decision.verdict,
                reason=decision.reason,
                rule=decision.rule,
            )
        if isinstance(output.data, dict) and isinstance(output.data.get("cwd"), str):
            self._cwd = output.data["cwd"]
