"""A session that was, as an editor is told it: the whole conversation, from the log. Pure.

What was shortened for the model is told as it was; what was taken back by a rewind is not. A reply
that is still being written is told as far as it has come.
"""

from collections.abc import Iterable, Iterator

from acp import schema
from pydantic import BaseModel

from bridle.agents.acp.updates import to_update
from bridle.events import (
    Event,
    MessageAdded,
    ReplyDiscarded,
    ResponseCompleted,
    Rewound,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
)
from bridle.messages import Message, Part, Text, Thinking, ToolCall, ToolOutput
from bridle.protocols.store import Record
from bridle.server.acp.updates import Calls, prompt_updates


class Replay:
    """What was said, as far as it stands, and the todo list."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.todos = TodosChanged()
        self._writing: list[Part] = []  # of the reply that is not whole yet

    def take(self, record: Record) -> None:
        """One record more."""
        match record.event:
            case MessageAdded(message=message, by=by):
                if by != "bridle":  # then the model was asked to go on with a reply
                    self.messages.append(message)
            case ReplyDiscarded():
                self._writing.clear()
            case ResponseCompleted(message=message):
                self._writing.clear()
                if message is not None:
                    self.messages.append(message)
            case ToolResultEvent(output=output):
                self.messages.append(Message("tool", (output,)))
            case Rewound(messages=messages, todos=todos):
                self.messages, self.todos = list(messages), TodosChanged(todos)
            case TodosChanged() as todos:
                self.todos = todos
            case other:
                self._writing += _written(other)

    def updates(self, root: str) -> Iterator[BaseModel]:
        """All of it, in order."""
        calls = Calls(root)
        for message in [*self.messages, Message("assistant", tuple(self._writing))]:
            if message.role == "user":
                yield from prompt_updates(message.parts)
            else:
                yield from filter(None, (_update(one, calls) for one in message.parts))
        if self.todos.todos and (plan := to_update(self.todos)) is not None:
            yield plan


def read_replay(records: Iterable[Record], last: int) -> Replay:
    """What the records up to that number add up to."""
    past = Replay()
    for record in records:
        if record.seq > last:
            break
        past.take(record)
    return past


def _written(event: Event) -> tuple[Part, ...]:
    match event:
        case TextDelta(text=text):
            return (Text(text),)
        case ThinkingDelta(text=text):
            return (Thinking(text),)
        case ToolCallReady(call=call):
            return (call,)
    return ()


def _update(part: Part, calls: Calls) -> BaseModel | None:
    match part:
        case Text(text=text) if text:
            return to_update(TextDelta(text))
        case Thinking(text=text) if text:
            return to_update(ThinkingDelta(text))
        case ToolCall():
            return calls.start(part, ())
        case ToolOutput():
            return calls.end(part)
    return None


def session_info_update(title: str, updated: str = "") -> schema.SessionInfoUpdate:
    """The session has this title."""
    return schema.SessionInfoUpdate(
        session_update="session_info_update", title=title or None, updated_at=updated or None
    )
