"""Past calls, decided again under other rules, from the log alone. Nothing runs.

What was decided then is read from what was recorded: a question, an intent, a refusal. What would
be decided now is `Foresight`'s to say, in the folder as it is today.
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
from bridle.messages import ToolCall, ToolOutput
from bridle.policy import MODES, Mode, Verdict
from bridle.promises.store import Record
from bridle.runtime.foresight import Foresight
from bridle.runtime.replay import key_of

_REFUSED = "not permitted"


class Redecided(Struct, frozen=True, omit_defaults=True):
    """A call: what was decided of it then, and what would be now, by which rule and why."""

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
        """Would nothing change?"""
        return self.then == self.now


class _Open:
    """A call that has no result yet, and what was recorded of it."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.asked = False
        self.begun = False

    def verdict(self, output: ToolOutput) -> Verdict | None:
        """What was decided of it; None where nobody came to decide."""
        if self.asked:
            return "ask"
        if self.begun:
            return "allow"
        return "deny" if output.text.startswith(_REFUSED) else None


class Revisit:
    """Goes through the log of one session."""

    def __init__(self, session_id: str, foresight: Foresight, mode: Mode = "ask") -> None:
        self._session_id = session_id
        self._foresight = foresight
        self._mode: Mode = mode
        self._cwd = ""
        self._open: dict[str, _Open] = {}
        self._questions: dict[str, ApprovalAsked] = {}
        self._granted: set[bytes] = set()  # "for this session" was a question once
        self._covered: set[str] = set()

    def decide(self, records: Iterable[Record]) -> Iterator[Redecided]:
        """Every call of which something was decided."""
        for record in records:
            if isinstance(record.event, ToolResultEvent):
                yield from self._finish(record.seq, record.event.output)
            else:
                self._add(record.event)

    def _add(self, event: Event) -> None:
        match event:
            case ResponseCompleted(message=message) if message is not None:
                self._open = {call.id: _Open(call) for call in message.tool_calls}
            case ModeChanged(mode=mode) if mode in MODES:
                self._mode = next(known for known in MODES if known == mode)
            case ApprovalAsked(call=call):
                self._questions[event.shown] = event
                if call.id in self._open:
                    self._open[call.id].asked = True
            case ApprovalAnswered(allowed=True):
                self._answered(event)
            case CallIntended(call_id=call_id) if call_id in self._open:
                self._open[call_id].begun = True

    def _answered(self, answer: ApprovalAnswered) -> None:
        asked = self._questions.get(answer.shown)
        if asked is None:
            return
        if asked.covers and answer.until and answer.scope in ("once", "session"):
            self._covered.add(asked.covers)
        elif answer.scope == "session":
            self._granted.add(key_of(asked.call))

    def _finish(self, seq: int, output: ToolOutput) -> Iterator[Redecided]:
        found = self._open.pop(output.call_id, None)
        then = found.verdict(output) if found is not None else None
        if found is not None and then is not None:
            call = found.call
            decision = self._foresight.decide(call, self._mode, cwd=self._cwd).decision
            granted = key_of(call) in self._granted or decision.covers in self._covered
            if then == "allow" and granted:
                then = "ask"
            said = (decision.verdict, decision.reason, decision.rule)
            yield Redecided(self._session_id, seq, call.name, call.arguments, then, *said)
        if isinstance(output.data, dict) and isinstance(output.data.get("cwd"), str):
            self._cwd = output.data["cwd"]
