"""Calls under way: asked for, allowed, running, answered. Pure."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Event,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
)
from bridle.messages import ToolOutput, outcome_of
from bridle.presentation.approvals import answer_text
from bridle.presentation.blocks import Call, CallState
from bridle.presentation.calls import result_diff, result_summary
from bridle.protocols.store import Record
from bridle.tui.blocks_reply import ReplyFold
from bridle.tui.blocks_state import State
from bridle.workspace.text import shorten

LIVE = 20_000  # characters of what a running tool said that are kept
KEPT = 60_000  # ... and of its result


class Calls:
    """Follows each call to its one result."""

    def __init__(self, state: State, reply: ReplyFold, touch: Callable[[int], None]) -> None:
        self._state = state
        self._reply = reply
        self._touch = touch
        self.acts: dict[type[Event], Callable[[Any, Record], None]] = {
            ToolCallStarted: self._started,
            ToolCallArgsDelta: self._nothing,
            ToolCallReady: self._ready,
            ApprovalAsked: self._asked,
            ApprovalAnswered: self._answered,
            CallIntended: self._intended,
            ToolOutputDelta: self._said,
            ToolResultEvent: self._result,
        }

    def name_of(self, call_id: str) -> str:
        """The tool of that call."""
        known = self._reply.known(call_id)
        return known[1].name if known is not None else ""

    def settle(self, why: str = "not run") -> None:
        """The turn is over: what has no result has none. `why` is what is shown instead."""
        for call_id, call in list(self._state.calls.items()):
            if call.is_open:
                call.state = "unknown" if call.state == "running" else "refused"
                call.gist = call.gist or ("no result" if call.state == "unknown" else why)
                self._touched(call_id)
        self._state.calls.clear()

    def _nothing(self, event: ToolCallArgsDelta, record: Record) -> None:
        """The arguments are shown when they are whole."""

    def _started(self, event: ToolCallStarted, record: Record) -> None:
        known = self._reply.known(event.call_id)
        again = known is not None and not known[1].is_open
        place, call = self._reply.call(event.call_id, event.name, anew=again)
        self._state.calls[event.call_id] = call
        self._touch(place)

    def _ready(self, event: ToolCallReady, record: Record) -> None:
        _, call = self._reply.ready(event.call)
        self._state.calls[event.call.id] = call

    def _asked(self, event: ApprovalAsked, record: Record) -> None:
        self._state.asked[event.shown] = event
        place, call = self._reply.ready(event.call)
        call.state, call.word = "asked", event.reason
        self._state.calls[event.call.id] = call
        self._touch(place)

    def _answered(self, event: ApprovalAnswered, record: Record) -> None:
        self._state.asked.pop(event.shown, None)
        if (known := self._reply.known(event.call_id)) is not None:
            place, call = known
            call.word = answer_text(event, self._state.me)
            if call.state == "asked":
                call.state = "ready" if event.allowed else "refused"
            self._touch(place)

    def _intended(self, event: CallIntended, record: Record) -> None:
        place, call = self._reply.call(event.call_id, event.name)
        call.state, call.began = "running", record.timestamp
        self._state.calls[event.call_id] = call
        self._touch(place)

    def _said(self, event: ToolOutputDelta, record: Record) -> None:
        if (known := self._reply.known(event.call_id)) is not None:
            place, call = known
            call.told += len(event.text)
            call.live = (call.live + event.text)[-LIVE:]
            self._touch(place)

    def _result(self, event: ToolResultEvent, record: Record) -> None:
        output = event.output
        place, call = self._reply.call(output.call_id, output.name or "tool")
        call.state = _state_after(call, output)
        call.result, call.live = shorten(output.text, KEPT), ""
        command = call.command or (call.subject if call.name == "shell" else "")
        call.gist, call.diff = result_summary(output, command), result_diff(output)
        call.ended = record.timestamp
        self._state.calls.pop(output.call_id, None)
        if call.state in ("done", "failed"):
            state = self._state
            state.spent = replace(state.spent, tool_calls=state.spent.tool_calls + 1)
            state.used = replace(state.used, tool_calls=state.used.tool_calls + 1)
        self._touch(place)

    def _touched(self, call_id: str) -> None:
        if (known := self._reply.known(call_id)) is not None:
            self._touch(known[0])


def _state_after(call: Call, output: ToolOutput) -> CallState:
    if not output.is_error:
        return "done"
    if outcome_of(output) == "unknown":
        return "unknown"
    return "refused" if call.state == "refused" else "failed"
