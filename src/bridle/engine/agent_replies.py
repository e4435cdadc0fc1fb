"""What another agent says, as the replies of a conversation: its text, its thoughts, its calls.

An agent may hand in whole replies, or stream text and ask for one call after the other; either way
the log reads as if our own loop had carried the turn. While calls are open the reply that asked for
them grows; so does one whose calls were refused at once, while the model cannot have read that:
a step is what the model was asked. Knows nothing of the gate, and runs nothing.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.engine.history import History
from bridle.engine.redaction import Redactor
from bridle.events import (
    Event,
    ResponseCompleted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from bridle.messages import Message, Part, Text, Thinking, ToolCall
from bridle.promises.codec import scrubbed

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Replies:
    """The replies of one agent in one turn."""

    def __init__(
        self, emit: Callable[[Event], None], history: History, redactor: Redactor | None
    ) -> None:
        self._emit = emit
        self._history = history
        self._redactor = redactor
        self._texts: list[str] = []  # streamed, and in no reply yet
        self._thoughts: list[str] = []
        self._said: list[str] = []  # all text of the turn, as it came
        self._taken: set[str] = history.open_ids
        self._ready: set[str] = set()  # calls that were said to be whole
        self.announced: dict[str, ToolCall] = {}  # in a reply, and not asked about yet
        self._is_next = True  # has the model read or said something since the newest call?
        self._begun: set[str] = set()  # calls that it has begun to write
        self._beside: set[str] = set()  # ... before the first of this step was asked about
        self.count = 0

    def stream(self, event: TextDelta | ThinkingDelta) -> None:
        """A piece of what the agent writes or thinks."""
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._said.append(event.text)
        else:
            self._thoughts.append(event.text)
        self._is_next = True
        self._emit(event)

    def note_begun(self, call_id: str) -> None:
        """The model has begun to write this call."""
        self._begun.add(call_id)

    def note_read(self) -> None:
        """The model has been asked again, or is about to be: what came of a call is there."""
        self._is_next = True

    def note_ready(self, call: ToolCall) -> None:
        """The agent itself has said that this call is whole."""
        self._ready.add(call.id)

    def ask_for(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolCall:
        """The call as it is recorded, once: one that the agent has announced is there already."""
        known = self.announced.get(call_id)
        call = ToolCall(call_id, name, arguments)
        if known is not None and (known.name, known.arguments) == (call.name, call.arguments):
            return self.announced.pop(call_id)
        reply = ResponseCompleted("tool_use", Message("assistant", (self._distinct(call),)))
        recorded = self._record(reply, more=not self._is_next or call_id in self._beside)
        self._is_next = False
        (call,) = recorded.message.tool_calls if recorded.message is not None else ()
        self.announced.pop(call.id, None)
        return call

    def add(self, reply: ResponseCompleted) -> None:
        """A whole reply, in the agent's own words."""
        message = reply.message
        if message is None or not message.parts:
            self._emit(reply)
            return
        if message.reasoning:
            self._thoughts.clear()
        if text := message.content.strip():
            self._texts.clear()  # it is in the reply
            if not self.has_said(text):
                self._said.append(text)
        parts = [self._distinct(one) if isinstance(one, ToolCall) else one for one in message.parts]
        self._record(replace(reply, message=replace(message, parts=tuple(parts))))
        self._is_next = True  # it was whole

    def has_said(self, content: str) -> bool:
        """Is this how the agent's text ends that is there already?"""
        return not content.strip() or "".join(self._said).rstrip().endswith(content.strip())

    def conclude(self, content: str, reason: StopReason = "complete") -> None:
        """The turn is over: what was streamed becomes a reply, and so does what was not."""
        if not self.has_said(content):
            begun = "".join(self._texts)
            if not content.startswith(begun):  # other words than those that were streamed
                self._say_streamed(reason)
                begun = ""
            self.stream(TextDelta(content[len(begun) :]))
        self._say_streamed(reason)

    def begin_answer(self) -> None:
        """Another answer follows, which may have the same words as the one before it."""
        self._said.clear()

    def _say_streamed(self, reason: StopReason) -> None:
        if "".join(self._texts).strip():
            self._record(ResponseCompleted(reason, Message("assistant")))

    def _record(self, reply: ResponseCompleted, *, more: bool = False) -> ResponseCompleted:
        """Have it recorded, behind what was streamed before it. `more` of the reply before it?"""
        assert reply.message is not None
        grows = more or bool(self._history.open_calls)
        if not grows:
            self._beside, self._begun = self._begun, set()
        parts = (*self._streamed(), *reply.message.parts)
        reply = replace(reply, message=Message("assistant", parts), grows=grows)
        try:
            _encode(parts)
        except UnicodeEncodeError:  # half a surrogate pair
            cleaned = scrubbed(reply)
            assert isinstance(cleaned, ResponseCompleted)
            reply = cleaned
        if self._redactor is not None:  # what is judged is what the log says was asked for
            reply = self._redactor.value(reply)
        assert reply.message is not None
        for call in reply.message.tool_calls:
            self.announced[call.id] = call
            if call.id not in self._ready:
                self._emit(ToolCallReady(call))
        self.count += not grows
        self._emit(reply)
        return reply

    def _streamed(self) -> tuple[Part, ...]:
        thought, text = "".join(self._thoughts), "".join(self._texts)
        self._thoughts.clear()
        self._texts.clear()
        parts: tuple[Part, ...] = (Thinking(thought),) if thought.strip() else ()
        return (*parts, Text(text)) if text.strip() else parts

    def _distinct(self, call: ToolCall) -> ToolCall:
        """With an id that no other call of the turn has."""
        name, number = call.id or "call", len(self._taken) + 1
        new = call.id
        while not new or new in self._taken:
            new, number = f"{name}-{number}", number + 1
        self._taken.add(new)
        return call if new == call.id else replace(call, id=new)
