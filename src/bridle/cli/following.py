"""A turn that another process carries: the prompt goes to its inbox, its log is followed live.

Reads the file and posts letters; takes no lock and starts no engine. Where the holder ends before
it took the prompt, somebody else has to hold the session: how that is done is handed in.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

from msgspec.structs import replace

from bridle.cli.event_lines import StepCounter
from bridle.cli.event_loop import interrupt_on_signals
from bridle.cli.turn import Show
from bridle.cli.user_input import user_name
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionError, SessionLocked
from bridle.events import (
    CallIntended,
    Event,
    InboxMessageRefused,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.messages import Part, Text
from bridle.protocols.session import TurnResult
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_client import deliver, new_letter
from bridle.stores.locks import describe_owner
from bridle.stores.reader import LogReader, SessionFolder
from bridle.stores.transfer import head_of
from bridle.usage import ExecutionMetrics

_EVERY = 0.05  # seconds between two looks at the file
_LOOKS = 10  # ... of which every tenth also asks whether somebody still holds the session
_TRIES = 100  # holders that may come and go before the prompt is left to whoever comes next
_IDLE = 40  # looks at a session that we hold and that does nothing, until we believe it

Hold = Callable[[], AbstractAsyncContextManager[Session]]


class Elsewhere:
    """One prompt, sent to the process that holds the session, and its turn as the log tells it."""

    def __init__(
        self, folder: SessionFolder, session_id: str, show: Show, say: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._id = session_id
        self._path = folder.path(session_id)
        self._show = show
        self._say = say
        self._letter = new_letter()
        self._prompt = 0  # the record in which the prompt arrived
        self._turn = 0
        self.begun = False
        self._pulled = False
        self._text = ""
        self._cut = False  # was the newest reply text that was cut off? Then the next continues it
        self._begun = ""  # the text that the newest reply continues
        self._used = ExecutionMetrics()
        self.hint = ""
        self.steps = StepCounter()

    async def play(self, parts: tuple[Part, ...], hold: Hold) -> TurnResult:
        """Send the prompt, show its turn, and come back with how it ended.

        `hold` takes the session up, as a holder that does what its letters say.
        """
        seen = head_of(self._folder, self._id).seq
        with self._folder.reader(self._id, seen) as log, interrupt_on_signals(self._pull):
            kept = parts if any(not isinstance(part, Text) for part in parts) else ()
            text = "".join(part.text for part in parts if isinstance(part, Text))
            sent = InboxMessage(self._letter, "send", user_name(), text, kept, when="queue")
            deliver(self._folder, self._id, sent)
            if holder := describe_owner(self._path):
                self._say(f"sent to {holder}, which holds the session")
            for _ in range(_TRIES):
                if (result := await self._watch(log)) is not None:
                    return result
                if self.begun:
                    break
                if (result := await self._take_up(log, hold)) is not None:
                    return result
                await asyncio.sleep(_EVERY)
        raise self._left_alone()

    async def _take_up(self, log: LogReader, hold: Hold) -> TurnResult | None:
        """Nobody holds the session, and the prompt waits: hold it. None: another was faster."""
        try:
            async with hold() as session:
                result = await self._watch(log, session)
                if result is None or not self.begun or result.reason == "parked":
                    return result
                return await session.wait(result.turn)  # it knows more than the log's reader
        except SessionLocked:
            return None

    async def _watch(self, log: LogReader, ours: Session | None = None) -> TurnResult | None:
        """Until the turn has ended; None: nobody holds the session any more."""
        looks = idle = 0
        while True:
            held = ours is not None or looks % _LOOKS != 0 or bool(describe_owner(self._path))
            pulled, self._pulled = self._pulled, False
            while records := log.read_new():
                for end in filter(None, map(self._take, records)):
                    return self._result(end)
            if pulled and not self._interrupt():
                return self._result(TurnEnded(0, "interrupted"))
            if not held:
                return None
            looks, idle = looks + 1, 0 if ours is None or ours.is_busy else idle + 1
            if ours is not None and idle > _IDLE:
                return self._stuck(ours)
            await asyncio.sleep(_EVERY)

    def _stuck(self, ours: Session) -> TurnResult:
        """We hold the session, and nothing comes of the prompt."""
        if ours.is_parked:
            return self._result(TurnEnded(self._turn, "parked"))
        raise AgentError(
            "agent",
            f"session {self._id} did not take the prompt to its end",
            hint=f"`bridle sessions show {self._id}` says what became of it.",
        )

    async def _pull(self) -> None:
        """Ctrl-C: what has happened until now is looked at first."""
        self._pulled = True

    def _interrupt(self) -> bool:
        """Stop the turn if it is ours; one that runs before it is somebody else's."""
        if not self.begun:
            self._say("the prompt stays in the queue; nothing was stopped")
            return False
        with suppress(AgentError):
            deliver(self._folder, self._id, InboxMessage(new_letter(), "interrupt", user_name()))
        return True

    def _take(self, record: Record) -> TurnEnded | None:
        event = record.event
        if not self.begun:
            self._await_turn(record, event)
            return None
        self._show(record)
        self.steps.add(event)
        match event:
            case ResponseCompleted(stop_reason=reason, message=message):
                calls = message is not None and message.tool_calls
                self._begun = "" if calls or not self._cut else self._begun + self._text
                self._text = message.content if message is not None else ""
                self._cut = reason == "max_tokens" and not calls
            case UsageReported(usage=usage, cost=cost):
                self._used = self._used.plus(usage, cost)
            case CallIntended():
                self._used = replace(self._used, tool_calls=self._used.tool_calls + 1)
            case TurnParked(turn=turn) if turn == self._turn:
                return TurnEnded(turn, "parked")
            case TurnEnded(turn=turn) if turn == self._turn:
                self.hint = event.hint
                return event
        return None

    def _await_turn(self, record: Record, event: Event) -> None:
        """Until the model is handed the prompt; what is shown before is not ours."""
        match event:
            case PromptReceived(letter=letter) if letter == self._letter:
                self._prompt, self._turn = record.seq, event.turn
            case MessageAdded(prompt=prompt) if prompt and prompt == self._prompt:
                self._turn = event.turn or self._turn
                self.begun = True
            case InboxMessageRefused(letter=letter) if letter == self._letter:
                raise SessionError(f"the prompt was refused: {event.message}")

    def _left_alone(self) -> AgentError:
        what = "the turn was cut short" if self.begun else "the prompt waits"
        return AgentError(
            "agent",
            f"the process that held session {self._id} has ended; {what}",
            hint=f"Go on with `bridle run --resume {self._id}`.",
        )

    def _result(self, end: TurnEnded) -> TurnResult:
        return TurnResult(
            self._begun + self._text,
            end.reason,
            self._id,
            self._turn,
            end.detail,
            metrics=self._used,
        )
