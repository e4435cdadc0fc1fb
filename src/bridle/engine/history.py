"""What the log adds up to: the conversation, the use, the calls that are open. Pure folds.

Each record is applied once, and a turn costs the same at message 10 and at message 10,000.
Nothing here waits, writes or knows a provider.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolResultEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, ToolOutput, Transcript
from bridle.promises.store import Record
from bridle.usage import ExecutionMetrics

UNKNOWN = "no result was recorded: it is not known whether this call ran"


class History:
    """The folds of one session, grown record by record."""

    def __init__(self) -> None:
        self.title = ""
        self.workspace = ""
        self.turn = 0
        self.running = False
        self.metrics = ExecutionMetrics()
        self.todos: tuple[Todo, ...] = ()
        self.pending: dict[str, ApprovalAsked] = {}
        self.waiting: dict[int, PromptReceived] = {}  # sent, and not yet in the conversation
        self._settled = Transcript()
        self._open: Message | None = None  # a reply whose calls are not all answered
        self._outputs: dict[str, ToolOutput | None] = {}  # of its calls, in their order

    @property
    def transcript(self) -> Transcript:
        """The conversation as a valid request: a call that is still open gets a stand-in result."""
        return self._closed() if self._open is not None else self._settled

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The calls of the newest reply that have no result yet."""
        return tuple(call_id for call_id, output in self._outputs.items() if output is None)

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record, record.event)

    def _closed(self) -> Transcript:
        reply = self._open
        if reply is None:
            return self._settled
        outputs: tuple[ToolOutput, ...]
        if None in self._outputs.values():
            outputs = tuple(
                self._outputs.get(call.id) or ToolOutput(call.id, UNKNOWN, True, call.name)
                for call in reply.tool_calls
            )
        else:
            outputs = tuple(filter(None, self._outputs.values()))
        return self._settled.plus(reply).plus(Message("tool", outputs, f"{reply.id}r"))

    def _close(self) -> None:
        self._settled = self._closed()
        self._open = None
        self._outputs = {}

    def _start(self, record: Record, event: SessionStarted) -> None:
        self.workspace = self.workspace or event.workspace
        self.running = False

    def _prompt(self, record: Record, event: PromptReceived) -> None:
        self.turn = max(self.turn, event.turn)
        if event.turn:  # in a log of another program nothing waits: the message follows at once
            self.waiting[record.seq] = event
        self.title = self.title or " ".join(event.content.split())[:80]

    def _message(self, record: Record, event: MessageAdded) -> None:
        if self.waiting.pop(event.prompt, None) is not None:
            self.running = True
        if event.message.role == "tool":
            for output in event.message.tool_results:
                self._answer(output)
        else:
            self._enter(_dated(event.message, record))

    def _reply(self, record: Record, event: ResponseCompleted) -> None:
        if event.message is None or not event.message.parts:
            return
        self._enter(_dated(event.message, record))

    def _enter(self, message: Message) -> None:
        """The next message; one with calls stays open until they are answered."""
        self._close()
        if calls := message.tool_calls:
            self._open = message
            self._outputs = dict.fromkeys(call.id for call in calls)
        else:
            self._settled = self._settled.plus(message)

    def _result(self, record: Record, event: ToolResultEvent) -> None:
        self._answer(event.output)

    def _answer(self, output: ToolOutput) -> None:
        if self._outputs.get(output.call_id, output) is not None:
            return  # a second result, or one that nobody asked for: the first stands
        self._outputs[output.call_id] = output
        if None not in self._outputs.values():
            self._close()

    def _intent(self, record: Record, event: CallIntended) -> None:
        self.metrics = replace(self.metrics, tool_calls=self.metrics.tool_calls + 1)

    def _usage(self, record: Record, event: UsageReported) -> None:
        context = self.metrics.context_tokens
        self.metrics = self.metrics.plus(event.usage, event.cost)
        if event.purpose != "turn":  # a title says nothing of how full the window is
            self.metrics = replace(self.metrics, context_tokens=context)

    def _asked(self, record: Record, event: ApprovalAsked) -> None:
        self.pending[event.call.id] = event

    def _answered(self, record: Record, event: ApprovalAnswered) -> None:
        self.pending.pop(event.call_id, None)

    def _todos(self, record: Record, event: TodosChanged) -> None:
        self.todos = event.todos

    def _titled(self, record: Record, event: TitleChanged) -> None:
        self.title = event.title

    def _ended(self, record: Record, event: TurnEnded) -> None:
        self.turn = max(self.turn, event.turn)
        self.running = False
        self.pending.clear()


def _dated(message: Message, record: Record) -> Message:
    return Message(message.role, message.parts, f"m{record.seq}", record.timestamp)


_FOLDS: dict[type, Callable[[History, Record, Any], None]] = {
    SessionStarted: History._start,
    PromptReceived: History._prompt,
    MessageAdded: History._message,
    ResponseCompleted: History._reply,
    ToolResultEvent: History._result,
    CallIntended: History._intent,
    UsageReported: History._usage,
    ApprovalAsked: History._asked,
    ApprovalAnswered: History._answered,
    TodosChanged: History._todos,
    TitleChanged: History._titled,
    TurnEnded: History._ended,
}


def fold(records: Iterable[Record]) -> History:
    """The folds of a whole log, or of any beginning of one."""
    history = History()
    for record in records:
        history.apply(record)
    return history
