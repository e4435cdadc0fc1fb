"""Folds records into blocks, one after the other. Pure: no clock, no screen, no file.

`blocks` only grows, and `seqs` are the records at which they came; `changed` are the places of
those that are new or different since somebody last looked (`drain`). What is said twice, as deltas
and as a whole message, stands once. What a rewind took back leaves `Gone` in its place.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from bridle.events import (
    AgentActivity,
    Checkpoint,
    Event,
    FilesChanged,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    ReplyDiscarded,
    ResponseCompleted,
    Rewound,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.presentation.blocks import Block, Call, Notice, Prompt, Removed, Reply, Thought
from bridle.presentation.notices import (
    ENDS_RETRY,
    file_notices,
    notices_of,
    retry_outcome,
    rewind_notice,
)
from bridle.protocols.store import Record
from bridle.tui.blocks_calls import Calls
from bridle.tui.blocks_reply import ReplyFold
from bridle.tui.blocks_state import State
from bridle.tui.blocks_turn import ending_of
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import is_cache

_SPEAKING = ("write", "edit", "apply_patch")  # their results say which files they changed
_SHOWN_AS = {
    "prompt": Prompt,
    "answer": Reply,
    "thinking": Thought,
    "call": Call,
    "tool result": Call,
    "approval": Call,
}


class Fold:
    """Is fed records, in order. `seq` is the number of the last one."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.seqs: list[int] = []
        self.changed: set[int] = set()
        self.state = State()
        self.seq = 0
        self._retry: tuple[int, TraceEvent] | None = None  # the row of the attempts, and the last
        self._reply = ReplyFold(self.add, self.touch)
        self._calls = Calls(self.state, self._reply, self.touch)
        self._acts: dict[type[Event], Callable[[Any, Record], None]] = {
            TextDelta: self._reply.text,
            ThinkingDelta: self._reply.thinking,
            ResponseCompleted: self._replied,
            PromptReceived: self._prompted,
            MessageAdded: self._entered,
            UsageReported: self._used,
            TodosChanged: self._todos,
            ReplyDiscarded: self._discarded,
            TurnEnded: self._ended,
            FilesChanged: self._files,
            AgentActivity: self._doing,
            **self._calls.acts,
        }

    def take(self, record: Record) -> None:
        """One more record."""
        self.seq = record.seq
        event = record.event
        if self._retry is not None and isinstance(event, ENDS_RETRY):
            place, retry = self._retry
            self._retry = None
            self._replace(place, retry_outcome(retry, event))
        act = self._acts.get(type(event))
        if act is not None:
            act(event, record)
        else:
            self._rest(event)

    def drain(self) -> set[int]:
        """The places that changed; from here on, nothing has."""
        changed, self.changed = self.changed, set()
        return changed

    def add(self, block: Block) -> int:
        """One more block; its place."""
        self.blocks.append(block)
        self.seqs.append(self.seq)
        self.changed.add(len(self.blocks) - 1)
        return len(self.blocks) - 1

    def touch(self, place: int) -> None:
        """That block is different now."""
        self.changed.add(place)

    def _replace(self, place: int, notice: Notice) -> None:
        """Show another notice in the place of one."""
        if isinstance(self.blocks[place], Notice):  # a rewind may have taken it back
            self.blocks[place] = notice
            self.touch(place)

    def _show_retry(self, event: TraceEvent) -> None:
        """Show all attempts of one request in one row."""
        (notice,) = notices_of(event, self.state.me)
        if self._retry is None:
            self._reply.pause()
            self._retry = self.add(notice), event
        else:
            self._retry = self._retry[0], event
            self._replace(self._retry[0], notice)

    def _rest(self, event: Event) -> None:
        if isinstance(event, TraceEvent) and event.kind == "retry":
            self._show_retry(event)
            return
        if isinstance(event, ModeChanged) and (self.state.mode == event.mode or not self.blocks):
            self.state.mode = event.mode
            return  # the bar says it
        if isinstance(event, Checkpoint) and self.blocks:
            return
        if isinstance(event, Rewound):
            self._take_back(event)
            return
        self.state.take(event)
        if isinstance(event, PromptWithdrawn) and event.by in ("me", self.state.me):
            return  # it is back in the composer, or said to be held
        for notice in notices_of(event, self.state.me):
            self.tell(notice)

    def _take_back(self, event: Rewound) -> None:
        """What came after that record goes; what holds all the same (modes, files) stays."""
        self._reply.pause()
        self._calls.settle()
        prompts = []
        for place in range(bisect_right(self.seqs, event.to), len(self.blocks)):
            block = self.blocks[place]
            if isinstance(block, Notice) and block.tone != "dim":
                continue
            if isinstance(block, Prompt):
                prompts.append(block.text)
            self.blocks[place] = Removed()
            self.touch(place)
        self.state.take(event)
        self.tell(rewind_notice(event, prompts, self.state.me))

    def place_of(self, seq: int, kind: str = "") -> int | None:
        """The block that shows a record of that kind of words, or the nearest before it."""
        wanted = _SHOWN_AS.get(kind)
        last = bisect_right(self.seqs, seq) - 1
        kept = [at for at in range(last, -1, -1) if not isinstance(self.blocks[at], Removed)]
        fits = (at for at in kept if wanted is None or isinstance(self.blocks[at], wanted))
        return next(fits, kept[0] if kept else None)

    def tell(self, notice: Notice) -> None:
        """A line between the others; the same line twice is one."""
        if not self.blocks or self.blocks[-1] != notice:
            self._reply.pause()
            self.add(notice)

    def _prompted(self, event: PromptReceived, record: Record) -> None:
        if event.when == "idle":
            self._begin(event, record.timestamp)
        else:
            self.state.waiting[record.seq] = event

    def _entered(self, event: MessageAdded, record: Record) -> None:
        """A prompt that waited reaches the model."""
        if (waited := self.state.waiting.pop(event.prompt, None)) is not None:
            self._begin(waited, record.timestamp)

    def _begin(self, prompt: PromptReceived, now: str) -> None:
        state = self.state
        self._reply.pause()
        attached = sum(type(part).__name__ in ("Image", "File") for part in prompt.parts)
        steers = prompt.when == "next_step" and state.busy
        by = "me" if prompt.by == state.me else prompt.by
        self.add(Prompt(prompt.content, by, attached, steers))
        if not steers:
            state.busy, state.parked, state.spent = True, False, ExecutionMetrics()
            if all(todo.status == "completed" for todo in state.todos):
                state.todos = ()
            state.turn = max(state.turn, prompt.turn)
            state.began = now

    def _replied(self, event: ResponseCompleted, record: Record) -> None:
        self.state.model = event.model or self.state.model
        self._reply.complete(event)
        if event.stop_reason == "max_tokens":
            self.tell(Notice("the reply was cut off at its token limit", "…", "warn"))
        for one in event.message.tool_calls if event.message is not None else ():
            known = self._reply.known(one.id)  # of one that came whole nothing was heard before
            if known is not None and known[1].is_open:
                self.state.calls[one.id] = known[1]

    def _discarded(self, event: ReplyDiscarded, record: Record) -> None:
        shown = self._reply.discard() or bool(self.state.calls)
        self._calls.settle("discarded")
        if shown:
            self._reply.pause()
            self.add(*notices_of(event, self.state.me))

    def _used(self, event: UsageReported, record: Record) -> None:
        state = self.state
        context = state.used.context_tokens if event.purpose != "turn" else -1
        state.used = _plus(state.used, event, context)
        state.spent = _plus(state.spent, event, context)

    def _todos(self, event: TodosChanged, record: Record) -> None:
        self.state.todos = event.todos

    def _doing(self, event: AgentActivity, record: Record) -> None:
        self.state.doing = f"{event.tool_name} {event.description}".strip()

    def _files(self, event: FilesChanged, record: Record) -> None:
        for file in event.files:
            if is_cache(file.path):
                continue
            before = self.state.files.get(file.path)
            if before == "added" and file.how == "deleted":
                del self.state.files[file.path]
            else:
                self.state.files[file.path] = "added" if before == "added" else file.how
        told = self._calls.name_of(event.call_id) in _SPEAKING
        for notice in file_notices(event, is_named=told):
            self.tell(notice)

    def _ended(self, event: TurnEnded, record: Record) -> None:
        state = self.state
        self._reply.pause()
        self._calls.settle()
        self.add(ending_of(event, state, record.timestamp))
        state.busy = state.parked = False
        state.doing = ""
        state.asked.clear()


def _plus(before: ExecutionMetrics, event: UsageReported, context: int) -> ExecutionMetrics:
    """One more use; a title's or a task's tokens do not fill this session's context."""
    from msgspec.structs import replace

    summed = before.plus(event.usage, event.cost)
    return summed if context < 0 else replace(summed, context_tokens=context)
