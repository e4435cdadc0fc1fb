"""What the records of a log say of time: spans, as they begin and as they end. A pure fold.

    session > turn > step > model call, tool call (> task), waits for a person

Spans are told as they are found, and only those that are open are held, so that a log of any size
can be read and a session that runs be followed. Any beginning of a log gives a proper tree:
children lie within their parents, whatever the clock did.

A request has no record of its own: a model call begins where the turn could have asked for it, at
its prompt or after the last result. A call begins with its intent; the wait for a person's answer
is a span beside it. A turn that is parked is over, and goes on in another span with its number; in
between is a wait of the session. What a process that was killed left open ends with its last
record. A child session's spans are in its own log: here stands the task.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from bridle.engine.traced import NOTHING, Growing, Node, Span, Status, Tell
from bridle.engine.traced_steps import Steps
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    ChildEnded,
    ChildStarted,
    Compacted,
    Forked,
    MessageAdded,
    PromptReceived,
    Repaired,
    ResponseCompleted,
    Rewound,
    SessionStarted,
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


class Tracing(Steps):
    """Takes the records of one session in order, and tells spans: each begun, then each over."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._stamp = ""  # of the newest record
        self._dead = False  # what is said now is said of a process that is gone
        self._rest: Span | None = None  # a turn is parked
        self._number = 0  # the newest turn
        self._parked = False
        self._prompts: dict[int, int] = {}  # the turns of prompts that wait, by record
        self._agent = ""

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        fold = _FOLDS.get(type(record.event))
        if fold is None or (fold is _PIECE and self._model is not None and self._model.first):
            self._stamp = record.timestamp  # one of very many
            return
        if fold is _TAKEN_UP and self._turn is not None:
            self._look()
            self._dead = True  # before the clock goes on: what was open ended with its process
        self._stamp, self._seq = record.timestamp, record.seq
        self._look()
        if not self.root.seq:
            self.root.seq, self.root.start = record.seq, self._now
            self._tell(self.root)
        fold(self, record.event)

    def close(self, at: int = 0) -> None:
        """No more records: what is under way ends with the newest of them, and is called open.

        Where somebody is known to be at it still, it is measured up to then (`at`).
        """
        self._look()
        self._now = max(self._now, at)
        self._end_step("open")
        left = [one for one in (self._turn, self._rest) if one is not None]
        for span in left:
            self._end(span, "open")
        if self.root.seq:
            self._end(self.root, "open" if left else "ok")
        self._turn = self._rest = None

    def begin_anew(self) -> None:
        """What comes now is another process's: under a session span of its own."""
        self.root = Span("session", self.root.name, model=self.root.model)

    def _look(self) -> None:
        """The clock of the records. It never goes back, and stands still for the dead."""
        if self._dead:
            return
        try:
            moment = datetime.fromisoformat(self._stamp).timestamp()
        except (ValueError, OverflowError):
            return  # no time that we know: then it is as late as before
        self._now = max(self._now, round(moment * 1000))

    def _open_turn(self, number: int = 0, asked: Any = None) -> Span:
        """The turn that is under way; where it rested, one more span of it."""
        if self._turn is None:
            if not self._parked:
                self._number, self._steps = number or self._number + 1, 0
                self._asked.clear()
            self._wake()
            self._ready = self._now
            name, told = f"turn {self._number}", {"model": self.root.model, "asked": asked}
            told |= {"number": self._number, "detail": self._agent}
            self._turn = self._begin("turn", name, self.root, **told)
        return self._turn

    def _end_turn(self, status: Status, error: str = "") -> None:
        if (turn := self._turn) is not None:
            self._end_step(status if status in ("parked", "interrupted") else "unknown")
            turn.error = error
            self._end(turn, status)
            self._turn = None
        self._dead = False
        self._look()

    def _wake(self, status: Status = "ok") -> None:
        """The turn rests no longer: it goes on, or was ended."""
        self._parked = False
        if self._rest is not None:
            self._end(self._rest, status)
            self._rest = None

    def _mark(self, name: str, detail: str = "") -> None:
        span = self._begin("mark", name, self._turn or self.root, detail=detail)
        self._end(span, "ok")

    def _taken_up(self, event: SessionStarted | Repaired) -> None:
        if isinstance(event, SessionStarted):
            self.root.name, self.root.model = event.session_id, event.model
        else:
            self._mark("repair")

    def _prompt(self, event: PromptReceived) -> None:
        if event.turn:
            self._prompts[self._seq] = event.turn
        else:  # another program's log: a turn ends where the next begins
            self._end_turn("ok")
            self._open_turn(asked=event.content)

    def _message(self, event: MessageAdded) -> None:
        number = self._prompts.pop(event.prompt, 0)
        number = event.turn or number
        if not event.prompt:
            self._foreign(event)
            return
        if self._turn is not None and number not in (0, self._number):
            self._end_turn("unknown")  # its end is lost
        self._parked = self._parked and number in (0, self._number)
        self._open_turn(number, event.message.content)

    def _foreign(self, event: MessageAdded) -> None:
        """A reply in another program's log; history that is brought in comes between turns."""
        if self._turn is not None and event.message.role == "assistant":
            stop = "tool_use" if event.message.tool_calls else "complete"
            self._whole(ResponseCompleted(stop, event.message))  # type: ignore[arg-type] # literals

    def _ended(self, event: TurnEnded) -> None:
        self._number = max(self._number, event.turn)
        status: Status = "ok" if event.reason == "done" else event.reason
        self._end_turn(status, event.error_kind)
        self._wake(status)
        self._asked.clear()

    def _park(self, event: TurnParked) -> None:
        self._number = event.turn or self._number
        self._end_turn("parked")
        self._parked = True
        if self._rest is None:
            name, number = f"turn {self._number} parked", self._number
            self._rest = self._begin("wait", name, self.root, number=number)

    def _other(self, event: Forked | Rewound) -> None:
        """The conversation is another one from here on."""
        self._end_turn("unknown")
        self._wake()
        self._asked.clear()
        if isinstance(event, Forked):
            self.root.used = NOTHING
            self._mark("fork", f"of {event.session_id}, record {event.at}")
        else:
            self._mark("rewind", f"to record {event.to}")

    def _compacted(self, event: Compacted) -> None:
        count, what = (event.dropped, "message") if event.dropped else (event.shortened, "output")
        self._mark("compaction", f"of {count} {what}{'s' if count != 1 else ''}")

    def _checkpoint(self, event: Checkpoint) -> None:
        """Where nothing is before it, it says what is under way."""
        if self.root.name or self._number:
            return
        self._number, self._steps = event.running or event.turn, event.steps
        self._prompts = {seq: one.turn for seq, one in event.waiting}
        self._parked = event.parked or event.running > 0
        self._agent = event.attached[-1].agent if event.attached else ""
        if event.opened is not None:
            done = {one.call_id for one in event.outputs}
            self._asked = {one.id: one for one in event.opened.tool_calls if one.id not in done}

    def _attached(self, event: AgentAttached) -> None:
        self._agent = event.agent
        if self._turn is not None:
            self._turn.detail = event.agent


_PIECE: Callable[[Tracing, Any], None] = Tracing._piece
_TAKEN_UP: Callable[[Tracing, Any], None] = Tracing._taken_up
_FOLDS: dict[type, Callable[[Tracing, Any], None]] = {
    SessionStarted: _TAKEN_UP,
    Repaired: _TAKEN_UP,
    PromptReceived: Tracing._prompt,
    MessageAdded: Tracing._message,
    TextDelta: _PIECE,
    ThinkingDelta: _PIECE,
    ToolCallStarted: _PIECE,
    ToolCallArgsDelta: _PIECE,
    ToolCallReady: _PIECE,
    TraceEvent: Tracing._trace,
    UsageReported: Tracing._used,
    ResponseCompleted: Tracing._whole,
    ApprovalAsked: Tracing._question,
    ApprovalAnswered: Tracing._answered,
    CallIntended: Tracing._intended,
    ToolResultEvent: Tracing._result,
    ChildStarted: Tracing._child,
    ChildEnded: Tracing._child_ended,
    TurnEnded: Tracing._ended,
    TurnParked: Tracing._park,
    AgentAttached: Tracing._attached,
    Forked: Tracing._other,
    Rewound: Tracing._other,
    Compacted: Tracing._compacted,
    Checkpoint: Tracing._checkpoint,
}


def trace(records: Iterable[Record]) -> Node | None:
    """The tree of a log, or of any beginning of one; None where there is nothing."""
    tree = Growing()
    tracing = Tracing(tree.tell)
    for record in records:
        tracing.apply(record)
    tracing.close()
    return tree.root
