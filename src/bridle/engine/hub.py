"""The stream of all open sessions of an engine: which events it has, and who gets them.

`HubEvent.message_id` is the id of the message that a record belongs to, as `History` gives it:
- A streamed delta belongs to a reply that has no number yet. Until the reply is whole, it is named
  after the number of its first record: `r12`. The reply itself (`reply`) has its final id, `m17`,
  and its earlier name as `draft`.
- What is asked, started and answered for a call belongs to the reply that made the call, `m17`; the
  result as a message of its own (`tool_result`) is `m17r`.
- A turn's end belongs to the turn's newest reply: `complete`, or `error` for every other ending,
  which the record names. It is empty if there is no reply, or if it is not known.
- A foreign agent's `activity` belongs to the reply that is being written; `attached` and
  `responded` belong to the newest reply.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.history import History
from bridle.engine.stream import Broadcast, Channel, Watcher, start_now
from bridle.errors import SessionError
from bridle.events import (
    AgentActivity,
    AgentAttached,
    AgentResponded,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Recorded,
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
from bridle.protocols.store import Record

Topic = Literal["agent", "tool", "sessions"]
TOPICS: tuple[Topic, ...] = ("agent", "tool", "sessions")
NO_RECORD = Record(0, "", TraceEvent("none"))


class LiveSummary(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An open session in one line. `waiting` counts its pending approvals.

    `cost` is the sum of what could be priced; `unpriced` counts the replies that could not.
    `parent` is the session that started this one as a subagent.
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


class HubEvent(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that happened in a session.

    An event of the topic `sessions` has a `summary`, and its record has the number 0.
    """

    session_id: str
    message_id: str
    topic: Topic | Literal[""]
    name: str
    record: Record
    summary: LiveSummary | None = None
    draft: str = ""


class OpenSession(Protocol):
    """The part of an open session that the hub reads."""

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


class SessionListener:
    """Turns the records of one session into events, each with the message that it belongs to."""

    def __init__(
        self,
        session: OpenSession,
        on_records: Callable[["SessionListener", Sequence[Record]], None],
    ) -> None:
        self.session = session
        self._on_records = on_records
        self._draft = ""  # the name of the reply that is being written
        self._reply: str | None = None  # the newest of this turn; None: not looked up yet
        self._open_calls: set[str] = set()  # calls of that reply without a result
        self._last_summary: LiveSummary | None = None

    def open(self) -> None:
        """Start to listen."""
        self._draft, self._reply, self._last_summary = "", None, self._summary_without_seq()
        self.session.broadcast.set_listener(self._forward)

    def close(self) -> None:
        """Stop listening."""
        self.session.broadcast.set_listener(None)

    def summary_event(self, name: str) -> HubEvent:
        """Return an event with the session's summary."""
        return HubEvent(self.session.id, "", "sessions", name, NO_RECORD, self.summary())

    def summary(self) -> LiveSummary:
        """Return the session in one line."""
        return replace(self._summary_without_seq(), seq=self.session.seq)

    def has_changed(self) -> bool:
        """Has the summary changed since this was last called?"""
        before, self._last_summary = self._last_summary, self._summary_without_seq()
        return before != self._last_summary

    def events_of(self, record: Record) -> tuple[HubEvent, ...]:
        """Return the events of one record: none, one or two."""
        if (convert := _CONVERTERS.get(type(record.event))) is None:
            return ()
        if self._reply is None:
            self._reply = _reply_before(self.session.history, record.seq)
            self._open_calls = self.session.history.open_ids
        return convert(self, record, record.event)

    def _forward(self, records: Sequence[Record]) -> None:
        self._on_records(self, records)

    def _summary_without_seq(self) -> LiveSummary:
        """Leave out the number of the newest record, which every delta changes."""
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

    def _agent_event(self, name: str, message_id: str | None, record: Record) -> HubEvent:
        return HubEvent(self.session.id, message_id or "", "agent", name, record)

    def _tool_event(self, name: str, record: Record) -> HubEvent:
        return HubEvent(self.session.id, self._reply or "", "tool", name, record)

    def _on_streamed(self, record: Record, event: Any) -> tuple[HubEvent, ...]:
        self._draft = self._draft or f"r{record.seq}"
        name = _STREAM_NAMES.get(type(event))
        return () if name is None else (self._agent_event(name, self._draft, record),)

    def _on_discarded(self, record: Record, event: ReplyDiscarded) -> tuple[HubEvent, ...]:
        draft, self._draft = self._draft, ""
        return (self._agent_event("reply_discarded", draft, record),)

    def _on_usage(self, record: Record, event: UsageReported) -> tuple[HubEvent, ...]:
        if event.purpose != "turn":  # a title, a summary: no message of the conversation
            return (self._agent_event("usage", "", record),)
        self._draft = self._draft or f"r{record.seq}"
        return (self._agent_event("usage", self._draft, record),)

    def _on_reply(self, record: Record, event: ResponseCompleted) -> tuple[HubEvent, ...]:
        draft, self._draft = self._draft, ""
        if event.message is None or not event.message.parts:
            return ()
        # A reply that grows is one message while its calls are open.
        if not (event.grows and self._open_calls):
            self._reply, self._open_calls = f"m{record.seq}", set()
        self._open_calls.update(call.id for call in event.message.tool_calls)
        return (replace(self._agent_event("reply", self._reply, record), draft=draft),)

    def _on_call_intended(self, record: Record, event: CallIntended) -> tuple[HubEvent, ...]:
        return (self._tool_event("started", record),)

    def _on_result(self, record: Record, event: ToolResultEvent) -> tuple[HubEvent, ...]:
        message_id = f"{self._reply}r" if self._reply else ""
        self._open_calls.discard(event.output.call_id)
        name = "failed" if event.output.is_error else "completed"
        return self._agent_event("tool_result", message_id, record), self._tool_event(name, record)

    def _on_approval_asked(self, record: Record, event: ApprovalAsked) -> tuple[HubEvent, ...]:
        return (self._agent_event("approval_required", self._reply, record),)

    def _on_approval_answered(
        self, record: Record, event: ApprovalAnswered
    ) -> tuple[HubEvent, ...]:
        return (self._agent_event("approval_answered", self._reply, record),)

    def _on_turn_parked(self, record: Record, event: TurnParked) -> tuple[HubEvent, ...]:
        return (self._agent_event("parked", self._reply, record),)

    def _on_agent_event(self, record: Record, event: Any) -> tuple[HubEvent, ...]:
        """Convert what a foreign agent reports of itself."""
        message_id = self._draft if isinstance(event, AgentActivity) else ""
        return (self._agent_event(_AGENT_NAMES[type(event)], message_id or self._reply, record),)

    def _on_turn_ended(self, record: Record, event: TurnEnded) -> tuple[HubEvent, ...]:
        reply, self._reply, self._draft = self._reply, "", ""
        name = "complete" if event.reason == "done" else "error"
        return (self._agent_event(name, reply, record),)


_STREAM_NAMES: dict[type, str] = {
    TextDelta: "text_delta",
    ThinkingDelta: "thinking_delta",
    ToolCallReady: "tool_call",
}
_AGENT_NAMES: dict[type, str] = {
    AgentActivity: "activity",
    AgentAttached: "attached",
    AgentResponded: "responded",
}
_CONVERTERS: dict[type, Callable[[SessionListener, Record, Any], tuple[HubEvent, ...]]] = {
    TextDelta: SessionListener._on_streamed,
    ThinkingDelta: SessionListener._on_streamed,
    ToolCallStarted: SessionListener._on_streamed,
    ToolCallArgsDelta: SessionListener._on_streamed,
    ToolCallReady: SessionListener._on_streamed,
    ReplyDiscarded: SessionListener._on_discarded,
    UsageReported: SessionListener._on_usage,
    ResponseCompleted: SessionListener._on_reply,
    CallIntended: SessionListener._on_call_intended,
    ToolResultEvent: SessionListener._on_result,
    ApprovalAsked: SessionListener._on_approval_asked,
    ApprovalAnswered: SessionListener._on_approval_answered,
    TurnParked: SessionListener._on_turn_parked,
    TurnEnded: SessionListener._on_turn_ended,
    AgentActivity: SessionListener._on_agent_event,
    AgentAttached: SessionListener._on_agent_event,
    AgentResponded: SessionListener._on_agent_event,
}


def _reply_before(history: History, seq: int) -> str:
    """Return the running turn's newest reply that was whole before that record."""
    messages = history.transcript
    for message in reversed(messages[messages.turn :]):
        number = message.id[1:]
        if message.role == "assistant" and number.isdecimal() and int(number) < seq:
            return message.id
    return ""


class Hub:
    """Listens to every open session while somebody subscribes, and publishes events by topic."""

    def __init__(self) -> None:
        self._listeners: dict[str, SessionListener] = {}
        self._channels: dict[Topic | None, Channel[HubEvent]] = {
            topic: Channel(self._update_listening) for topic in (None, *TOPICS)
        }
        self._listening = False
        self._changed: dict[str, None] = {}  # sessions whose summary may have changed
        self._timer: asyncio.Handle | None = None
        self._on_records = self._publish_records  # one bound method for all listeners

    def add(self, session: OpenSession) -> None:
        """Add a session that was opened."""
        listener = self._listeners[session.id] = SessionListener(session, self._on_records)
        if self._listening:
            listener.open()
            self._publish([listener.summary_event("opened")])

    def remove(self, session: OpenSession) -> None:
        """Remove a session that was closed."""
        listener = self._listeners.get(session.id)
        if listener is None or listener.session is not session:
            return
        del self._listeners[session.id]
        listener.close()
        if self._listening:
            self._publish([listener.summary_event("closed")])

    def end(self) -> None:
        """End all subscriptions."""
        if self._timer is not None:
            self._timer.cancel()
        for channel in self._channels.values():
            channel.end()

    def summaries(self) -> list[LiveSummary]:
        """Return all open sessions as they are now, in the order in which they were opened."""
        return [listener.summary() for listener in self._listeners.values()]

    def subscribe(self, topic: Topic | None = None) -> AsyncGenerator[HubEvent, None]:
        """Yield what happens from now on in all sessions, of one topic or of all.

        A subscriber that is too slow gets a last event named "resync"; it can continue each session
        after the number of the last record it got.
        """
        if topic not in self._channels:
            raise SessionError(f"there is no topic {topic!r}", hint=f"Choose {', '.join(TOPICS)}.")
        return start_now(_listen(self._channels[topic]))

    def _update_listening(self) -> None:
        """Listen to the sessions only while somebody subscribes."""
        wanted = any(len(channel) for channel in self._channels.values())
        if wanted != self._listening:
            self._listening = wanted
            for listener in self._listeners.values():
                listener.open() if wanted else listener.close()

    def _publish_records(self, listener: SessionListener, records: Sequence[Record]) -> None:
        self._publish([event for record in records for event in listener.events_of(record)])
        summaries_wanted = len(self._channels[None]) + len(self._channels["sessions"]) > 0
        if summaries_wanted and any(isinstance(record.event, Recorded) for record in records):
            self._changed[listener.session.id] = None
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_soon(self._publish_changed)

    def _publish_changed(self) -> None:
        """Publish new summaries one round later, when the sessions themselves are up to date."""
        self._timer = None
        changed, self._changed = self._changed, {}
        listeners = [self._listeners[name] for name in changed if name in self._listeners]
        self._publish(
            [listener.summary_event("changed") for listener in listeners if listener.has_changed()]
        )

    def _publish(self, events: Sequence[HubEvent]) -> None:
        for topic, channel in self._channels.items():
            if len(channel):
                channel.publish([event for event in events if topic in (None, event.topic)])


async def _listen(channel: Channel[HubEvent]) -> AsyncGenerator[HubEvent, None]:
    watcher: Watcher[HubEvent] = channel.join()
    resync = HubEvent("", "", "", "resync", Record(0, "", TraceEvent("resync")))
    try:
        yield resync  # discarded: see `start_now`
        while batch := await watcher.batch():
            for event in batch:
                yield event
        if watcher.lagging:
            yield resync
    finally:
        channel.leave(watcher)
