"""A turn that another process runs: the prompt goes to its inbox, and its log is followed.

Takes no lock and starts no engine. If the owner ends before it took the prompt, the session has to
be opened here: how that is done is handed in.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, suppress

from msgspec.structs import replace

from bridle.cli.render import StepCounter
from bridle.cli.signals import interrupt_on_signals
from bridle.cli.turn import Show
from bridle.cli.user_input import user_name
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionError, SessionLocked
from bridle.events import (
    CallIntended,
    InboxMessageRefused,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.messages import Part, Text
from bridle.protocols.codec import to_record
from bridle.protocols.session import TurnResult
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import new_message_id, send_message
from bridle.service.log_follower import LogFollower
from bridle.stores.file_catalog import FileCatalog
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.usage import ExecutionMetrics

_INTERVAL = 0.05  # seconds between two looks at the log
_OWNER_LOOKS = 10  # every tenth look also asks whether the session still has an owner
_TRIES = 100  # owners that may come and go before the prompt is left to the next one
_IDLE_LOOKS = 40  # at a session that is open here and does nothing, until we believe it

OpenHere = Callable[[], AbstractAsyncContextManager[Session]]


class InboxTurn:
    """One prompt, sent to the process that owns the session, and its turn as the log tells it."""

    def __init__(
        self, folder: SessionFolder, session_id: str, show: Show, say: Callable[[str], None]
    ) -> None:
        self._catalog = FileCatalog(folder.folder)
        self._id = session_id
        self._path = folder.path(session_id)
        self._show = show
        self._say = say
        self._message_id = new_message_id()  # the id of our prompt in the inbox
        self._prompt = 0  # the record in which the prompt arrived
        self._turn = 0
        self.is_begun = False
        self._is_signalled = False
        self._log: LogFollower | None = None
        self._text = ""  # of the newest reply
        self._is_cut = False  # the newest reply was cut off: the next one continues it
        self._before = ""  # text that the newest reply continues
        self._usage = ExecutionMetrics()
        self.hint = ""
        self.steps = StepCounter()

    async def run(self, parts: tuple[Part, ...], open_here: OpenHere) -> TurnResult:
        """Send the prompt, show its turn, and return how it ended.

        `open_here` opens the session in this process, which then runs what is in its inbox.
        """
        seen = await asyncio.to_thread(self._catalog.last_seq, self._id)
        log = await LogFollower.open(self._catalog, self._id, seen)
        with closing(log), interrupt_on_signals(self._note_signal):
            media = parts if any(not isinstance(part, Text) for part in parts) else ()
            text = "".join(part.text for part in parts if isinstance(part, Text))
            message = InboxMessage(self._message_id, "send", user_name(), text, media, when="queue")
            send_message(self._catalog, self._id, message)
            if owner := describe_owner(self._path):
                self._say(f"sent to {owner}, which has the session open")
            for _ in range(_TRIES):
                if (result := await self._follow(log)) is not None:
                    return result
                if self.is_begun:
                    break
                if (result := await self._run_here(log, open_here)) is not None:
                    return result
                await asyncio.sleep(_INTERVAL)
        what = "its turn was cut off" if self.is_begun else "the prompt is waiting"
        raise AgentError(
            "agent",
            f"the process that had session {self._id} open has ended; {what}",
            hint=f"Continue with `bridle run --resume {self._id}`.",
        )

    async def _run_here(self, log: LogFollower, open_here: OpenHere) -> TurnResult | None:
        """Open the session, which has no owner; None if another process was faster."""
        try:
            async with open_here() as session:
                result = await self._follow(log, session)
                if result is None or not self.is_begun or result.reason == "parked":
                    return result
                return await session.wait(result.turn)  # it knows more than the log's reader
        except SessionLocked:
            return None

    async def _follow(self, log: LogFollower, session: Session | None = None) -> TurnResult | None:
        """Show the log until the turn has ended; None if the session has no owner any more.

        `session` is the one that is open here.
        """
        looks = idle = 0
        while True:
            is_owner_due = session is None and looks % _OWNER_LOOKS == 0
            has_owner = not is_owner_due or bool(describe_owner(self._path))
            is_signalled, self._is_signalled = self._is_signalled, False
            while lines := await log.read():
                for line in lines:
                    record = to_record(line) if isinstance(line, bytes) else line
                    if (end := self._take(record)) is not None:
                        return self._result(end)
            if is_signalled and not self._interrupt():
                return self._result(TurnEnded(0, "interrupted"))
            if not has_owner:
                return None
            looks, idle = looks + 1, 0 if session is None or session.is_busy else idle + 1
            if session is not None and idle > _IDLE_LOOKS:
                if session.is_parked:
                    return self._result(TurnEnded(self._turn, "parked"))
                raise AgentError(
                    "agent",
                    f"session {self._id} did not finish the prompt",
                    hint=f"`bridle sessions show {self._id}` shows what happened.",
                )
            self._log = log
            await log.wait()

    async def _note_signal(self) -> None:
        self._is_signalled = True  # what has happened until now is shown first
        if self._log is not None:
            self._log.wake()

    def _interrupt(self) -> bool:
        """Interrupt the turn if it is ours; return whether it is."""
        if not self.is_begun:
            self._say("the prompt stays in the queue; nothing was stopped")
            return False
        with suppress(AgentError):
            send_message(
                self._catalog, self._id, InboxMessage(new_message_id(), "interrupt", user_name())
            )
        return True

    def _take(self, record: Record) -> TurnEnded | None:
        """Take in the next record of the log; return the end of our turn if it is that."""
        event = record.event
        if not self.is_begun:
            self._take_before_turn(record)
            return None
        self._show(record)
        self.steps.add(event)
        match event:
            case ResponseCompleted(stop_reason=reason, message=message):
                has_calls = message is not None and bool(message.tool_calls)
                self._before = self._before + self._text if self._is_cut and not has_calls else ""
                self._text = message.content if message is not None else ""
                self._is_cut = reason == "max_tokens" and not has_calls
            case UsageReported(usage=usage, cost=cost):
                self._usage = self._usage.plus(usage, cost)
            case CallIntended():
                self._usage = replace(self._usage, tool_calls=self._usage.tool_calls + 1)
            case TurnParked(turn=turn) if turn == self._turn:
                return TurnEnded(turn, "parked")
            case TurnEnded(turn=turn) if turn == self._turn:
                self.hint = event.hint
                return event
        return None

    def _take_before_turn(self, record: Record) -> None:
        """Find out when the model is handed our prompt; turns before it are not shown."""
        match record.event:
            case PromptReceived(letter=letter, turn=turn) if letter == self._message_id:
                self._prompt, self._turn = record.seq, turn
            case MessageAdded(prompt=prompt, turn=turn) if prompt and prompt == self._prompt:
                self._turn = turn or self._turn
                self.is_begun = True
            case InboxMessageRefused(letter=letter, message=message) if letter == self._message_id:
                raise SessionError(f"the prompt was refused: {message}")

    def _result(self, end: TurnEnded) -> TurnResult:
        return TurnResult(
            self._before + self._text,
            end.reason,
            self._id,
            self._turn,
            end.detail,
            metrics=self._usage,
        )
