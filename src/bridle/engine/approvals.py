"""Questions to a person: recorded when asked, recorded when answered, and the first answer wins.

An answer is bound to what was shown. Silence, an interrupt and a second answer never run anything.
What was asked and answered is in the log, so a question outlives the process that put it.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Callable
from datetime import datetime

from bridle.engine.gate import Parked, fingerprint
from bridle.engine.history import History
from bridle.engine.parts import Approver, Parts
from bridle.errors import SessionError, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, Event
from bridle.messages import ToolCall
from bridle.policy import Decision
from bridle.promises.session import Answer

log = logging.getLogger(__name__)

NOBODY = Answer(False, word="it needs a person's approval, and nobody is here to answer")
_SCOPES = ("once", "session", "rule")
EXPIRED = Answer(False, word="nobody answered in time")


class Approvals:
    """The open questions of one session."""

    def __init__(
        self, emit: Callable[[Event], None], parts: Parts, session_id: str, history: History
    ) -> None:
        self._emit = emit
        self._parts = parts
        self._session_id = session_id
        self._history = history
        self._waiters: dict[str, asyncio.Future[Answer]] = {}  # by what was shown
        self._unanswered = 0
        self._asking: asyncio.Lock | None = None  # an approver is asked one thing at a time

    async def ask(self, call: ToolCall, decision: Decision) -> Answer:
        """Put the question, and come back with the answer. Raise `Parked` where that takes days."""
        said = self._history.answers.get(call.id)
        if said is not None and said.cwd in ("", self._parts.workspace.root):
            return Answer(said.allowed, said.scope, said.word, said.by)
        left = self._parts.ask_seconds
        if (asked := self._standing(call)) is None:
            asked = self._put(call, decision)
        elif (left := _seconds_left(asked, left)) <= 0:
            return self._close(asked, EXPIRED, "expiry")
        if self._parts.approver is None and self._parts.on_ask != "wait":
            if self._parts.on_ask == "park":
                raise Parked
            self._unanswered += 1
            return self._close(asked, NOBODY, "nobody")
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[asked.shown] = waiter
        try:
            async with asyncio.timeout(left):
                return await self._wait(asked, waiter)
        except TimeoutError:
            if waiter.done():  # answered in the very moment: the first answer wins
                return waiter.result()
            return self._close(asked, EXPIRED, "expiry")
        finally:
            self._waiters.pop(asked.shown, None)

    def _standing(self, call: ToolCall) -> ApprovalAsked | None:
        """The question about exactly this call that was put before a restart."""
        open_ones = self._history.pending.values()
        root = self._parts.workspace.root  # a yes for one folder is none for another
        return next((one for one in open_ones if one.call == call and one.cwd == root), None)

    def _put(self, call: ToolCall, decision: Decision) -> ApprovalAsked:
        cwd = self._parts.workspace.root
        # a nonce, because some servers give the calls of every step the same ids
        shown = fingerprint(call, self._session_id, cwd, secrets.token_hex(8))
        expires = _stamp(time.time() + self._parts.ask_seconds)
        asked = ApprovalAsked(call, shown, decision.reason, decision.rule, cwd, expires)
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
            return said if _is_sound(said) else Answer(False, word=f"{said!r} is no answer")
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
        if not _is_sound(said):
            raise SessionError(
                f"{said!r} is no answer",
                hint=f"`allowed` is True or False, `scope` one of {', '.join(_SCOPES)}.",
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

    def take_unanswered(self) -> int:
        """How many calls were refused because nobody was there, since the last look."""
        count, self._unanswered = self._unanswered, 0
        return count

    def _close(self, asked: ApprovalAsked, answer: Answer, by: str, letter: str = "") -> Answer:
        said = (answer.allowed, by, answer.scope, answer.word)
        self._emit(ApprovalAnswered(asked.call.id, *said, asked.shown, letter, asked.cwd))
        return answer


def _is_sound(answer: Answer) -> bool:
    return isinstance(answer.allowed, bool) and answer.scope in _SCOPES


def _seconds_left(asked: ApprovalAsked, otherwise: float, at: float = 0.0) -> float:
    """How long a question stays open, from now or from then on.

    One without an end, or from a strange log, as usual.
    """
    try:
        expires = datetime.fromisoformat(asked.expires).timestamp()
    except ValueError:
        return otherwise
    return expires - (at or time.time())


def _stamp(when: float) -> str:
    """That time; nothing where it never comes."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(when)))
    except (OverflowError, ValueError):
        return ""
