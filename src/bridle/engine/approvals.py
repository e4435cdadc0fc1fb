"""Questions to a person: recorded when asked, recorded when answered, and the first answer wins.

An answer is bound to what was shown. Silence, an interrupt and a second answer never run anything.
What was asked and answered is in the log, so a question outlives the process that put it.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from bridle.engine.engine_config import Approver, EngineConfig
from bridle.engine.gate import Parked
from bridle.engine.grants import likeness, seconds_at, stamp
from bridle.engine.history import History
from bridle.engine.question import NONCE, Judged
from bridle.errors import ConfigError, SessionError, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, Event
from bridle.policy import read_rule
from bridle.promises.session import Answer

log = logging.getLogger(__name__)

NOBODY = Answer(False, word="it needs a person's approval, and nobody is here to answer")
_SCOPES = ("once", "session", "rule")
EXPIRED = Answer(False, word="nobody answered in time")
CHANGED = Answer(False, word="it is not any more what was asked about")
GRANT = "grant"  # in whose name a question is closed that a grant has settled
_NEVER = "9999-12-31T23:59:59Z"
Scope = Literal["once", "session", "rule"]


class Approvals:
    """The open questions of one session."""

    def __init__(
        self, emit: Callable[[Event], None], parts: EngineConfig, session_id: str, history: History
    ) -> None:
        self._emit = emit
        self._parts = parts
        self._session_id = session_id
        self._history = history
        self._waiters: dict[str, asyncio.Future[Answer]] = {}  # by what was shown
        self._unanswered = 0
        self._asking: asyncio.Lock | None = None  # an approver is asked one thing at a time

    async def ask(self, judged: Judged) -> Answer:
        """Put the question, and come back with the answer. Raise `Parked` where that takes days."""
        said = self._history.answers.get(judged.call.id)
        if said is not None and judged.is_shown(self._session_id, said.shown):
            return Answer(said.allowed, said.scope, said.word, said.by)
        left = self._parts.ask_seconds
        if (asked := self._standing(judged)) is None:
            asked = self.put(judged)
        elif (left := _seconds_left(asked, left)) <= 0:
            return self._close(asked, EXPIRED, "expiry")
        if self._parts.approver is None and self._parts.on_ask != "wait":
            if self._parts.on_ask == "park":
                raise Parked
            self._unanswered += 1
            return self._close(asked, NOBODY, "nobody")
        answer = await self._heard(asked, left)
        if answer.allowed is True and not judged.is_shown(self._session_id, asked.shown):
            return CHANGED  # whoever was shown it, or answered, has had it in their hands
        return answer

    async def _heard(self, asked: ApprovalAsked, left: float) -> Answer:
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[asked.shown] = waiter
        try:
            async with asyncio.timeout(left):
                return await self._wait(asked, waiter)
        except TimeoutError:
            if waiter.done() and not waiter.cancelled():  # answered in the very moment: it wins
                return waiter.result()
            return self._close(asked, EXPIRED, "expiry")
        finally:
            self._waiters.pop(asked.shown, None)

    @property
    def together(self) -> bool:
        """Is there somebody who may look at several questions before the first is answered?"""
        return self._parts.approver is not None or self._parts.on_ask != "deny"

    def is_put(self, call_id: str) -> bool:
        """Does a question about that call stand, or has it an answer?"""
        if call_id in self._history.answers:
            return True
        return any(one.call.id == call_id for one in self._history.pending.values())

    def put_all(self, judged: Sequence[Judged]) -> None:
        """Put questions that belong together, before one of them is waited for."""
        group = secrets.token_hex(NONCE // 2)
        for one in judged:
            if self._standing(one) is None:
                self.put(one, group)

    def settle(self, judged: Judged) -> None:
        """A question that stands about a call that a grant covers by now needs nobody any more."""
        if (asked := self._standing(judged)) is not None:
            self._close(asked, Answer(True), GRANT)

    def _standing(self, judged: Judged) -> ApprovalAsked | None:
        """The question about exactly this that was put before: for its step, or a restart."""
        for one in self._history.pending.values():
            if one.call.id == judged.call.id and judged.is_shown(self._session_id, one.shown):
                return one
        return None

    def put(self, judged: Judged, group: str = "") -> ApprovalAsked:
        """Record the question."""
        shown = judged.shown(self._session_id, secrets.token_hex(NONCE // 2))
        expires = stamp(time.time() + self._parts.ask_seconds)
        asked = judged.asked(shown, expires, group)
        if times := self._history.times.get(likeness(asked), 0):
            asked = replace(asked, times=times)
        self._emit(asked)
        return asked

    async def _wait(self, asked: ApprovalAsked, waiter: "asyncio.Future[Answer]") -> Answer:
        """The approver's answer, or one that comes through `answer`: whichever is first."""
        if self._parts.approver is None:
            return await waiter
        asking = asyncio.create_task(self._hear(asked, self._parts.approver))
        try:
            await asyncio.wait([asking, waiter], return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                said = asking.result()
                self.answer(asked.call.id, said, asked.shown, said.by or "approver")
            return waiter.result()
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def pass_on(self, task: str, asked: ApprovalAsked) -> Answer:
        """Have the approver asked about a call of a child session, when it is its turn."""
        assert self._parts.approver is not None  # a child asks as its parent does
        whose = f"{asked.reason}; for the task “{task}”".removeprefix("; ")
        return await self._hear(replace(asked, reason=whose), self._parts.approver)

    async def _hear(self, asked: ApprovalAsked, approver: Approver) -> Answer:
        """What the approver says. One that breaks, or says something else, has said no."""
        try:
            self._asking = self._asking or asyncio.Lock()
            async with self._asking:
                said = await approver(asked)
        except Exception as error:  # it is somebody else's code, and it stands before an effect
            log.debug("the approver broke", exc_info=True)
            return Answer(False, word=f"the approver broke: {error!r}")
        if isinstance(said, Answer):
            return said if is_sound(said) else Answer(False, word=f"{said!r} is no answer")
        return Answer(said is True)

    def answer(
        self,
        call_id: str,
        answer: Answer | bool,
        shown: str,
        by: str,
        letter: str = "",
        at: float = 0.0,
    ) -> None:
        """Settle a question. Raise `UnknownApproval` when it is settled, or was another one.

        `at` is when the answer was given, where that was earlier than now.
        """
        said = Answer(answer) if isinstance(answer, bool) else answer
        if not isinstance(said, Answer):
            raise SessionError(f"{answer!r} is no answer", hint="Say True, False or an Answer.")
        if not is_sound(said):
            raise SessionError(
                f"{said!r} is no answer",
                hint=f"`allowed` is True or False, `scope` one of {', '.join(_SCOPES)}, "
                "`rule` nothing or a rule that allows something.",
            )
        asked = self._history.pending.get(shown)
        if asked is None or asked.call.id != call_id:
            raise self._refusal(call_id)
        waiter = self._waiters.get(shown)
        if waiter is not None and waiter.done():
            raise self._refusal(call_id)
        if waiter is None and _seconds_left(asked, 1.0, at) <= 0:
            self._close(asked, EXPIRED, "expiry", letter)
            raise UnknownApproval(
                f"the question about call {call_id} has expired, which counts as a no",
                hint="Send the prompt again if it is still wanted.",
            )
        closed = self._close(asked, said, by, letter)
        if waiter is not None:
            waiter.set_result(closed)

    def _refusal(self, call_id: str) -> UnknownApproval:
        if any(one.call.id == call_id for one in self._history.pending.values()):
            return UnknownApproval(
                f"the answer is for something else than what call {call_id} would do",
                hint="Look at the question again, then answer that one.",
            )
        return UnknownApproval(
            f"no question is open for call {call_id}",
            hint="It was answered already, has expired, or its turn is over.",
        )

    def expire(self) -> None:
        """Questions whose time is over, and at which nobody sits, count as a no from now on."""
        for asked in list(self._history.pending.values()):
            if asked.shown not in self._waiters and _seconds_left(asked, 1.0) <= 0:
                self._close(asked, EXPIRED, "expiry")

    def drop_all(self) -> None:
        """Nobody waits here any more. The questions stand in the log as long as their turn does."""
        for waiter in self._waiters.values():
            waiter.cancel()
        self._waiters.clear()

    def note_unanswered(self, count: int) -> None:
        """So many calls of a child session were refused because nobody was there."""
        self._unanswered += count

    def take_unanswered(self) -> int:
        """How many calls were refused because nobody was there, since the last look."""
        count, self._unanswered = self._unanswered, 0
        return count

    def _close(self, asked: ApprovalAsked, answer: Answer, by: str, letter: str = "") -> Answer:
        scope, rule = _extent(asked, answer)
        until = "" if by == GRANT else self._until(asked, answer, scope)
        said = (answer.allowed, by, scope, answer.word, asked.shown, letter, asked.cwd)
        self._emit(ApprovalAnswered(asked.call.id, *said, rule, until))
        if rule and self._parts.learn is not None:
            try:
                self._parts.learn(rule, by)
            except Exception:  # it is the face's, and the rule holds for the session all the same
                log.warning("the rule %s could not be kept", rule, exc_info=True)
        return answer

    def _until(self, asked: ApprovalAsked, answer: Answer, scope: Scope) -> str:
        """When what the answer grants ends; nothing where it grants nothing."""
        if answer.allowed is not True or asked.lasting or scope == "once":
            return ""
        return stamp(time.time() + self._parts.ask_grant_seconds) or _NEVER


def _extent(asked: ApprovalAsked, answer: Answer) -> tuple[Scope, str]:
    """How far an answer reaches in the end: a no, and what only a person may allow, just once."""
    if answer.allowed is not True:
        return answer.scope, ""
    if asked.lasting:
        return "once", ""
    if answer.scope != "rule":
        return answer.scope, ""
    return "rule", answer.rule or asked.proposal


def is_sound(answer: Answer) -> bool:
    """Are its words of the kinds that they are to be?"""
    return isinstance(answer.allowed, bool) and answer.scope in _SCOPES and _is_rule(answer.rule)


def _is_rule(text: object) -> bool:
    """Nothing, or a rule that allows something."""
    try:
        return text == "" or (isinstance(text, str) and read_rule(text).verdict == "allow")
    except ConfigError:
        return False


def _seconds_left(asked: ApprovalAsked, otherwise: float, at: float = 0.0) -> float:
    """How long a question stays open, from now or from then on.

    One without an end, or from a strange log, as usual.
    """
    expires = seconds_at(asked.expires)
    return otherwise if expires is None else expires - (at or time.time())
