"""What is told of all sessions, and how a record becomes it. Pure, but for a look at the session.

`Told.message_id` is the id of the message that a record belongs to, as `History` gives it:
- what streams belongs to a reply that has no number yet. Until it is whole it is called by the
  number of the first record that was heard of it: `r12`. The reply itself (`reply`) has the lasting
  id, `m17`, and says in `draft` what it was called before;
- what is asked, begun and answered for a call belongs to the reply that asked for it, `m17`; the
  result as part of a message of its own (`tool_result`) is in `m17r`;
- a turn's end belongs to the turn's newest reply: `complete`, or `error` for every other ending,
  which the record names. Empty: there is none, or it is not known;
- another agent's `activity` belongs to the reply under way, that it has `attached` and how it
  `responded` to the newest one.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.broadcast import Broadcast
from bridle.engine.history import History
from bridle.events import (
    AgentActivity,
    AgentAttached,
    AgentResponded,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    ReplyDiscarded,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.promises.store import Record

Topic = Literal["agent", "tool", "sessions"]
TOPICS: tuple[Topic, ...] = ("agent", "tool", "sessions")
NO_RECORD = Record(0, "", TraceEvent("none"))


class LiveSummary(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An open session in one line. `waiting` counts the questions that nobody has answered.

    `cost` is the sum of what could be priced; `unpriced` counts the replies that could not.
    `parent` is the session whose task this one is.
    """

    id: str
    title: str = ""
    busy: bool = False
    waiting: int = 0
    parked: bool = False
    cost: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    seq: int = 0
    parent: str = ""


class Told(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that happened in a session.

    With the topic `sessions` comes a `summary`, and its record has the number 0.
    """

    session_id: str
    message_id: str
    topic: Topic | Literal[""]
    name: str
    record: Record
    summary: LiveSummary | None = None
    draft: str = ""


class Open(Protocol):
    """As much of an open session as the hub looks at."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def seq(self) -> int: ...
    @property
    def history(self) -> History: ...
    @property
    def broadcast(self) -> Broadcast: ...


class Ear:
    """One session as it is heard: to which message do its records belong?"""

    def __init__(self, session: Open, hear: Callable[["Ear", Sequence[Record]], None]) -> None:
        self.session = session
        self._hear = hear
        self._draft = ""  # what the reply under way is called
        self._reply: str | None = None  # the newest of this turn; None: it is looked up
        self._open: set[str] = set()  # its calls that have no result
        self._shown: LiveSummary | None = None

    def open(self) -> None:
        """Listen."""
        self._draft, self._reply, self._shown = "", None, self._bare()
        self.session.broadcast.overhear(self._overheard)

    def close(self) -> None:
        """Listen no longer."""
        self.session.broadcast.overhear(None)

    def listed(self, name: str) -> Told:
        """The session's summary, as it is told."""
        return Told(self.session.id, "", "sessions", name, NO_RECORD, self.summary())

    def summary(self) -> LiveSummary:
        """The session in one line."""
        return replace(self._bare(), seq=self.session.seq)

    def has_changed(self) -> bool:
        """Is the line another one than when this was last asked?"""
        before, self._shown = self._shown, self._bare()
        return before != self._shown

    def tell(self, record: Record) -> tuple[Told, ...]:
        """What one record is to those who listen: nothing, one thing, or two."""
        if (name := _NAMES.get(type(record.event))) is None:
            return ()
        if self._reply is None:
            self._reply = _reply_before(self.session.history, record.seq)
            self._open = self.session.history.open_ids
        return name(self, record, record.event)

    def _overheard(self, records: Sequence[Record]) -> None:
        self._hear(self, records)

    def _bare(self) -> LiveSummary:
        """Without the number of its newest record, which every delta changes."""
        session, history = self.session, self.session.history
        used = history.metrics
        return LiveSummary(
            session.id,
            session.title,
            session.is_busy and history.running > 0,
            len(history.pending),
            history.parked,
            used.cost,
            used.total_tokens,
            used.unpriced,
            parent=history.parent,
        )

    def _agent(self, name: str, message_id: str | None, record: Record) -> Told:
        return Told(self.session.id, message_id or "", "agent", name, record)

    def _tool(self, name: str, record: Record) -> Told:
        return Told(self.session.id, self._reply or "", "tool", name, record)

    def _streamed(self, record: Record, event: Any) -> tuple[Told, ...]:
        self._draft = self._draft or f"r{record.seq}"
        name = _STREAMED.get(type(event))
        return () if name is None else (self._agent(name, self._draft, record),)

    def _discarded(self, record: Record, event: ReplyDiscarded) -> tuple[Told, ...]:
        draft, self._draft = self._draft, ""
        return (self._agent("reply_discarded", draft, record),)

    def _used(self, record: Record, event: UsageReported) -> tuple[Told, ...]:
        if event.purpose != "turn":  # a title, a summary: no message of the conversation
            return (self._agent("usage", "", record),)
        self._draft = self._draft or f"r{record.seq}"
        return (self._agent("usage", self._draft, record),)

    def _whole(self, record: Record, event: ResponseCompleted) -> tuple[Told, ...]:
        draft, self._draft = self._draft, ""
        if event.message is None or not event.message.parts:
            return ()
        if not (event.grows and self._open):  # what grows is the same message while it is open
            self._reply, self._open = f"m{record.seq}", set()
        self._open.update(call.id for call in event.message.tool_calls)
        return (replace(self._agent("reply", self._reply, record), draft=draft),)

    def _begun(self, record: Record, event: CallIntended) -> tuple[Told, ...]:
        return (self._tool("started", record),)

    def _result(self, record: Record, event: ToolResultEvent) -> tuple[Told, ...]:
        message_id = f"{self._reply}r" if self._reply else ""
        self._open.discard(event.output.call_id)
        name = "failed" if event.output.is_error else "completed"
        return self._agent("tool_result", message_id, record), self._tool(name, record)

    def _asked(self, record: Record, event: ApprovalAsked) -> tuple[Told, ...]:
        return (self._agent("approval_required", self._reply, record),)

    def _answered(self, record: Record, event: ApprovalAnswered) -> tuple[Told, ...]:
        return (self._agent("approval_answered", self._reply, record),)

    def _parked(self, record: Record, event: TurnParked) -> tuple[Told, ...]:
        return (self._agent("parked", self._reply, record),)

    def _by_agent(self, record: Record, event: Any) -> tuple[Told, ...]:
        """What another agent, who carries the turn, says of itself."""
        message_id = self._draft if isinstance(event, AgentActivity) else ""
        return (self._agent(_OF_AGENTS[type(event)], message_id or self._reply, record),)

    def _ended(self, record: Record, event: TurnEnded) -> tuple[Told, ...]:
        reply, self._reply, self._draft = self._reply, "", ""
        name = "complete" if event.reason == "done" else "error"
        return (self._agent(name, reply, record),)


_STREAMED: dict[type, str] = {
    TextDelta: "text_delta",
    ThinkingDelta: "thinking_delta",
    ToolCallReady: "tool_call",
}
_OF_AGENTS: dict[type, str] = {
    AgentActivity: "activity",
    AgentAttached: "attached",
    AgentResponded: "responded",
}
_NAMES: dict[type, Callable[[Ear, Record, Any], tuple[Told, ...]]] = {
    TextDelta: Ear._streamed,
    ThinkingDelta: Ear._streamed,
    ToolCallStarted: Ear._streamed,
    ToolCallArgsDelta: Ear._streamed,
    ToolCallReady: Ear._streamed,
    ReplyDiscarded: Ear._discarded,
    UsageReported: Ear._used,
    ResponseCompleted: Ear._whole,
    CallIntended: Ear._begun,
    ToolResultEvent: Ear._result,
    ApprovalAsked: Ear._asked,
    ApprovalAnswered: Ear._answered,
    TurnParked: Ear._parked,
    TurnEnded: Ear._ended,
    AgentActivity: Ear._by_agent,
    AgentAttached: Ear._by_agent,
    AgentResponded: Ear._by_agent,
}


def _reply_before(history: History, seq: int) -> str:
    """The newest reply of the turn under way that was whole before that record."""
    messages = history.transcript
    for message in reversed(messages[messages.turn :]):
        number = message.id[1:]
        if message.role == "assistant" and number.isdecimal() and int(number) < seq:
            return message.id
    return ""
