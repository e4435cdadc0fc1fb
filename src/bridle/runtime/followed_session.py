"""A session that another process owns, as a conversation: what is known of it is folded from its
records as they arrive, and what is done with it goes through a `SessionService`.

The process may be on this machine (then its log is followed) or behind a server (its stream is).
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Protocol, Self, cast, get_args

from bridle.engine.history import History
from bridle.errors import AgentError, EmptyPrompt, Kind, SessionError, SessionLocked
from bridle.events import Grant, MessageAdded, PromptWithdrawn, ResponseCompleted, TurnEnded, When
from bridle.messages import Part, Text
from bridle.policy import Mode
from bridle.protocols.session import Answer, Prompt, TurnResult
from bridle.protocols.session_service import SessionService
from bridle.protocols.session_values import (
    ApprovalAnswer,
    Budget,
    ForkRequest,
    PromptRequest,
    ResumeOptions,
    RewindRequest,
    SessionDetail,
    SessionInfo,
    SessionLimits,
    SessionUpdate,
    UndoPreview,
    UndoRequest,
)
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics

_SEEN = 5.0  # seconds until what was done must be seen in the records; then it is believed


class RecordFeed(Protocol):
    """Follows the records of one session and folds them."""

    info: SessionInfo

    @property
    def history(self) -> History: ...
    @property
    def turns(self) -> "TurnResults": ...
    @property
    def seq(self) -> int:
        """The number of the newest record that was folded."""
        ...

    @property
    def closed(self) -> bool: ...
    async def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until the condition holds; False: it did not in time. Raise what ended the feed."""
        ...

    def records(self, after: int) -> AsyncGenerator[Record, None]:
        """Yield every record after that number: what was written, then live."""
        ...

    async def close(self) -> None: ...


class FollowedSession:
    """A conversation in another process. Implements `Conversation`.

    `me` is who does something if a method is not told otherwise.
    """

    def __init__(self, service: SessionService, feed: RecordFeed, me: str = "me") -> None:
        self.id = feed.info.id
        self._service = service
        self._feed = feed
        self._me = me

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def info(self) -> SessionInfo:
        """What was last read of it beside its records."""
        return self._feed.info

    @property
    def title(self) -> str:
        """The session's title: given, or made from its first prompt."""
        return self.history.title or self.info.title

    @property
    def model(self) -> str:
        """Provider and model."""
        return self.info.model

    @property
    def agent(self) -> str:
        """The agent that runs its turns."""
        return self.info.agent or "loop"

    @property
    def workspace(self) -> str:
        """Where it works."""
        return self.info.workspace

    @property
    def mode(self) -> Mode:
        """What may run without asking: the session's own mode, or else its process's."""
        return cast("Mode", self.history.mode or self.info.mode or "ask")

    @property
    def window(self) -> int | None:
        """The model's context window in tokens, if it is known."""
        info = self.info
        return (info.context.window or None) if isinstance(info, SessionDetail) else None

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running, or about to."""
        history = self.history
        return not history.parked and bool(history.running or history.waiting)

    @property
    def is_parked(self) -> bool:
        """Whether a turn waits for answers, with nothing running."""
        return self.history.parked

    @property
    def is_closed(self) -> bool:
        """Whether it is no longer followed."""
        return self._feed.closed

    @property
    def turn(self) -> int:
        """The number of the turn that is running or parked; 0: none."""
        return self.history.running

    @property
    def seq(self) -> int:
        """The number of the newest record that was seen."""
        return self._feed.seq

    @property
    def began(self) -> int:
        """The record before the newest turn's prompt: from there on it can be shown whole."""
        return self._feed.turns.began

    @property
    def metrics(self) -> ExecutionMetrics:
        """What the session has used so far."""
        return self.history.metrics

    @property
    def history(self) -> History:
        """The state that the records add up to."""
        return self._feed.history

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """Return the turn's number, once the session's owner has the prompt on disk."""
        parts = _to_parts(prompt)
        is_text = all(isinstance(part, Text) for part in parts)
        text = "".join(part.text for part in parts if isinstance(part, Text)) if is_text else ""
        request = PromptRequest(text, () if is_text else parts, when=when)
        accepted = await self._service.send(self.id, request, self._name(by), secrets.token_hex(16))
        await self._feed.until(lambda: self.history.turn >= accepted.turn, _SEEN)
        return accepted.turn

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Answer an approval request; the first answer wins. Raise `UnknownApproval`."""
        given = answer if isinstance(answer, Answer) else Answer(answer)
        said = ApprovalAnswer(given.allowed, shown, given.scope, given.word, given.rule)
        await self._service.answer(self.id, call_id, said, self._name(by))
        await self._feed.until(lambda: shown not in self.history.pending, _SEEN)

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn, and return when it has ended."""
        turn = self.turn
        await self._service.interrupt(self.id, self._name(by))
        if turn:
            await self._feed.until(lambda: self.turn != turn, _SEEN)

    async def wait(self, turn: int) -> TurnResult:
        """Return the result of a turn when it is over. A parked one is not."""
        await self._feed.until(lambda: self.history.turn >= turn, _SEEN)
        if not 0 < turn <= self.history.turn:
            raise SessionError(f"session {self.id} has no turn {turn}")
        await self._feed.until(lambda: turn in self._feed.turns.results)
        return self._feed.turns.results[turn]

    async def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until what is known of it fulfils the condition; False if it did not in time."""
        return await self._feed.until(condition, seconds)

    def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Yield every record after that number: what was written, then live; no gap, no repeat."""
        return self._feed.records(after)

    async def resume(self) -> int:
        """Continue what was left, a parked turn or prompts that wait: the turn's number."""
        is_answered = self.is_parked and not self.history.pending
        if is_answered or (self.history.waiting and not self.turn):
            with suppress(SessionLocked):  # then its owner continues it
                await self._see(await self._service.resume(self.id, ResumeOptions(), self._me))
        waiting = min((prompt.turn for prompt in self.history.waiting.values()), default=0)
        if not (turn := self.turn or waiting):
            raise SessionError(f"session {self.id} has nothing to resume", hint="Send it a prompt.")
        return turn

    async def set_mode(self, mode: Mode, *, by: str = "me", reason: str = "") -> None:
        """Have this mode from the next call on."""
        await self._change(SessionUpdate(mode=mode), by)

    async def rename(self, title: str) -> None:
        """Give it a title."""
        await self._change(SessionUpdate(title=title))

    async def tag(self, tags: Iterable[str]) -> None:
        """Give it these tags, and no others."""
        await self._change(SessionUpdate(tags=tuple(tags)))

    async def configure(self, *, provider: str = "", model: str = "", agent: str = "") -> None:
        """Use another model or agent from the next turn on."""
        await self._change(
            SessionUpdate(provider=provider or None, model=model or None, agent=agent or None)
        )

    async def rewind(self, to: int, *, by: str = "me") -> None:
        """Make the conversation again what it was at record `to`; 0 is empty."""
        await self._see(await self._service.rewind(self.id, RewindRequest(to), self._name(by)))

    async def compact(self, *, by: str = "me") -> bool:
        """Shorten the conversation now, between two turns; return whether it got shorter."""
        before = len(self.history.transcript)
        await self._see(await self._service.compact(self.id, self._name(by)))
        return len(self.history.transcript) < before

    async def fork(self, at: int | None = None) -> SessionInfo:
        """Create a session with this one's conversation, up to a record."""
        return await self._service.fork(self.id, ForkRequest(at), self._me)

    async def detail(self) -> SessionDetail:
        """Return the session with everything that is shown beside its conversation."""
        return await self._service.detail(self.id)

    async def refresh(self) -> None:
        """Read `info` again."""
        self._feed.info = await self.detail()

    def grants(self) -> tuple[Grant, ...]:
        """Return what a person has allowed for the session and nobody has revoked."""
        now = datetime.now(UTC)
        return tuple(grant for grant in self.history.grants.values() if not _has_ended(grant, now))

    async def revoke(self, grant: str = "", *, by: str = "me") -> None:
        """Revoke a grant, by its id; without one, all of them."""
        await self._service.revoke(self.id, grant, self._name(by))
        valid = self.history.grants
        await self._feed.until(lambda: grant not in valid if grant else not valid, _SEEN)

    async def preview(self, rule: str) -> tuple[str, ...]:
        """Return the calls of this conversation that a rule would have covered, in words."""
        return (await self._service.preview_rule(self.id, rule)).calls

    async def undo_preview(self, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn (0: the newest that changed something) would do."""
        return await self._service.undo_preview(self.id, turn)

    async def undo(
        self, shown: UndoPreview, *, clashes: Literal["refuse", "skip", "overwrite"] = "refuse"
    ) -> None:
        """Restore what was shown. `clashes`: what to do with files that changed after the turn.

        With "refuse", if there are any, restore nothing and raise `SessionError`.
        """
        await self._service.undo(self.id, UndoRequest(shown.turn, shown.token, clashes), self._me)

    async def budget(self) -> Budget:
        """Return its limits, and what it has used."""
        return await self._service.budget(self.id)

    async def set_budget(self, **limits: float) -> Budget:
        """Lower limits, from the next turn on: `max_session_cost=2.5`."""
        return await self._service.set_budget(self.id, SessionLimits(**limits), self._me)  # type: ignore[arg-type]  # its fields are numbers

    async def withdraw(self, prompt: int, *, by: str = "me") -> None:
        """Withdraw a prompt that waits, by the number of its record."""
        await self._service.withdraw(self.id, prompt, self._name(by))
        await self._feed.until(lambda: prompt not in self.history.waiting, _SEEN)

    async def export(self, form: str = "jsonl") -> bytes:
        """Return the whole session as a file: `jsonl` or `markdown`."""
        pieces: AsyncIterator[bytes] = self._service.export(self.id, form)
        return b"".join([piece async for piece in pieces])

    async def close(self) -> None:
        """Stop following it. The session itself goes on."""
        await self._feed.close()

    async def _change(self, change: SessionUpdate, by: str = "me") -> None:
        self._feed.info = await self._service.change(self.id, change, self._name(by))
        await self._see(self._feed.info)

    def _name(self, by: str) -> str:
        return self._me if by == "me" else by

    async def _see(self, info: SessionInfo) -> None:
        """Wait until the records have arrived that the service knows of."""
        await self._feed.until(lambda: self._feed.seq >= info.seq, _SEEN)


class TurnResults:
    """How the turns of a session ended, folded from its records."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._text = ""
        self._was_cut = False  # whether the newest reply was cut off, so that the next continues it
        self._beginning = ""  # the text that the newest reply continues
        self._before = History().metrics
        self._turn = 0
        self.results: dict[int, TurnResult] = {}  # by number
        self.began = 0  # the record before the prompt of the newest turn

    def apply(self, record: Record, history: History) -> None:
        """Add one record, which the history contains already."""
        match record.event:
            case MessageAdded(prompt=prompt) if prompt:
                if history.running != self._turn:
                    self._turn, self.began = history.running, prompt - 1
                    self._text, self._beginning, self._was_cut = "", "", False
                    self._before = history.before
            case ResponseCompleted(stop_reason=reason, message=message):
                calls = message is not None and message.tool_calls
                is_new = calls or not self._was_cut
                self._beginning = "" if is_new else self._beginning + self._text
                self._text = message.content if message is not None else ""
                self._was_cut = reason == "max_tokens" and not calls
            case TurnEnded() as end:
                self.results[end.turn] = self._result(end, history)
            case PromptWithdrawn(turn=turn) if not _is_to_come(history, turn):
                result = TurnResult("", "interrupted", self._id, turn, "the prompt was withdrawn")
                self.results.setdefault(turn, result)
            case _:
                pass

    def _result(self, end: TurnEnded, history: History) -> TurnResult:
        error = None
        if end.error_kind in get_args(Kind):
            error = AgentError(cast("Kind", end.error_kind), end.detail, hint=end.hint)
        return TurnResult(
            text=self._beginning + self._text,
            reason=end.reason,
            session_id=self._id,
            turn=end.turn,
            detail=end.detail,
            error=error,
            metrics=history.metrics.since(self._before),
        )


def _is_to_come(history: History, turn: int) -> bool:
    waiting = history.waiting.values()
    return turn == history.running or any(prompt.turn == turn for prompt in waiting)


def _to_parts(prompt: Prompt) -> tuple[Part, ...]:
    given: Iterable[str | Part] = [prompt] if isinstance(prompt, str) else prompt
    parts = tuple(Text(part) if isinstance(part, str) else part for part in given)
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return parts


def _has_ended(grant: Grant, now: datetime) -> bool:
    try:
        return bool(grant.until) and datetime.fromisoformat(grant.until) <= now
    except ValueError:
        return True
