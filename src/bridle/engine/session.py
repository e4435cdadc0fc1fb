"""A session: one conversation, its log, and at most one turn in flight.

Three verbs go in (`send`, `answer`, `interrupt`), one numbered stream comes out (`subscribe`). The
turn belongs to the session, not to who watches it. What happened is recorded first, then told.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING

from bridle.engine.broadcast import Broadcast
from bridle.engine.deltas import Deltas
from bridle.engine.history import History
from bridle.engine.letters import Inbox
from bridle.engine.parts import Parts
from bridle.engine.prompt import checked
from bridle.engine.recovery import is_parked, recovered
from bridle.engine.redact import Redaction
from bridle.engine.turns import Turns
from bridle.engine.upkeep import Upkeep
from bridle.engine.watching import follow
from bridle.errors import SessionBusy, SessionClosed, SessionError
from bridle.events import (
    Event,
    MessageAdded,
    PromptReceived,
    Reason,
    TraceEvent,
    TurnEnded,
    When,
)
from bridle.messages import Message, Part, Text
from bridle.policy import Mode
from bridle.promises.session import Answer, Prompt, TurnResult
from bridle.promises.store import Log, Record
from bridle.usage import ExecutionMetrics

if TYPE_CHECKING:
    from bridle.promises.hooks import Hooks


class Session(Upkeep):
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
        self._parts = parts
        self._log = log
        self._history = history
        self._on_closed = on_closed
        self._opening: tuple[Event, ...] = (
            opening,
        )  # said with the first prompt, so nothing is empty
        if history.mode == "auto":
            history.mode = ""  # a yes to everything ends with the process that it was given to
        redactor = parts.redactor
        self._deltas = Deltas(Redaction(redactor, self._record).take if redactor else self._record)
        self._turns = Turns(parts, log, history, self._deltas, self._now_mode)
        self._broadcast: Broadcast | None = None  # made for the first who watches
        self._inbox: Inbox | None = None  # most sessions never get a letter
        self._naming: asyncio.Task[None] | None = None
        self._named = False  # did somebody give it a title?
        self._closed = False
        self._gone: asyncio.Event | None = None  # where somebody waits for the end of closing
        self._over = False

    @property
    def broadcast(self) -> Broadcast:
        """Where its watchers are told."""
        if self._broadcast is None:
            self._broadcast = Broadcast(self._log)
            if self._over:
                self._broadcast.end()
        return self._broadcast

    @property
    def is_busy(self) -> bool:
        """Is a turn running?"""
        return self._turns.busy

    @property
    def turn(self) -> int:
        """The number of the turn that runs or is parked; 0: none."""
        return self._turns.current

    @property
    def is_parked(self) -> bool:
        """Does a turn wait for answers, with nothing running?"""
        return self._turns.parked

    @property
    def ended(self) -> Reason | None:
        """How the newest turn has ended; None where none has since it was taken up."""
        return self._turns.ended

    @property
    def is_at_rest(self) -> bool:
        """Does nothing run, wait or belong to it that closing it would end?"""
        naming = self._naming is not None and not self._naming.done()
        idle = not (self.is_busy or naming or self._history.pending)
        return idle and not self._turns.belongings.is_at_work

    @property
    def cwd(self) -> str:
        """Where its shell stands, which is forgotten when it is closed; empty: in the root."""
        return self._turns.belongings.cwd

    @property
    def one_budget(self) -> bool:
        """Do the limits hold over all turns from here on, or over each?"""
        return self._turns.one_budget

    @one_budget.setter
    def one_budget(self, value: bool) -> None:
        self._turns.one_budget = value

    @property
    def is_closed(self) -> bool:
        """Was it closed? A closed session can be taken up again through the engine."""
        return self._closed

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self._log.seq

    @property
    def durable(self) -> int:
        """The number up to which everything would survive."""
        return self._log.durable

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

    async def send(
        self, prompt: Prompt, *, when: When = "idle", by: str = "me", letter: str = ""
    ) -> int:
        """The turn's number, once the prompt is on disk."""
        parts = checked(prompt, when)
        self._check_sending(when)
        said = None
        if (hooks := self._parts.hooks) is not None and hooks.listens("before_prompt"):
            parts, said = await self._heard(hooks, parts)
            parts = checked(parts, when)
            self._check_sending(when)  # somebody may have sent another one meanwhile
        turns = self._turns
        steers = when == "next_step" and turns.current
        turn = turns.steered() if steers else turns.new()
        kept = parts if any(not isinstance(part, Text) for part in parts) else ()
        text = "".join(part.text for part in parts if isinstance(part, Text))
        self._open()
        if said is not None:
            self.emit(said)
        self.emit(PromptReceived(text, turn, by, when, kept, letter))
        if not turns.busy and not is_parked(self._history):
            turns.begin(turns.due(turn))
            if turn == 1 and self._parts.small is not None:
                self._naming = asyncio.create_task(self._name(self._parts.small, text))
        await self._log.settled()
        return turn

    def _check_sending(self, when: When) -> None:
        self._check_open()
        if when == "idle":
            self.check_idle()

    async def _heard(
        self, hooks: "Hooks", parts: tuple[Part, ...]
    ) -> tuple[tuple[Part, ...], TraceEvent | None]:
        """A prompt as the hooks leave it, and what they said."""
        from bridle.engine.remarks import before_prompt
        from bridle.promises.hooks import Occasion

        text = "".join(part.text for part in parts if isinstance(part, Text))
        about = Occasion("before_prompt", self.id, self._parts.workspace.root, prompt=text)
        return await before_prompt(hooks, about, parts, self._parts.redactor)

    def bring(self, messages: Iterable[Message]) -> None:
        """History from elsewhere, before the next prompt. A call without a result gets none."""
        self.check_idle()
        messages = tuple(messages)
        if strange := [one for one in messages if not isinstance(one, Message)]:
            raise SessionError(
                f"{type(strange[0]).__name__} is no message", hint="History is made of `Message`s."
            )
        self._open()
        for message in messages:
            self.emit(MessageAdded(message))

    async def answer(
        self,
        call_id: str,
        answer: Answer | bool,
        *,
        shown: str,
        by: str,
        letter: str = "",
        at: float = 0.0,
    ) -> None:
        """Settle a pending approval; the first answer wins. A parked turn goes on with the last."""
        self._check_open()
        if isinstance(answer, Answer) and answer.scope == "rule":
            self.check_rule(shown, answer)
        try:
            self._turns.approvals().answer(call_id, answer, shown, by, letter, at)
        finally:  # also one that came too late may have settled the last question: as a no
            await self._move_on()

    async def expire(self) -> None:
        """Have questions of a parked turn count as a no where nobody has answered in time.

        What others have answered is heard first. The turn goes on when nothing is left to answer.
        """
        self._check_open()
        await self.take_letters()
        if self._turns.parked and self._history.pending:
            self._turns.approvals().expire()
            await self._move_on()

    async def _move_on(self) -> None:
        await self._log.settled()
        if self._turns.parked and not self._history.pending and not self._closed:
            self._open()
            self._turns.go_on()

    async def go_on(self) -> int:
        """Carry on what was left behind, a parked turn or prompts that wait: the turn's number."""
        self._check_open()
        if self._turns.parked:
            await self.expire()
        if self._turns.busy:
            return self._turns.number
        if not self._turns.parked and not self._history.waiting:
            raise SessionError(
                f"session {self.id} has nothing to go on with", hint="Send it a prompt."
            )
        self._open()
        return self._turns.go_on() if self._turns.parked else self._turns.follow()

    def promise(self) -> None:
        """Have each prompt that waits get the turn that it was given by another process.

        Otherwise the next turn takes all of them in.
        """
        self._turns.promise()

    async def interrupt(self, *, by: str = "me", letter: str = "", turn: int = 0) -> None:
        """End the running turn (`turn`: only that one), and come back when it has ended."""
        detail = {"by": by, "letter": letter} if letter else {"by": by}
        turns = self._turns
        latest = turns.latest
        if turn not in (0, latest):
            return
        said = not turns.parked and await turns.stop(detail)
        if turns.parked and turns.current == latest and not self._closed:
            said = True
            self._open()
            await turns.abandon(detail)
        if letter and not said:  # nothing to stop: the letter is done all the same
            self._check_open()
            self._open()
            self.emit(TraceEvent("interrupt", detail))

    async def wait(self, turn: int) -> TurnResult:
        """The result of a turn, when it is over."""
        if (awaited := self._turns.results.get(turn)) is None:
            raise SessionError(f"session {self.id} knows nothing of a turn {turn}")
        while (result := awaited.result) is None:
            await awaited.coming()
        return result

    def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Every record after that number: what was written, then live; no gap, no repeat."""
        return follow(self._parts.store, self._log, self.broadcast, after)

    async def recover(self) -> None:
        """Say what became of a turn whose process ended, and do what others have asked for."""
        if events := list(recovered(self._history)):
            self._open()
            for event in events:
                self.emit(event)
                if isinstance(event, TurnEnded):
                    self._turns.ended = event.reason
            await self._log.settled()
        await self.take_letters()

    async def take_letters(self) -> None:
        """Do what other processes have put into the inbox."""
        if self._inbox is None and self._log.letters():
            self._inbox = Inbox(self._log, self._history, self.emit)
        if not self._closed and self._inbox is not None:
            await self._inbox.take(self)

    async def close(self) -> None:
        """Interrupt what runs, settle, let the log go. Watchers are told that it is over."""
        if self._closed:
            self._gone = self._gone or asyncio.Event()
            if not self._over:
                await self._gone.wait()
            return
        self._closed = self._turns.closed = True
        idle = not self.is_busy and self._naming is None and self._turns.belongings.is_empty
        if idle and self._log.durable >= self._log.seq:
            await self._let_go()  # nothing to wait for
            return
        closing = asyncio.ensure_future(self._end())  # whoever gives up waiting, it goes on
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(closing)

    async def _end(self) -> None:
        try:
            await self._turns.leave({"by": "close"})
            if self._naming is not None:
                self._naming.cancel()
                await asyncio.wait([self._naming])
            await self._turns.belongings.end()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        try:
            self._deltas.close()
            self._turns.close()
            await self._log.close()
        finally:
            self._over = True
            if self._broadcast is not None:
                self._broadcast.end()
            self._on_closed(self)
            if self._gone is not None:
                self._gone.set()

    def emit(self, event: Event) -> None:
        """Record, then tell. Synchronous, so the order is the order of the code."""
        self._deltas.add(event)

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(f"session {self.id} is closed")

    def check_idle(self) -> None:
        """Raise `SessionBusy` while a turn runs or is parked, `SessionClosed` where none will."""
        self._check_open()
        if self._turns.busy:
            turn = f" with turn {self._turns.number}" if self._turns.number else ""
            raise SessionBusy(f"session {self.id} is busy{turn}")
        if self._turns.parked:
            raise self._waits()

    def _waits(self) -> SessionBusy:
        turn = f"turn {self._history.running} of session {self.id}"
        end = f"interrupt the turn (`bridle sessions stop {self.id}`)"
        if not (count := len(self._history.pending)):
            return SessionBusy(f"{turn} has its answers", hint=f"Let it go on, or {end}.")
        return SessionBusy(
            f"{turn} waits for {count} answer{'s' if count > 1 else ''}",
            hint=f"Answer (`bridle approvals list` shows what is asked), or {end}.",
        )

    def _open(self) -> None:
        if self._opening:
            opening, self._opening = self._opening, ()
            for event in opening:
                self.emit(event)

    def _now_mode(self) -> Mode:
        mode, parent = self._history.mode or self._parts.mode, self._parts.parent
        return mode if parent is None else parent.narrowed(mode)

    def _record(self, event: Event, data: bytes | None = None) -> None:
        self._history.apply(self._log.append(event, data))
