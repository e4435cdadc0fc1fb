"""What another agent says, as the replies of a conversation: its text, its thoughts, its calls.

An agent may report whole replies, or stream text and ask for one call after the other; either way
the log reads as if our own loop had run the turn. A reply grows while its calls are open, and also
if its calls were refused at once, because the model cannot have read that yet: a step is one
request to the model. Knows nothing of the gate, and runs nothing.
"""

from collections.abc import Callable, Container
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.engine_config import Back, Translate
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
from bridle.protocols.codec import scrubbed

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
        self._turn_texts: list[str] = []  # all text of the turn
        self._call_ids: set[str] = history.open_ids  # that are taken
        self._ready: set[str] = set()  # calls that were reported as complete
        self.announced: dict[str, ToolCall] = {}  # in a reply, and not asked about yet
        self._begins_step = True  # has the model read or said something since the newest call?
        self._started: set[str] = set()  # calls that it has begun to write
        self._same_step: set[str] = set()  # ... before the first of this step was asked about
        self.count = 0

    def stream(self, event: TextDelta | ThinkingDelta) -> None:
        """Record a piece of what the agent writes or thinks."""
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._turn_texts.append(event.text)
        else:
            self._thoughts.append(event.text)
        self._begins_step = True
        self._emit(event)

    def note_started(self, call_id: str) -> None:
        """Note that the model has begun to write this call."""
        self._started.add(call_id)

    def note_result_read(self) -> None:
        """Note that the model has read a result, or is about to: what follows is another step."""
        self._begins_step = True

    def note_ready(self, call: ToolCall) -> None:
        """Note that the agent itself has reported this call as complete."""
        self._ready.add(call.id)

    def record_call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolCall:
        """Record a call that is asked about, unless a reply has it already, and return it."""
        known = self.announced.get(call_id)
        call = ToolCall(call_id, name, arguments)
        if known is not None and (known.name, known.arguments) == (call.name, call.arguments):
            return self.announced.pop(call_id)
        reply = ResponseCompleted("tool_use", Message("assistant", (self._with_unique_id(call),)))
        recorded = self._record(reply, grows=not self._begins_step or call_id in self._same_step)
        self._begins_step = False
        (call,) = recorded.message.tool_calls if recorded.message is not None else ()
        self.announced.pop(call.id, None)
        return call

    def add(self, reply: ResponseCompleted) -> None:
        """Record a whole reply, as the agent reports it."""
        message = reply.message
        if message is None or not message.parts:
            self._emit(reply)
            return
        if message.reasoning:
            self._thoughts.clear()
        if text := message.content.strip():
            self._texts.clear()  # it is in the reply
            if not self.has_said(text):
                self._turn_texts.append(text)
        parts = [
            self._with_unique_id(part) if isinstance(part, ToolCall) else part
            for part in message.parts
        ]
        self._record(replace(reply, message=replace(message, parts=tuple(parts))))
        self._begins_step = True

    def begin_answer(self) -> None:
        """Note that another answer follows, which may have the same words as the one before it."""
        self._turn_texts.clear()

    def has_said(self, content: str) -> bool:
        """Does the agent's text so far end with this?"""
        text = "".join(self._turn_texts).rstrip()
        return not content.strip() or text.endswith(content.strip())

    def conclude(self, content: str, reason: StopReason = "complete") -> None:
        """At the end of the turn, record what was streamed, and what was not, as a reply."""
        if not self.has_said(content):
            streamed = "".join(self._texts)
            if not content.startswith(streamed):  # other words than those that were streamed
                self._record_streamed(reason)
                streamed = ""
            self.stream(TextDelta(content[len(streamed) :]))
        self._record_streamed(reason)

    def _record_streamed(self, reason: StopReason) -> None:
        if "".join(self._texts).strip():
            self._record(ResponseCompleted(reason, Message("assistant")))

    def _record(self, reply: ResponseCompleted, *, grows: bool = False) -> ResponseCompleted:
        """Record a reply after what was streamed before it. `grows`: as a part of the last one."""
        assert reply.message is not None
        grows = grows or bool(self._history.open_calls)
        if not grows:
            self._same_step, self._started = self._started, set()
        parts = (*self._take_streamed(), *reply.message.parts)
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

    def _take_streamed(self) -> tuple[Part, ...]:
        thought, text = "".join(self._thoughts), "".join(self._texts)
        self._thoughts.clear()
        self._texts.clear()
        parts: tuple[Part, ...] = (Thinking(thought),) if thought.strip() else ()
        return (*parts, Text(text)) if text.strip() else parts

    def _with_unique_id(self, call: ToolCall) -> ToolCall:
        """Return the call with an id that no other call of the turn has."""
        name, number = call.id or "call", len(self._call_ids) + 1
        unique = call.id
        while not unique or unique in self._call_ids:
            unique, number = f"{name}-{number}", number + 1
        self._call_ids.add(unique)
        return call if unique == call.id else replace(call, id=unique)


class MappedCall(Struct, frozen=True):
    """A call as one of our tools, and how changed arguments become the agent's again."""

    name: str
    arguments: dict[str, Any]
    back: Back


class ToolNameMapper:
    """Maps an agent's names of tools to ours, so that the gate judges what it knows. Pure.

    `translate` is handed in (`EngineConfig.translate`); a name that it does not know stays as it
    is. `ours` returns the names of our own tools.
    """

    def __init__(
        self, translate: Translate | None, root: str, ours: Callable[[], Container[str]]
    ) -> None:
        self._translate = translate
        self._root = root
        self._ours = ours

    def map_call(self, name: str, arguments: Any) -> MappedCall:
        """Return the call as one of our tools. Raise `TypeError` … if its arguments are invalid."""
        if self._translate is not None and isinstance(arguments, dict) and name not in self._ours():
            mapped = self._translate(name, arguments, self._root)
            if mapped is not None:
                return MappedCall(*mapped)
        return MappedCall(name, arguments, _unchanged)

    def map_reply(self, reply: ResponseCompleted) -> ResponseCompleted:
        """Return a whole reply with its calls as calls of our tools."""
        if self._translate is None or reply.message is None or not reply.message.tool_calls:
            return reply
        parts = [
            self._map(part) if isinstance(part, ToolCall) else part for part in reply.message.parts
        ]
        return replace(reply, message=replace(reply.message, parts=tuple(parts)))

    def _map(self, call: ToolCall) -> ToolCall:
        try:
            mapped = self.map_call(call.name, call.arguments)
        except (TypeError, ValueError, AttributeError, RecursionError):
            return call  # the gate says so if it is asked
        if mapped.back is _unchanged:
            return call
        return ToolCall(call.id, mapped.name, mapped.arguments)


def _unchanged(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments
