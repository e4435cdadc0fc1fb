"""Fold records into the blocks of a conversation, and into the state around it.

The full screen draws the blocks; plain output prints them. Deltas and the whole message that
follows them are one block. Pure, except for `ConversationState.forget_files`, which looks at files.
"""

import os
from bisect import bisect_right
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from bridle.events import (
    AgentActivity,
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    ChildEnded,
    Event,
    FilesChanged,
    Forked,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    ReplyDiscarded,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    Undone,
    UsageReported,
)
from bridle.messages import File, Image, Message, Text, Thinking, ToolCall, ToolOutput, outcome_of
from bridle.presentation.amounts import cost_text, duration, token_count
from bridle.presentation.approvals import answer_text
from bridle.presentation.blocks import (
    Block,
    Call,
    CallState,
    GrowingText,
    Notice,
    Prompt,
    Removed,
    Reply,
    Thought,
    Tone,
    TurnEnd,
)
from bridle.presentation.calls import call_subject, long_command, result_diff, result_summary
from bridle.presentation.notices import (
    ENDS_RETRY,
    NAMES_FILES,
    end_text,
    file_notices,
    notices_of,
    retry_outcome,
    rewind_notice,
)
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import is_cache, quantity, shorten

LIVE = 20_000  # characters of a running tool's output that are kept
KEPT = 60_000  # ... and of its result
_SHOWN_AS = {
    "prompt": Prompt,
    "answer": Reply,
    "thinking": Thought,
    "call": Call,
    "tool result": Call,
    "approval": Call,
}
_CALM = ("done", "parked")
_END_TEXTS = {"interrupted": "stopped", "the turn was interrupted": "stopped"}


class ConversationState(Struct):
    """Everything around the conversation. `mode` and `model` are empty until a record says them.

    `me` is the name under which the reader does things: it is not shown.
    """

    me: str = "me"
    title: str = ""
    mode: str = ""
    model: str = ""
    agent: str = ""
    workspace: str = ""
    turn: int = 0
    busy: bool = False
    parked: bool = False
    activity: str = ""  # what an agent does that reports no calls
    turn_began: str = ""  # when the running turn began
    todos: tuple[Todo, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # path: added, changed, deleted
    calls: dict[str, Call] = field(default_factory=dict)  # those without a result, by id
    waiting: dict[int, PromptReceived] = field(default_factory=dict)
    asked: dict[str, ApprovalAsked] = field(default_factory=dict)  # by what was shown
    used: ExecutionMetrics = ExecutionMetrics()
    turn_used: ExecutionMetrics = ExecutionMetrics()

    def forget_files(self, workspace: str) -> None:
        """Remove changed files from the list that are gone, or that were committed since.

        Looks at the files; may be called in a thread.
        """
        from bridle.workspace.git.worktree import uncommitted_files

        files = dict(self.files)
        if not files:
            return
        uncommitted = uncommitted_files(workspace, files)
        for path, how in files.items():
            is_gone = how != "deleted" and not os.path.lexists(f"{workspace}/{path}")
            if is_gone if uncommitted is None else path not in uncommitted:
                self.files.pop(path, None)

    def apply(self, event: Event) -> None:
        """Apply an event that changes nothing but this state."""
        match event:
            case TitleChanged():
                self.title = event.title
            case ModeChanged():
                self.mode = event.mode
            case AgentAttached():
                self.agent = event.agent
            case SessionStarted():
                self.model = event.model or self.model
                self.workspace = event.workspace or self.workspace
            case Checkpoint():
                self._apply_checkpoint(event)
            case PromptWithdrawn():
                self.waiting.pop(event.prompt, None)
            case TurnParked():
                self.busy, self.parked = False, True
            case Rewound():
                self.todos = event.todos
                self.asked.clear()
            case Forked():  # what was paid there is not this session's
                context = self.used.context_tokens
                self.used = ExecutionMetrics(context_tokens=context)
                self.turn_used = ExecutionMetrics()
                self.asked.clear()
            case Undone():
                for path in event.files:
                    self.files.pop(path, None)

    def apply_files(self, event: FilesChanged) -> None:
        """Add the files that a call changed."""
        for file in event.files:
            if is_cache(file.path):
                continue
            before = self.files.get(file.path)
            if before == "added" and file.how == "deleted":
                del self.files[file.path]
            else:
                self.files[file.path] = "added" if before == "added" else file.how

    def add_usage(self, event: UsageReported) -> None:
        """Add what a request used. A title's or a task's tokens do not fill the context."""
        context = self.used.context_tokens if event.purpose != "turn" else None

        def plus(before: ExecutionMetrics) -> ExecutionMetrics:
            after = before.plus(event.usage, event.cost)
            return after if context is None else replace(after, context_tokens=context)

        self.used, self.turn_used = plus(self.used), plus(self.turn_used)

    def count_calls(self, count: int = 1) -> None:
        """Count calls that were started, as the engine does."""
        self.used = replace(self.used, tool_calls=self.used.tool_calls + count)
        self.turn_used = replace(self.turn_used, tool_calls=self.turn_used.tool_calls + count)

    def _apply_checkpoint(self, event: Checkpoint) -> None:
        """Start from a checkpoint, for a log that is read from its tail."""
        self.title = event.title or self.title
        self.mode = event.mode or self.mode
        self.workspace = event.workspace or self.workspace
        self.turn = max(self.turn, event.turn)
        self.todos = event.todos
        self.used = event.metrics
        self.waiting = dict(event.waiting)
        self.asked = {asked.shown: asked for asked in event.asked}
        self.busy, self.parked = bool(event.running) and not event.parked, event.parked


class Fold:
    """Applies records in order. `blocks` only grows: a rewind leaves `Removed` behind.

    `seqs` are the records at which the blocks came, `seq` is the newest record. A block's place is
    its index.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.seqs: list[int] = []
        self.state = ConversationState()
        self.seq = 0
        self._changed: set[int] = set()  # places that are new or different since `take_changes`
        self._retry: tuple[int, TraceEvent] | None = None  # place of the attempts, and the last one
        # the reply that the model is writing
        self._growing: tuple[int, GrowingText] | None = None
        self._replies: list[tuple[int, Reply]] = []
        self._thoughts: list[tuple[int, Thought]] = []
        self._calls: dict[str, tuple[int, Call]] = {}  # the newest of each id

    def take_changes(self) -> set[int]:
        """Return the places that have changed since the last time."""
        changed, self._changed = self._changed, set()
        return changed

    def find_block(self, seq: int, kind: str = "") -> int | None:
        """Return the place of the block that shows a record of a kind, or the nearest before it."""
        wanted = _SHOWN_AS.get(kind)
        last = bisect_right(self.seqs, seq) - 1
        places = [at for at in range(last, -1, -1) if not isinstance(self.blocks[at], Removed)]
        fits = (at for at in places if wanted is None or isinstance(self.blocks[at], wanted))
        return next(fits, places[0] if places else None)

    def tool_of(self, call_id: str) -> str:
        """Return the name of a call's tool; empty if it is not known."""
        known = self._calls.get(call_id)
        return known[1].name if known is not None else ""

    def add(self, block: Block) -> int:
        """Add a block and return its place."""
        self.blocks.append(block)
        self.seqs.append(self.seq)
        self._changed.add(len(self.blocks) - 1)
        return len(self.blocks) - 1

    def add_notice(self, notice: Notice) -> None:
        """Add a notice, unless the last block is the same one."""
        if not self.blocks or self.blocks[-1] != notice:
            self._end_growing()
            self.add(notice)

    def apply(self, record: Record) -> None:
        """Apply the next record."""
        self.seq = record.seq
        event = record.event
        if self._retry is not None and isinstance(event, ENDS_RETRY):
            (place, retry), self._retry = self._retry, None
            self._replace_notice(place, retry_outcome(retry, event))
        match event:
            case TextDelta():
                self._grow(Reply, event.text)
            case ThinkingDelta():
                self._grow(Thought, event.text)
            case ToolCallArgsDelta():
                pass  # the arguments are shown once they are complete
            case ToolOutputDelta():
                self._add_output(event)
            case ResponseCompleted():
                self._complete_reply(event)
            case PromptReceived():
                self._receive_prompt(event, record)
            case MessageAdded():
                if (waited := self.state.waiting.pop(event.prompt, None)) is not None:
                    self._show_prompt(waited, record.timestamp)  # now it reaches the model
            case ToolCallStarted():
                self._start_call(event)
            case ToolCallReady():
                self._open(self._complete_call(event.call))
            case ApprovalAsked():
                self._ask_approval(event)
            case ApprovalAnswered():
                self._answer_approval(event)
            case CallIntended():
                place, call = self._call(event.call_id, event.name)
                call.state = "running"
                self.state.count_calls()
                self._open((place, call))
            case ToolResultEvent():
                self._end_call(event.output)
            case UsageReported():
                self.state.add_usage(event)
            case TodosChanged():
                self.state.todos = event.todos
            case AgentActivity():
                self.state.activity = f"{event.tool_name} {event.description}".strip()
            case FilesChanged():
                self.state.apply_files(event)
                is_named = self.tool_of(event.call_id) in NAMES_FILES
                for notice in file_notices(event, is_named=is_named):
                    self.add_notice(notice)
            case ReplyDiscarded():
                self._discard_reply(event)
            case TraceEvent(kind="retry"):
                self._show_retry(event)
            case Rewound():
                self._rewind(event)
            case TurnEnded():
                self._end_turn(event, record.timestamp)
            case _:
                self._show_notices(event)

    # Prompts and notices

    def _receive_prompt(self, event: PromptReceived, record: Record) -> None:
        if event.when == "idle":
            self._show_prompt(event, record.timestamp)
        else:
            self.state.waiting[record.seq] = event

    def _show_prompt(self, prompt: PromptReceived, now: str) -> None:
        state = self.state
        self._end_growing()
        attached = sum(isinstance(part, Image | File) for part in prompt.parts)
        steers = prompt.when == "next_step" and state.busy
        by = "me" if prompt.by == state.me else prompt.by
        self.add(Prompt(prompt.content, by, attached, steers))
        if not steers:
            state.busy, state.parked, state.turn_used = True, False, ExecutionMetrics()
            if all(todo.status == "completed" for todo in state.todos):
                state.todos = ()
            state.turn = max(state.turn, prompt.turn)
            state.turn_began = now

    def _show_notices(self, event: Event) -> None:
        state = self.state
        # the status bar shows the mode, and a checkpoint repeats what is shown already
        is_shown = isinstance(event, ModeChanged) and (state.mode == event.mode or not self.blocks)
        if isinstance(event, Checkpoint) and self.blocks:
            return
        if isinstance(event, Forked):
            self._end_calls()
        elif isinstance(event, ChildEnded):
            state.count_calls(event.metrics.tool_calls)
        state.apply(event)
        if isinstance(event, PromptWithdrawn) and event.by in ("me", state.me):
            return  # it is back in the composer, or shown as held
        for notice in () if is_shown else notices_of(event, state.me):
            self.add_notice(notice)

    def _show_retry(self, event: TraceEvent) -> None:
        """Show all attempts of one request in one notice."""
        (notice,) = notices_of(event, self.state.me)
        if self._retry is None:
            self._end_growing()
            self._retry = self.add(notice), event
        else:
            self._retry = self._retry[0], event
            self._replace_notice(self._retry[0], notice)

    def _replace_notice(self, place: int, notice: Notice) -> None:
        if isinstance(self.blocks[place], Notice):  # a rewind may have removed it
            self.blocks[place] = notice
            self._changed.add(place)

    def _rewind(self, event: Rewound) -> None:
        """Remove what came after that record, except notices of what still holds."""
        self._end_growing()
        self._end_calls()
        prompts = []
        for place in range(bisect_right(self.seqs, event.to), len(self.blocks)):
            block = self.blocks[place]
            if isinstance(block, Notice) and block.tone != "dim":
                continue
            if isinstance(block, Prompt):
                prompts.append(block.text)
            self.blocks[place] = Removed()
            self._changed.add(place)
        self.state.apply(event)
        self.add_notice(rewind_notice(event, prompts, self.state.me))

    def _end_turn(self, event: TurnEnded, now: str) -> None:
        state = self.state
        self._end_growing()
        self._end_calls()
        self.add(turn_end(event, state.turn_used, seconds_between(state.turn_began, now)))
        state.busy = state.parked = False
        state.turn_used = ExecutionMetrics()
        state.activity = ""
        state.asked.clear()

    # The model's reply

    def _grow(self, kind: type[Reply] | type[Thought], text: str) -> None:
        if self._growing is None or not isinstance(self._growing[1], kind):
            if not text.strip():
                return  # models begin with line ends
            self._end_growing()
            block = kind()
            self._growing = self.add(block), block
            if isinstance(block, Reply):
                self._replies.append((self._growing[0], block))
            else:
                self._thoughts.append((self._growing[0], block))
        place, growing = self._growing
        growing.grow(text)
        self._changed.add(place)

    def _end_growing(self) -> None:
        """End the text that grows: what comes next stands below it."""
        if self._growing is not None:
            place, growing = self._growing
            growing.finish(growing.text)
            self._changed.add(place)
            self._growing = None

    def _complete_reply(self, event: ResponseCompleted) -> None:
        """Show the reply as its whole message says it."""
        self.state.model = event.model or self.state.model
        self._end_growing()
        message = event.message
        if message is not None:
            self._reconcile(message)
        self._replies, self._thoughts = [], []
        if event.stop_reason == "max_tokens":
            self.add_notice(Notice("the reply was cut off at its token limit", "…", "warn"))
        for part in message.tool_calls if message is not None else ():
            known = self._calls.get(part.id)
            if known is not None and known[1].is_open:
                self.state.calls[part.id] = known[1]

    def _reconcile(self, message: Message) -> None:
        texts = [
            part.text for part in message.parts if isinstance(part, Text) and part.text.strip()
        ]
        if len(texts) == len(self._replies):
            for (place, reply), text in zip(self._replies, texts, strict=True):
                if reply.text != text:
                    self._changed.add(place)
                reply.finish(text)
        elif not self._replies:  # it came as a whole, without deltas
            for part in message.parts:
                if isinstance(part, Text) and part.text.strip():
                    self.add(Reply([part.text], True))
                elif isinstance(part, Thinking) and part.text.strip() and not self._thoughts:
                    self.add(Thought([part.text], True))
                elif isinstance(part, ToolCall):
                    known = self._calls.get(part.id)
                    if known is None or not known[1].is_open:
                        self._complete_call(part)

    def _discard_reply(self, event: ReplyDiscarded) -> None:
        """Mark what was shown of a reply that broke off."""
        self._end_growing()
        shown = [*self._replies, *self._thoughts]
        for place, growing in shown:
            growing.discarded = True
            self._changed.add(place)
        is_shown = bool(shown or self.state.calls)
        self._replies, self._thoughts = [], []
        self._end_calls("discarded")
        self._calls = {}
        if is_shown:
            self.add(*notices_of(event, self.state.me))

    # Calls, each from the first delta to its one result

    def _call(self, call_id: str, name: str, *, anew: bool = False) -> tuple[int, Call]:
        """Return the call of that id and its place; add it if there is none."""
        if anew or call_id not in self._calls:
            self._end_growing()
            call = Call(call_id, name)
            self._calls[call_id] = self.add(call), call
        return self._calls[call_id]

    def _is_over(self, call_id: str) -> bool:
        known = self._calls.get(call_id)
        return known is not None and not known[1].is_open

    def _open(self, placed: tuple[int, Call]) -> None:
        place, call = placed
        self.state.calls[call.id] = call
        self._changed.add(place)

    def _start_call(self, event: ToolCallStarted) -> None:
        self._open(self._call(event.call_id, event.name, anew=self._is_over(event.call_id)))

    def _complete_call(self, call: ToolCall) -> tuple[int, Call]:
        """Fill in the arguments, now that they are complete."""
        place, block = self._call(call.id, call.name, anew=self._is_over(call.id))
        block.name, block.subject, block.command = call.name, call_subject(call), long_command(call)
        if block.state == "writing":
            block.state = "ready"
            plan = call.arguments.get("plan")
            if call.name == "exit_plan_mode" and isinstance(plan, str) and plan.strip():
                self.add(Reply([plan], True))  # a plan is Markdown
        self._changed.add(place)
        return place, block

    def _ask_approval(self, event: ApprovalAsked) -> None:
        self.state.asked[event.shown] = event
        place, call = self._complete_call(event.call)
        call.state, call.note = "asked", event.reason
        self._open((place, call))

    def _answer_approval(self, event: ApprovalAnswered) -> None:
        self.state.asked.pop(event.shown, None)
        if (known := self._calls.get(event.call_id)) is not None:
            place, call = known
            call.note = answer_text(event, self.state.me)
            if call.state == "asked":
                call.state = "ready" if event.allowed else "refused"
            self._changed.add(place)

    def _add_output(self, event: ToolOutputDelta) -> None:
        if (known := self._calls.get(event.call_id)) is not None:
            place, call = known
            call.output = (call.output + event.text)[-LIVE:]
            self._changed.add(place)

    def _end_call(self, output: ToolOutput) -> None:
        place, call = self._call(output.call_id, output.name or "tool")
        call.state = _state_after(call, output)
        call.result, call.output = shorten(output.text, KEPT), ""
        command = call.command or (call.subject if call.name == "shell" else "")
        call.summary, call.diff = result_summary(output, command), result_diff(output)
        self.state.calls.pop(output.call_id, None)
        self._changed.add(place)

    def _end_calls(self, summary: str = "not run") -> None:
        """End the calls that have no result. `summary` is shown for those that were not begun."""
        for call_id, call in list(self.state.calls.items()):
            if call.is_open:
                call.state = "unknown" if call.state == "running" else "refused"
                call.summary = call.summary or ("no result" if call.state == "unknown" else summary)
                if (known := self._calls.get(call_id)) is not None:
                    self._changed.add(known[0])
        self.state.calls.clear()


def _state_after(call: Call, output: ToolOutput) -> CallState:
    if not output.is_error:
        return "done"
    if outcome_of(output) == "unknown":
        return "unknown"
    return "refused" if call.state == "refused" else "failed"


def turn_end(event: TurnEnded, used: ExecutionMetrics, seconds: float | None) -> TurnEnd:
    """Return the block for the end of a turn: why it ended, and what it used."""
    reason = _END_TEXTS.get(end_text(event), end_text(event))
    tone: Tone = "bad"
    if event.reason in _CALM:
        tone = "dim"
    elif event.reason == "interrupted":
        tone = "warn"
    return TurnEnd(reason, usage_text(used, seconds), event.hint, tone)


def usage_text(used: ExecutionMetrics, seconds: float | None) -> str:
    """Return time, calls, tokens and cost."""
    figures = [] if seconds is None else [duration(seconds)]
    if used.tool_calls:
        figures.append(quantity(used.tool_calls, "call"))
    if used.invocations:
        if count := used.tokens or used.total_input_tokens + used.total_output_tokens:
            figures.append(token_count(count))
        figures.append(cost_text(used))
    return " · ".join(figures)


def seconds_between(began: str, now: str) -> float | None:
    """Return the time from one record to another; None if either has no readable time."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(0.0, passed.total_seconds())
