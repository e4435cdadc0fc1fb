"""The conversation that a log adds up to, and the calls of its newest reply that are open. A fold.

A reply stays open until each of its calls has a result; what leaves here is always a valid request.
"""

from typing import Literal

from msgspec import Struct

from bridle.engine.call_ids import CallIds
from bridle.engine.permissions import Permissions
from bridle.messages import Message, ToolCall, ToolOutput, Transcript

UNKNOWN = "no result was recorded: it is not known whether this call ran"
NOT_RUN = "not run: the turn ended before it began"


class OpenCall(Struct, frozen=True):
    """A call without a result. Where it may have run, nobody knows whether it did."""

    call: ToolCall
    state: Literal["not started", "unknown"]
    reads: bool = False


class Conversation(Permissions):
    """Messages, calls and results of one session, grown record by record."""

    def __init__(self) -> None:
        super().__init__()
        self.parked = False  # the newest turn waits for a person
        self._settled = Transcript()
        self._ids = CallIds()  # of the calls in it
        self._open: Message | None = None  # a reply whose calls are not all answered
        self._ours = False  # ... which our own loop asked for, so that its intents are recorded
        self._outputs: dict[str, ToolOutput | None] = {}  # of its calls, in their order
        self._answered_at = ""  # when the newest of its results was recorded
        self._missing = 0  # so many of them are not there yet
        self._intents: dict[str, bool] = {}  # its calls that were begun: do they only read?
        self.told: set[str] = set()  # no result, and it was said that nobody knows of one
        self.lost: dict[str, OpenCall] = {}  # went on without a result: a line of the log is gone
        self._view: tuple[tuple[Message, int, int], Transcript] | None = None

    @property
    def transcript(self) -> Transcript:
        """The conversation as a valid request: a call that is still open gets a stand-in result."""
        if self._open is None:
            return self._settled
        state = (self._open, len(self._intents), self._missing)
        if self._view is None or self._view[0] != state:  # on a shelf of its own: it will not last
            reply, answers = self._step(self._open)
            self._view = state, self._settled.apart().plus(reply).plus(answers)
        return self._view[1]

    @property
    def newest_text(self) -> str:
        """What the newest message says, if the model wrote it."""
        newest = self._open or (self._settled[-1] if len(self._settled) else None)
        return newest.content if newest is not None and newest.role == "assistant" else ""

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls of the newest reply that have no result yet."""
        if self._open is None:
            return ()
        calls = [one for one in self._open.tool_calls if self._outputs.get(one.id) is None]
        return tuple(
            OpenCall(call, self._state(call.id), self._intents.get(call.id, False))
            for call in calls
        )

    @property
    def open_ids(self) -> set[str]:
        """The ids of all calls of the reply that is open, answered or not."""
        return set(self._outputs) if self._open is not None else set()

    def _state(self, call_id: str) -> Literal["not started", "unknown"]:
        return "not started" if self._ours and call_id not in self._intents else "unknown"

    def _stand_in(self, call: ToolCall) -> ToolOutput:
        words = UNKNOWN if self._state(call.id) == "unknown" else NOT_RUN
        return ToolOutput(call.id, words, True, call.name)

    def _step(self, reply: Message) -> tuple[Message, Message]:
        """A reply and the answers to its calls, with stand-ins where there are none."""
        calls, at = reply.tool_calls, self._answered_at
        outputs = tuple(filter(None, self._outputs.values()))
        if len(outputs) != len(calls):
            at = reply.created_at  # a checkpoint does not keep when the others were answered
            outputs = tuple(self._outputs.get(one.id) or self._stand_in(one) for one in calls)
        reply, outputs = self._ids.apart(reply, outputs)
        return reply, Message("tool", outputs, f"{reply.id}r", at)

    def _close(self) -> None:
        if self._open is not None:
            if self._ours and None in self._outputs.values():
                self.lost |= {one.call.id: one for one in self.open_calls}
            reply, answers = self._step(self._open)
            self._settled = self._settled.plus(reply).plus(answers)
            self._ids.take(reply)
            self._forget_questions(*self._outputs)
            self._open = self._view = None
            self._outputs = {}
            self._intents = {}
            self.answers = {}

    def _enter(self, message: Message, *, ours: bool) -> None:
        """The next message; one with calls stays open until they are answered."""
        self._close()
        self.told.clear()  # an id may be given again
        if calls := message.tool_calls:
            self._open, self._ours = message, ours
            self._outputs = dict.fromkeys(call.id for call in calls)
            self._missing = len(self._outputs)
        else:
            self._settled = self._settled.plus(message)

    def _answer(self, output: ToolOutput, at: str) -> None:
        self.parked = False
        self.told.discard(output.call_id)
        if self._outputs.get(output.call_id, output) is not None:
            self.lost.pop(output.call_id, None)
            return  # a second result, or one that nobody asked for: the first stands
        self._outputs[output.call_id] = output
        self._answered_at = at
        self._forget_questions(output.call_id)
        self._missing -= 1
        if not self._missing:
            self._close()

    def _replace(self, messages: tuple[Message, ...]) -> None:
        self._close()
        self._settled, self._ids = Transcript(messages), CallIds(messages)
