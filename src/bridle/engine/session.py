"""A session: one conversation, its log, and at most one turn in flight.

Three verbs go in (`send`, `answer`, `interrupt`), one numbered stream comes out (`subscribe`). The
turn belongs to the session, not to who watches it. What happened is recorded first, then told.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any

from bridle.engine.approvals import Approvals
from bridle.engine.awaited import Results
from bridle.engine.broadcast import Broadcast
from bridle.engine.budget import Budget
from bridle.engine.deltas import Deltas
from bridle.engine.gate import Gate
from bridle.engine.history import History
from bridle.engine.loop import Ending, Turn, outcome, run_turn
from bridle.engine.parts import Parts
from bridle.engine.prompt import checked
from bridle.engine.redact import Redaction
from bridle.engine.title import write_title
from bridle.engine.voice import Voice
from bridle.errors import (
    AgentError,
    SessionBusy,
    SessionClosed,
    SessionError,
    StoreFailed,
    TimedOut,
)
from bridle.events import (
    Event,
    MessageAdded,
    PromptReceived,
    TraceEvent,
    TurnEnded,
    When,
)
from bridle.messages import Message, Text, ToolCall, Transcript, as_parts
from bridle.policy import Mode
from bridle.promises.provider import Provider
from bridle.promises.session import Answer, Prompt, TurnResult
from bridle.promises.store import Log, Record
from bridle.promises.tool import ToolContext
from bridle.usage import ExecutionMetrics

PATIENCE = 5.0  # seconds that an interrupt waits for a tool that does not let go
_given_up: set["asyncio.Task[None]"] = set()


class Session:
    """A conversation that lasts."""

    def __init__(
        self,
        parts: Parts,
        log: Log,
        history: History,
        opening: Event,
        on_closed: Callable[["Session"], None],
    ) -> None:
        self.id = log.session_id
        self.mode: Mode = parts.mode
        self.one_budget = False  # do the limits hold over all turns from here on, or over each?
        self._parts = parts
        self._log = log
        self._history = history
        self._on_closed = on_closed
        self._opening: Event | None = opening  # said with the first prompt, so nothing is empty
        redactor = parts.redactor
        self._deltas = Deltas(Redaction(redactor, self._record).take if redactor else self._record)
        self._broadcast = Broadcast()
        self._approvals = Approvals(self.emit, parts, self.id)
        self._gate = Gate(parts.rules, self._now_mode, self._approvals.ask, redactor)
        self._task: asyncio.Task[None] | None = None
        self._voice: Voice | None = None
        self._inputs: Turn | None = None
        self._deadline: float | None = None
        self._budget: Budget | None = None
        self._begun = self._stopped = False
        self._naming: asyncio.Task[None] | None = None
        self._before = ExecutionMetrics()
        self._turn = 0  # the turn that runs; 0: none does
        self._last = history.turn  # the newest number that a turn was given
        self._busy = False
        self._closed = False
        self._results = Results()
        self._memory: dict[str, Any] = {}

    @property
    def is_busy(self) -> bool:
        """Is a turn running?"""
        return self._busy

    @property
    def is_closed(self) -> bool:
        """Was it closed? A closed session can be taken up again through the engine."""
        return self._closed

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self._log.seq

    @property
    def title(self) -> str:
        """The session's title: given, or made from its first prompt."""
        return self._history.title

    @property
    def metrics(self) -> ExecutionMetrics:
        """What the session has used so far."""
        return self._history.metrics

    @property
    def history(self) -> History:
        """What the log adds up to."""
        return self._history

    @property
    def log_path(self) -> str:
        """Where the log lies, if it lies somewhere."""
        return str(getattr(self._log, "path", ""))

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """The turn's number, once the prompt is on disk."""
        parts = checked(prompt, when)
        if self._closed:
            raise SessionClosed(f"session {self.id} is closed")
        if self._busy and when == "idle":
            raise SessionBusy(f"session {self.id} is busy with turn {self._turn}")
        steers = self._turn > 0 and when == "next_step"
        turn = self._turn if steers else self._last + 1
        kept = parts if any(not isinstance(part, Text) for part in parts) else ()
        text = "".join(part.text for part in parts if isinstance(part, Text))
        self._open()
        self.emit(PromptReceived(text, turn, by, when, kept))
        if not steers:
            self._expect(turn)
        if not self._busy:
            self._take_prompts()
            self._start(turn)
        await self._log.settled()
        return turn

    def bring(self, messages: Iterable[Message]) -> None:
        """History from elsewhere, before the next prompt. A call without a result gets none."""
        if self._closed:
            raise SessionClosed(f"session {self.id} is closed")
        if self._busy:
            raise SessionBusy(f"session {self.id} is busy with turn {self._turn}")
        self._open()
        for message in messages:
            self.emit(MessageAdded(message))

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Settle a pending approval; the first answer wins."""
        self._approvals.answer(call_id, answer, shown, by)
        await self._log.settled()

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn, and come back when it has ended."""
        task = self._task
        if self._turn and not self._stopped:
            self._stopped = True
            self.emit(TraceEvent("interrupt", {"by": by}))
            if task is not None and self._begun:  # one that has not begun looks for itself
                task.cancel()
        if task is None or task is asyncio.current_task():
            return
        await asyncio.wait([task], timeout=PATIENCE)
        if not task.done() and task is self._task and not await self._give_up():
            await asyncio.wait([task])

    async def wait(self, turn: int) -> TurnResult:
        """The result of a turn, when it is over."""
        if (awaited := self._results.get(turn)) is None:
            raise SessionError(f"session {self.id} knows nothing of a turn {turn}")
        return await awaited.get()

    async def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Every record after that number: what was written, then live; no gap, no repeat."""
        watcher = self._broadcast.join()
        self._log.on_written(self._broadcast.tell)
        last = after
        try:
            for record in await asyncio.to_thread(self._written, after):
                last = record.seq
                yield record
            async with aclosing(watcher.records()) as live:
                async for record in live:
                    if record.seq > last:
                        last = record.seq
                        yield record
            if watcher.lagging:
                yield Record(last, "", TraceEvent("resync", {"after": last}))
        finally:
            self._broadcast.leave(watcher)
            if not len(self._broadcast):
                self._log.on_written(None)

    async def close(self) -> None:
        """Interrupt what runs, settle, let the log go. Watchers are told that it is over."""
        if self._closed:
            return
        self._closed = True
        await self.interrupt(by="close")
        if self._naming is not None:
            self._naming.cancel()
            await asyncio.wait([self._naming])
        self._deltas.close()
        for turn in list(self._results):  # prompts that wait in the log for another day
            self._settle_result(turn, Ending("interrupted", "the session was closed"), None)
        try:
            await self._log.close()
        finally:
            self._broadcast.end()
            self._on_closed(self)

    def emit(self, event: Event) -> None:
        """Record, then tell. Synchronous, so the order is the order of the code."""
        self._deltas.add(event)

    def _open(self) -> None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            self.emit(opening)

    def _now_mode(self) -> Mode:
        return self.mode

    def _record(self, event: Event) -> None:
        self._history.apply(self._log.append(event))

    def _written(self, after: int) -> list[Record]:
        try:
            return list(self._parts.store.read(self.id, after))
        except AgentError:
            return []  # not a line is written yet: everything will come live

    def _take_prompts(self, turn: int = 0, *, steering: bool = False) -> None:
        """Bring the prompts of a turn into the conversation, each once; without a number, all.

        All are taken when an idle session is sent a prompt: what waits then was left behind by a
        process that ended before it came to it, and belongs before the new one.
        """
        for seq, prompt in list(self._history.waiting.items()):
            if turn in (0, prompt.turn) and (prompt.when == "next_step" or not steering):
                parts = prompt.parts or as_parts(prompt.content)
                self.emit(MessageAdded(Message("user", parts), seq))

    def _expect(self, turn: int) -> None:
        """Somebody may wait for this turn's result."""
        self._last = turn
        self._results.expect(turn)

    def _start(self, turn: int) -> None:
        self._busy, self._turn = True, turn
        self._begun = self._stopped = False
        self._before = self._history.metrics
        self._task = asyncio.create_task(self._carry(turn), name=f"bridle-turn-{self.id}")
        if turn == 1 and self._parts.small is not None:
            prompt = self._history.transcript[-1].content
            self._naming = asyncio.create_task(self._name(self._parts.small, prompt))

    async def _name(self, small: Provider, prompt: str) -> None:
        for event in await write_title(small, prompt):
            self.emit(event)

    async def _carry(self, turn: int) -> None:
        """The whole turn, and how it ended: said once, whatever happens."""
        self._begun = True
        self._voice = Voice(self.emit)
        try:
            ending, error = await self._run(), None
        except (Exception, asyncio.CancelledError) as raised:
            ending, error = outcome(raised)
        if self._task is asyncio.current_task():  # otherwise it was given up, and has no say
            await self._finish(turn, ending, error)

    async def _give_up(self) -> bool:
        """End a turn whose tool does not let go, and leave the tool to itself."""
        task, running = self._task, self._inputs
        caller = running.caller if running is not None else None
        if task is None or caller is None or not (names := caller.give_up()):
            return False
        self._task = None
        _given_up.add(task)  # asyncio itself holds tasks only weakly
        task.add_done_callback(_given_up.discard)
        detail = f"{names} did not stop within {PATIENCE:g} seconds and may still be running"
        self.emit(TraceEvent("not_stopped", {"tools": names, "message": detail}))
        await self._finish(self._turn, Ending("interrupted", detail), None)
        return True

    async def _finish(self, turn: int, ending: Ending, error: AgentError | None) -> None:
        if (redactor := self._parts.redactor) is not None:
            redactor.error(error)
            ending = redactor.value(ending)
        if self._voice is not None:
            self._voice.close()
        self._approvals.drop_all()
        kind = error.kind if error is not None else ""
        self._turn = 0  # from here on there is nothing left to interrupt
        self.emit(TurnEnded(turn, ending.reason, ending.detail, kind, ending.hint))
        self._deltas.close()
        try:
            await self._log.settled()
        except StoreFailed as failed:
            ending, error = Ending("failed", failed.message, failed.hint), failed
        self._settle_result(turn, ending, error)
        self._busy = False
        if self._history.waiting and not self._closed:
            self._follow()

    async def _run(self) -> Ending:
        if self._stopped:
            raise asyncio.CancelledError
        await self._log.settled()  # nothing happens before the prompt is safe
        parts = self._parts
        inputs = self._inputs = Turn(
            self._conversation,
            parts.provider,
            parts.tools,
            self._gate,
            self._deltas.add,  # `emit`, without a step in between
            self._allowance(),
            self._log.settled,
            self._context,
            parts.config,
            parts.system,
            parts.offered,
        )
        if self._deadline is None:
            return await run_turn(inputs)
        try:
            async with asyncio.timeout_at(self._deadline):
                return await run_turn(inputs)
        except TimeoutError:
            limit = f"the limit of {parts.limits.seconds:g} seconds"
            raise TimedOut(f"{limit} is reached") from None

    def _allowance(self) -> Budget:
        """What the turn may use: the limits, or what an earlier turn has left of them."""
        if self._budget is not None and self.one_budget:
            self._budget.go_on()
            return self._budget
        limits = self._parts.limits
        now = asyncio.get_running_loop().time()
        self._deadline = now + limits.seconds if limits.seconds else None
        self._budget = Budget(limits, self._parts.provider.info)
        return self._budget

    def _conversation(self) -> Transcript:
        """The messages so far, with what was sent to steer the turn that runs."""
        if self._history.waiting:
            self._take_prompts(self._turn, steering=True)
        return self._history.transcript

    def _context(self, call: ToolCall) -> ToolContext[Any]:
        parts = self._parts
        return ToolContext(
            parts.workspace,
            call.id,
            self.id,
            self._deadline,
            parts.deps,
            self._voice or self.emit,
            memory=self._memory,
        )

    def _follow(self) -> None:
        """Start the turn of the oldest prompt that waits; one that came too late to steer, too."""
        first = next(iter(self._history.waiting.values()))
        following = first.turn
        if not self._results.lacks(following):
            following = self._last + 1
            self._expect(following)
        self._take_prompts(first.turn)
        self._start(following)

    def _settle_result(self, turn: int, ending: Ending, error: AgentError | None) -> None:
        if not self._results.lacks(turn):
            return
        transcript = self._history.transcript
        last = transcript[-1] if len(transcript) else Message("assistant")
        text = last.content if last.role == "assistant" else ""
        self._results.settle(
            TurnResult(
                text,
                ending.reason,
                self.id,
                turn,
                ending.detail,
                error,
                self._history.metrics.since(self._before),
                self._approvals.take_unanswered(),
            )
        )
