"""The state that a session's log adds up to: conversation, calls, approvals, turns, use. A fold.

Each record is applied once, and a turn costs the same at message 10 and at message 10,000. This
module does no I/O.

A reply stays open until each of its calls has a result, so the conversation is always a valid
request. Call ids are unique in it, because two of the vendors demand that: local servers count from
zero in every reply, and a session may continue with another model. In the log a call keeps its own
id; in the conversation a repeated id gets the number of its reply as a suffix.
"""

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.grants import grants_of_answer, similarity_key
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    ChildEnded,
    ChildOf,
    Compacted,
    Forked,
    Grant,
    GrantRevoked,
    InboxMessageRefused,
    InterruptRequested,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TagsChanged,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolResultEvent,
    TurnEnded,
    TurnParked,
    UnknownCallReported,
    UsageReported,
    add_request,
    take_request,
)
from bridle.messages import Message, Part, ToolCall, ToolOutput, Transcript
from bridle.policy import MODES, Mode
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics

UNKNOWN = "no result was recorded: it is not known whether this call ran"
NOT_RUN = "not run: the turn ended before it began"
_MODES: dict[str, Mode] = {mode: mode for mode in MODES}
_MAX_INBOX_IDS = 256  # the newest that were handled: a file that is still there may be one of them


class OpenCall(Struct, frozen=True):
    """A call without a result. "unknown": it may have run, and the log does not say whether."""

    call: ToolCall
    state: Literal["not started", "unknown"]
    reads: bool = False


class History:
    """The state of one session, grown record by record."""

    def __init__(self) -> None:
        self._has_start = False
        self.title = self.workspace = ""
        self.parent = ""  # the session that started this one as a subagent
        self.tags: tuple[str, ...] = ()
        self.todos: tuple[Todo, ...] = ()
        self.inbox_ids: dict[str, None] = {}  # ids of inbox messages that were handled
        self.attached: dict[str, AgentAttached] = {}  # foreign agents' own conversations, by agent

        self.turn = 0  # the newest turn that was given a number
        self.running = 0  # the turn that has started and not ended; 0: none
        self.parked = False  # the newest turn was recorded as parked, and has not run since
        self.waiting: dict[int, PromptReceived] = {}  # sent, and not yet in the conversation
        self.metrics = ExecutionMetrics()
        self.before = ExecutionMetrics()  # what had been used when the running turn began
        self.steps = 0  # replies in the running turn

        self.mode: Mode | Literal[""] = ""  # set for this session; empty: not set
        self.pending: dict[str, ApprovalAsked] = {}  # open approval requests, by fingerprint
        self.answers: dict[str, ApprovalAnswered] = {}  # to calls of this step, by call id
        self.grants: dict[str, Grant] = {}  # what a person allowed for the session, by id
        self.times: dict[str, int] = {}  # how often similar calls were allowed

        self._closed = Transcript()
        self._call_ids: set[str] = set()  # of the calls in `_closed`
        self._open_reply: Message | None = None  # the reply whose calls do not all have results
        self._is_own = False  # is it from this log, so that its intents are recorded?
        self._outputs: dict[str, ToolOutput | None] = {}  # of its calls, in order
        self._newest_output_at = ""  # when the newest of its results was recorded
        self._missing_outputs = 0  # calls without one
        self._intents: dict[str, bool] = {}  # its calls that have started: do they only read?
        self.reported_unknown: set[str] = set()  # calls reported as unknown, without a result yet
        self.lost: dict[str, OpenCall] = {}  # calls that never got a result before the next reply
        self._cached: tuple[tuple[Message, int, int], Transcript] | None = None

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _HANDLERS.get(type(record.event))
        if fold is not None:
            fold(self, record, record.event)

    @property
    def transcript(self) -> Transcript:
        """The conversation as a valid request: a call that is still open gets a stand-in result."""
        if self._open_reply is None:
            return self._closed
        state = (self._open_reply, len(self._intents), self._missing_outputs)
        if self._cached is None or self._cached[0] != state:
            reply, answers = self._closed_step(self._open_reply)
            self._cached = state, self._closed.copy().plus(reply).plus(answers)
        return self._cached[1]

    @property
    def newest_text(self) -> str:
        """The text of the newest message, if the model wrote it."""
        newest = self._open_reply or (self._closed[-1] if len(self._closed) else None)
        return newest.content if newest is not None and newest.role == "assistant" else ""

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls of the newest reply that have no result yet."""
        if self._open_reply is None:
            return ()
        return tuple(
            OpenCall(call, self._state(call.id), self._intents.get(call.id, False))
            for call in self._open_reply.tool_calls
            if self._outputs.get(call.id) is None
        )

    @property
    def is_parked(self) -> bool:
        """Can the running turn be resumed, because it waits for approvals and nothing else?"""
        return self.running > 0 and (self.parked or bool(self.pending))

    @property
    def resumable_calls(self) -> tuple[ToolCall, ...]:
        """The calls with which a parked turn is resumed; one that only reads may run again."""
        return tuple(
            open_call.call
            for open_call in self.open_calls
            if open_call.state == "not started" or open_call.reads
        )

    @property
    def open_ids(self) -> set[str]:
        """The ids of all calls of the reply that is open, answered or not."""
        return set(self._outputs) if self._open_reply is not None else set()

    def checkpoint(self, previous: str) -> Checkpoint:
        """Return everything so far as one event; `previous` is the hash of the newest record."""
        if not self._is_own:  # history brought in: nobody will answer its calls any more
            self._close_step()
        return Checkpoint(
            previous=previous,
            messages=tuple(self._closed),
            title=self.title,
            tags=self.tags,
            workspace=self.workspace,
            turn=self.turn,
            running=self.running,
            parked=self.parked,
            metrics=self.metrics,
            todos=self.todos,
            waiting=tuple(self.waiting.items()),
            asked=tuple(self.pending.values()),
            answered=tuple(self.answers.values()),
            opened=self._open_reply,
            outputs=tuple(filter(None, self._outputs.values())),
            intents=tuple(self._intents.items()),
            letters=tuple(self.inbox_ids),
            before=self.before,
            steps=self.steps,
            mode=self.mode,
            granted=tuple(self.grants.values()),
            times=tuple(self.times.items()),
            attached=tuple(self.attached.values()),
            parent=self.parent,
        )

    # -- the session

    def _on_session_started(self, record: Record, event: SessionStarted) -> None:
        self._has_start = True
        self.workspace = self.workspace or event.workspace
        if event.resumed and self.mode == "auto":
            self.mode = ""  # `auto` ends with the process in which it was chosen

    def _on_child_of(self, record: Record, event: ChildOf) -> None:
        self.parent = event.parent

    def _on_todos(self, record: Record, event: TodosChanged) -> None:
        self.todos = event.todos

    def _on_agent_attached(self, record: Record, event: AgentAttached) -> None:
        self.attached[event.agent] = event

    def _on_title(self, record: Record, event: TitleChanged) -> None:
        self.title = event.title

    def _on_tags(self, record: Record, event: TagsChanged) -> None:
        self.tags = event.tags

    def _add_inbox_id(self, inbox_id: str) -> None:
        self.inbox_ids[inbox_id] = None
        if len(self.inbox_ids) > _MAX_INBOX_IDS:
            del self.inbox_ids[next(iter(self.inbox_ids))]

    def _on_inbox_message(
        self, record: Record, event: InterruptRequested | InboxMessageRefused
    ) -> None:
        if event.letter:
            self._add_inbox_id(event.letter)

    def _on_unknown_reported(self, record: Record, event: UnknownCallReported) -> None:
        self.reported_unknown.add(event.call_id)

    def _on_forked(self, record: Record, event: Forked) -> None:
        """Drop what belongs to the session that this one was forked from, but for its messages."""
        self._close_step()
        self._end_turn()
        self.mode = self.parent = ""
        tables: tuple[dict[Any, Any], ...] = (self.lost, self.waiting, self.grants, self.times)
        for table in (*tables, self.inbox_ids, self.attached):
            table.clear()
        self.metrics = ExecutionMetrics(context_tokens=self.metrics.context_tokens)

    def _on_checkpoint(self, record: Record, event: Checkpoint) -> None:
        """Take the whole state from a checkpoint at the beginning of a log; ignore a later one."""
        if self._has_start:
            return
        self._has_start = True
        self._closed, self._call_ids = Transcript(event.messages), _call_ids(event.messages)
        self.title, self.tags, self.workspace = event.title, event.tags, event.workspace
        self.turn, self.running, self.parked = event.turn, event.running, event.parked
        self.metrics, self.todos = event.metrics, event.todos
        self.before, self.steps = event.before, event.steps
        self.waiting = dict(event.waiting)
        self.pending = {asked.shown: asked for asked in event.asked}
        self.answers = {answer.call_id: answer for answer in event.answered}
        grants = event.granted or [
            Grant(grant_id, since=record.timestamp) for grant_id in event.grants
        ]
        self.grants.update((grant.id, grant) for grant in grants)  # the gate has this very dict
        self.times = dict(event.times)
        self.mode = _MODES.get(event.mode, "")
        self.inbox_ids, self.parent = dict.fromkeys(event.letters), event.parent
        self.attached = {attached.agent: attached for attached in event.attached}
        if (reply := event.opened) is not None:
            self._open_reply, self._is_own = reply, True
            self._outputs = dict.fromkeys(call.id for call in reply.tool_calls)
            self._outputs |= {output.call_id: output for output in event.outputs}
            self._missing_outputs = sum(output is None for output in self._outputs.values())
            self._intents = dict(event.intents)

    # -- turns

    def _on_prompt(self, record: Record, event: PromptReceived) -> None:
        self.turn = max(self.turn, event.turn)
        if event.turn:  # 0: a log of another program, in which the message follows at once
            self.waiting[record.seq] = event
        self.title = self.title or " ".join(event.content.split())[:80]
        if event.letter:
            self._add_inbox_id(event.letter)

    def _on_prompt_withdrawn(self, record: Record, event: PromptWithdrawn) -> None:
        self.waiting.pop(event.prompt, None)

    def _on_turn_parked(self, record: Record, event: TurnParked) -> None:
        self.parked = True

    def _on_turn_ended(self, record: Record, event: TurnEnded) -> None:
        self.turn = max(self.turn, event.turn)
        if self._is_own:  # each of its calls had a result before this
            self._close_step()
        self._end_turn()

    def _end_turn(self) -> None:
        self.running, self.parked = 0, False
        self.pending.clear()
        self.answers = {}

    def _on_usage(self, record: Record, event: UsageReported) -> None:
        context = self.metrics.context_tokens
        self.metrics = self.metrics.plus(event.usage, event.cost)
        if event.purpose != "turn":  # a title or a summary does not change what is in the window
            self.metrics = replace(self.metrics, context_tokens=context)
        elif event.estimated:  # the vendor has not counted: unknown
            self.metrics = replace(self.metrics, context_tokens=0)

    def _on_child_ended(self, record: Record, event: ChildEnded) -> None:
        """Count its steps and calls; its tokens were counted as they were reported."""
        calls = self.metrics.tool_calls + event.metrics.tool_calls
        self.metrics = replace(self.metrics, tool_calls=calls)
        self.steps += event.metrics.invocations

    # -- approvals

    def _on_approval_asked(self, record: Record, event: ApprovalAsked) -> None:
        add_request(self.pending, event)

    def _on_approval_answered(self, record: Record, event: ApprovalAnswered) -> None:
        if event.letter:
            self._add_inbox_id(event.letter)
        asked = take_request(self.pending, event)
        if asked is None:
            return  # the first answer stands
        self.answers[event.call_id] = event
        if event.allowed is True:
            key = similarity_key(asked)
            self.times[key] = self.times.get(key, 0) + 1
            for grant in grants_of_answer(asked, event, record.timestamp):
                self.grants[grant.id] = grant

    def _drop_requests(self, *calls: str) -> None:
        """Drop the requests about these calls: a call with a result needs no answer."""
        for shown in [key for key, asked in self.pending.items() if asked.call.id in calls]:
            del self.pending[shown]

    def _on_grant_revoked(self, record: Record, event: GrantRevoked) -> None:
        if event.letter:
            self._add_inbox_id(event.letter)
        if event.grant:
            self.grants.pop(event.grant, None)
        else:
            self.grants.clear()

    def _on_mode(self, record: Record, event: ModeChanged) -> None:
        self.mode = _MODES.get(event.mode, "ask")

    # -- the conversation and its open calls

    def _on_message(self, record: Record, event: MessageAdded) -> None:
        prompt = self.waiting.pop(event.prompt, None)
        if prompt is not None:
            if not self.running:
                self.before, self.steps = self.metrics, 0
            self.running = event.turn or prompt.turn
            self.turn = max(self.turn, self.running)
        if event.message.role == "tool":
            for output in event.message.tool_results:
                self._add_output(output, record.timestamp)
        elif event.message.parts:
            self._add_message(_dated(event.message, record), is_own=False)

    def _on_reply(self, record: Record, event: ResponseCompleted) -> None:
        self.steps += not event.grows
        if event.message is None or not event.message.parts:
            return
        if event.grows and (reply := self._open_reply) is not None and self._is_own:
            self._open_reply = replace(reply, parts=reply.parts + event.message.parts)
            self._outputs |= dict.fromkeys(call.id for call in event.message.tool_calls)
            self._missing_outputs = sum(output is None for output in self._outputs.values())
        else:
            self._add_message(_dated(event.message, record), is_own=True)

    def _on_call_intended(self, record: Record, event: CallIntended) -> None:
        self.metrics = replace(self.metrics, tool_calls=self.metrics.tool_calls + 1)
        self.parked = False
        if event.call_id in self._outputs:
            self._intents[event.call_id] = event.read_only

    def _on_result(self, record: Record, event: ToolResultEvent) -> None:
        self._add_output(event.output, record.timestamp)

    def _on_rewound(self, record: Record, event: Rewound) -> None:
        self._replace_messages(event.messages)
        self._end_turn()
        self.attached.clear()  # foreign agents' own conversations still have what was rewound
        self.metrics = replace(self.metrics, context_tokens=0)  # it was counted before
        self.todos = event.todos
        self.waiting = {seq: prompt for seq, prompt in self.waiting.items() if seq <= event.to}

    def _on_compacted(self, record: Record, event: Compacted) -> None:
        self._replace_messages(event.messages)
        self.metrics = replace(self.metrics, context_tokens=event.after)

    def _replace_messages(self, messages: tuple[Message, ...]) -> None:
        self._close_step()
        self._closed, self._call_ids = Transcript(messages), _call_ids(messages)

    def _add_message(self, message: Message, *, is_own: bool) -> None:
        """Add the next message. One with calls stays open until they are answered."""
        self._close_step()
        self.reported_unknown.clear()  # ids may be used again
        if calls := message.tool_calls:
            self._open_reply, self._is_own = message, is_own
            self._outputs = dict.fromkeys(call.id for call in calls)
            self._missing_outputs = len(self._outputs)
        else:
            self._closed = self._closed.plus(message)

    def _add_output(self, output: ToolOutput, at: str) -> None:
        self.parked = False
        self.reported_unknown.discard(output.call_id)
        if self._outputs.get(output.call_id, output) is not None:
            self.lost.pop(output.call_id, None)
            return  # a second result, or one of an unknown call: the first one counts
        self._outputs[output.call_id] = output
        self._newest_output_at = at
        if self.pending:
            self._drop_requests(output.call_id)
        self._missing_outputs -= 1
        if not self._missing_outputs:
            self._close_step()

    def _close_step(self) -> None:
        if self._open_reply is not None:
            if self._is_own and None in self._outputs.values():
                self.lost |= {open_call.call.id: open_call for open_call in self.open_calls}
            reply, answers = self._closed_step(self._open_reply)
            self._closed = self._closed.plus(reply).plus(answers)
            self._call_ids.update(call.id for call in reply.tool_calls)
            if self.pending:
                self._drop_requests(*self._outputs)
            self._open_reply = self._cached = None
            self._outputs = {}
            self._intents = {}
            self.answers = {}

    def _closed_step(self, reply: Message) -> tuple[Message, Message]:
        """Return a reply and the answers to its calls, with stand-ins for missing ones."""
        calls, at = reply.tool_calls, self._newest_output_at
        outputs = tuple(filter(None, self._outputs.values()))
        if len(outputs) != len(calls):
            at = reply.created_at  # a checkpoint does not say when the others got theirs
            outputs = tuple(self._outputs.get(call.id) or self._stand_in(call) for call in calls)
        reply, outputs = self._with_unique_ids(reply, outputs)
        return reply, Message("tool", outputs, f"{reply.id}r", at)

    def _state(self, call_id: str) -> Literal["not started", "unknown"]:
        return "not started" if self._is_own and call_id not in self._intents else "unknown"

    def _stand_in(self, call: ToolCall) -> ToolOutput:
        return stand_in(call, "unknown" if self._state(call.id) == "unknown" else "not_run")

    def _with_unique_ids(
        self, reply: Message, outputs: tuple[ToolOutput, ...]
    ) -> tuple[Message, tuple[ToolOutput, ...]]:
        """Return a reply and the answers to its calls, in order, with ids that are new here."""
        ids = [call.id for call in reply.tool_calls]
        if self._call_ids.isdisjoint(ids) and len(set(ids)) == len(ids):
            return reply, outputs
        unique: list[str] = []
        for call_id in ids:
            while call_id in self._call_ids or call_id in unique:
                call_id = f"{call_id}-{reply.id or len(unique)}"
            unique.append(call_id)
        names = iter(unique)
        parts: tuple[Part, ...] = tuple(
            replace(part, id=next(names)) if isinstance(part, ToolCall) else part
            for part in reply.parts
        )
        pairs = zip(outputs, unique, strict=True)
        renamed = tuple(replace(output, call_id=call_id) for output, call_id in pairs)
        return replace(reply, parts=parts), renamed


def stand_in(call: ToolCall, outcome: Literal["unknown", "not_run"]) -> ToolOutput:
    """Return the result of a call that has none of its own."""
    text = UNKNOWN if outcome == "unknown" else NOT_RUN
    return ToolOutput(call.id, text, is_error=True, name=call.name, outcome=outcome)


def denial_reason(word: str) -> str:
    """Say that approval was denied, with the reason that was given, if any."""
    return f"approval was denied: {word}" if word else "approval was denied"


def results_at_end(history: History) -> tuple[ToolResultEvent, ...]:
    """Return results for the calls that are still open when a turn ends."""
    return tuple(
        ToolResultEvent(
            stand_in(open_call.call, "not_run" if open_call.state == "not started" else "unknown")
        )
        for open_call in history.open_calls
    )


def _call_ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for message in messages for call in message.tool_calls}


def _dated(message: Message, record: Record) -> Message:
    return Message(message.role, message.parts, f"m{record.seq}", record.timestamp)


_HANDLERS: dict[type, Callable[[History, Record, Any], None]] = {
    SessionStarted: History._on_session_started,
    PromptReceived: History._on_prompt,
    PromptWithdrawn: History._on_prompt_withdrawn,
    MessageAdded: History._on_message,
    ResponseCompleted: History._on_reply,
    ToolResultEvent: History._on_result,
    CallIntended: History._on_call_intended,
    UsageReported: History._on_usage,
    ApprovalAsked: History._on_approval_asked,
    ApprovalAnswered: History._on_approval_answered,
    GrantRevoked: History._on_grant_revoked,
    ModeChanged: History._on_mode,
    AgentAttached: History._on_agent_attached,
    ChildOf: History._on_child_of,
    ChildEnded: History._on_child_ended,
    TodosChanged: History._on_todos,
    TitleChanged: History._on_title,
    TagsChanged: History._on_tags,
    InterruptRequested: History._on_inbox_message,
    InboxMessageRefused: History._on_inbox_message,
    UnknownCallReported: History._on_unknown_reported,
    TurnEnded: History._on_turn_ended,
    TurnParked: History._on_turn_parked,
    Forked: History._on_forked,
    Rewound: History._on_rewound,
    Compacted: History._on_compacted,
    Checkpoint: History._on_checkpoint,
}


def fold(records: Iterable[Record]) -> History:
    """Return the state of a whole log, or of any beginning of one."""
    history = History()
    for record in records:
        history.apply(record)
    return history


def as_of(records: Iterable[Record], to: int) -> History:
    """Return the state as it was at that record."""
    return fold(takewhile(lambda record: record.seq <= to, records))
