"""Questions to a person: recorded when asked, recorded when answered, and the first answer wins.

An answer is bound to what was shown. Silence, an interrupt and a second answer never run anything.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable

from bridle.engine.gate import fingerprint
from bridle.engine.parts import Approver, Parts
from bridle.errors import SessionError, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, Event
from bridle.messages import ToolCall
from bridle.policy import Decision
from bridle.promises.session import Answer

log = logging.getLogger(__name__)

NOBODY = Answer(False, word="it needs a person's approval, and nobody is here to answer")
EXPIRED = Answer(False, word="nobody answered in time")


class Approvals:
    """The open questions of one session."""

    def __init__(self, emit: Callable[[Event], None], parts: Parts, session_id: str) -> None:
        self._emit = emit
        self._parts = parts
        self._session_id = session_id
        self._open: dict[str, tuple[ApprovalAsked, asyncio.Future[Answer]]] = {}
        self._unanswered = 0
        self._asking = asyncio.Lock()  # an approver is asked one thing at a time

    async def ask(self, call: ToolCall, decision: Decision) -> Answer:
        """Put the question, and come back with the answer."""
        cwd = self._parts.workspace.root
        # a nonce, because some servers give the calls of every step the same ids
        shown = fingerprint(call, self._session_id, cwd, secrets.token_hex(8))
        expires = _stamp(time.time() + self._parts.ask_seconds)
        asked = ApprovalAsked(call, shown, decision.reason, decision.rule, cwd, expires)
        self._emit(asked)
        if self._parts.approver is None and self._parts.on_ask == "deny":
            self._unanswered += 1
            return self._close(asked, NOBODY, "nobody")
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[call.id] = (asked, waiter)
        try:
            async with asyncio.timeout(self._parts.ask_seconds):
                return await self._wait(asked, waiter)
        except TimeoutError:
            if waiter.done():  # answered in the very moment: the first answer wins
                return waiter.result()
            return self._close(asked, EXPIRED, "expiry")
        finally:
            self._open.pop(call.id, None)

    async def _wait(self, asked: ApprovalAsked, waiter: "asyncio.Future[Answer]") -> Answer:
        """The approver's answer, or one that comes through `answer`: whichever is first."""
        if self._parts.approver is None:
            return await waiter
        asking = asyncio.create_task(self._put(asked, self._parts.approver))
        try:
            await asyncio.wait([asking, waiter], return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                said = asking.result()
                self.answer(asked.call.id, said, asked.shown, said.by or "approver")
            return waiter.result()
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def _put(self, asked: ApprovalAsked, approver: Approver) -> Answer:
        """What the approver says. One that breaks, or says something else, has said no."""
        try:
            async with self._asking:
                said = await approver(asked)
        except Exception as error:  # it is somebody else's code, and it stands before an effect
            log.debug("the approver broke", exc_info=True)
            return Answer(False, word=f"the approver broke: {error!r}")
        return said if isinstance(said, Answer) else Answer(said is True)

    def answer(self, call_id: str, answer: Answer | bool, shown: str, by: str) -> None:
        """Settle a question. Raise `UnknownApproval` when it is settled, or was another one."""
        said = Answer(answer) if isinstance(answer, bool) else answer
        if not isinstance(said, Answer):
            raise SessionError(f"{answer!r} is no answer", hint="Say True, False or an Answer.")
        asked, waiter = self._open.get(call_id, (None, None))
        if asked is None or waiter is None or waiter.done():
            raise UnknownApproval(f"no question is open for call {call_id}")
        if shown != asked.shown:
            raise UnknownApproval(
                f"the answer is for something else than what call {call_id} would do",
                hint="Look at the question again, then answer that one.",
            )
        waiter.set_result(self._close(asked, said, by))

    def drop_all(self) -> None:
        """The turn is over: its questions are, too."""
        for call_id in list(self._open):
            _, waiter = self._open.pop(call_id)
            waiter.cancel()

    def take_unanswered(self) -> int:
        """How many calls were refused because nobody was there, since the last look."""
        count, self._unanswered = self._unanswered, 0
        return count

    def _close(self, asked: ApprovalAsked, answer: Answer, by: str) -> Answer:
        said = (answer.allowed, by, answer.scope, answer.word)
        self._emit(ApprovalAnswered(asked.call.id, *said, asked.shown))
        return answer


def _stamp(when: float) -> str:
    """That time; nothing where it never comes."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    except (OverflowError, ValueError):
        return ""
