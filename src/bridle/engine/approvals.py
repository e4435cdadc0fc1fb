"""Approvals: asking a person whether a call may run, and what their answer does.

A request is recorded when it is made and when it is answered; the first answer wins. An answer is
bound to exactly what the person was shown. Silence, an interrupt and a second answer never run
anything. Requests and answers are in the log, so they outlive the process that asked.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from bridle.engine.engine_config import Approver, EngineConfig
from bridle.engine.gate import JudgedCall
from bridle.engine.grants import (
    fingerprint,
    has_ended,
    parse_timestamp,
    propose_rule,
    similarity_key,
    timestamp,
)
from bridle.engine.history import History
from bridle.engine.turn_context import Parked
from bridle.errors import ConfigError, SessionError, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, Event
from bridle.policy import Decision, parse_rule
from bridle.protocols.session import Answer

log = logging.getLogger(__name__)

NOBODY = Answer(False, word="it needs a person's approval, and nobody is here to answer")
EXPIRED = Answer(False, word="nobody answered in time")
CHANGED = Answer(False, word="it is not any more what was asked about")
GRANT = "grant"  # who answers a request that a grant has settled
NONCE = 16  # random characters at the beginning of each request's fingerprint
_SCOPES = ("once", "session", "rule")
_NEVER = "9999-12-31T23:59:59Z"
Scope = Literal["once", "session", "rule"]


class Approvals:
    """The approval requests of one session."""

    def __init__(
        self, emit: Callable[[Event], None], parts: EngineConfig, session_id: str, history: History
    ) -> None:
        self._emit = emit
        self._parts = parts
        self._session_id = session_id
        self._history = history
        self._waiters: dict[str, asyncio.Future[Answer]] = {}  # by fingerprint
        self._unanswered = 0
        self._asking: asyncio.Lock | None = None  # an approver is asked one thing at a time

    async def settle(self, judged: JudgedCall) -> Decision:
        """Turn an ask into an allow or a deny. Raise `Parked` if that may take days."""
        if self.is_granted(judged):
            if (asked := self._open_request(judged)) is not None:
                self._close(asked, Answer(True), GRANT)  # nobody needs to answer it any more
            decision = judged.decision
            return Decision(
                "allow",
                "allowed for this session",
                decision.rule,
                network=decision.network,
                person=True,
            )
        return answered_decision(judged.decision, await self.ask(judged))

    def is_granted(self, judged: JudgedCall) -> bool:
        """Return whether a person has allowed it for the session, and the grant still holds."""
        if not self._history.grants:
            return False
        grants = (self._history.grants.get(grant_id) for grant_id in judged.grant_ids)
        seconds = self._parts.ask_grant_seconds
        return any(grant is not None and not has_ended(grant, seconds) for grant in grants)

    async def ask(self, judged: JudgedCall) -> Answer:
        """Ask a person, and return the answer. Raise `Parked` if that may take days."""
        given = self._history.answers.get(judged.call.id)
        if given is not None and is_about(judged, self._session_id, given.shown):
            return Answer(given.allowed, given.scope, given.word, given.by)
        left = self._parts.ask_seconds
        if (asked := self._open_request(judged)) is None:
            asked = self.request(judged)
        elif (left := _seconds_left(asked, left)) <= 0:
            return self._close(asked, EXPIRED, "expiry")
        if self._parts.approver is None and self._parts.on_ask != "wait":
            if self._parts.on_ask == "park":
                raise Parked
            self._unanswered += 1
            return self._close(asked, NOBODY, "nobody")
        answer = await self._wait_until_expiry(asked, left)
        if answer.allowed is True and not is_about(judged, self._session_id, asked.shown):
            return CHANGED  # the approver, or whoever answered, has altered the call
        return answer

    async def _wait_until_expiry(self, asked: ApprovalAsked, seconds: float) -> Answer:
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[asked.shown] = waiter
        try:
            async with asyncio.timeout(seconds):
                return await self._first_answer(asked, waiter)
        except TimeoutError:
            if waiter.done() and not waiter.cancelled():  # answered at the last moment: it counts
                return waiter.result()
            return self._close(asked, EXPIRED, "expiry")
        finally:
            self._waiters.pop(asked.shown, None)

    @property
    def can_group(self) -> bool:
        """Whether somebody may see several requests before the first one is answered."""
        return self._parts.approver is not None or self._parts.on_ask != "deny"

    def is_requested(self, call_id: str) -> bool:
        """Return whether there is an open request about that call, or an answer to one."""
        if call_id in self._history.answers:
            return True
        return any(asked.call.id == call_id for asked in self._history.pending.values())

    def request_all(self, calls: Sequence[JudgedCall]) -> None:
        """Record requests that belong together, before an answer to one of them is awaited."""
        group = secrets.token_hex(NONCE // 2)
        for judged in calls:
            if self._open_request(judged) is None:
                self.request(judged, group)

    def request(self, judged: JudgedCall, group: str = "") -> ApprovalAsked:
        """Record a request."""
        shown = approval_fingerprint(judged, self._session_id, secrets.token_hex(NONCE // 2))
        expires = timestamp(time.time() + self._parts.ask_seconds)
        asked = approval_request(judged, shown, expires, group)
        if times := self._history.times.get(similarity_key(asked), 0):
            asked = replace(asked, times=times)
        self._emit(asked)
        return asked

    def _open_request(self, judged: JudgedCall) -> ApprovalAsked | None:
        """Return the open request about exactly this call, for example from before a restart."""
        for asked in self._history.pending.values():
            same_call = asked.call.id == judged.call.id
            if same_call and is_about(judged, self._session_id, asked.shown):
                return asked
        return None

    async def _first_answer(self, asked: ApprovalAsked, waiter: "asyncio.Future[Answer]") -> Answer:
        """Return the approver's answer or one given to `answer`, whichever comes first."""
        if self._parts.approver is None:
            return await waiter
        asking = asyncio.create_task(self._ask_approver(asked, self._parts.approver))
        try:
            await asyncio.wait([asking, waiter], return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                answer = asking.result()
                self.answer(asked.call.id, answer, asked.shown, answer.by or "approver")
            return waiter.result()
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def ask_for_child(self, task: str, asked: ApprovalAsked) -> Answer:
        """Ask this session's approver about a call of a child session."""
        assert self._parts.approver is not None  # a child asks as its parent does
        reason = f"{asked.reason}; for the task “{task}”".removeprefix("; ")
        return await self._ask_approver(replace(asked, reason=reason), self._parts.approver)

    async def _ask_approver(self, asked: ApprovalAsked, approver: Approver) -> Answer:
        """Return the approver's answer. One that breaks or returns anything else has said no."""
        try:
            self._asking = self._asking or asyncio.Lock()
            async with self._asking:
                answer = await approver(asked)
        except Exception as error:  # somebody else's code, in front of an effect
            log.debug("the approver broke", exc_info=True)
            return Answer(False, word=f"the approver broke: {error!r}")
        if isinstance(answer, Answer):
            return answer if is_valid(answer) else Answer(False, word=f"{answer!r} is no answer")
        return Answer(answer is True)

    def answer(
        self,
        call_id: str,
        answer: Answer | bool,
        shown: str,
        by: str,
        letter: str = "",
        at: float = 0.0,
    ) -> None:
        """Answer a request. Raise `UnknownApproval` if it is closed, or about something else.

        `at` is when the answer was given, if that was earlier than now.
        """
        given = Answer(answer) if isinstance(answer, bool) else answer
        if not isinstance(given, Answer):
            raise SessionError(f"{answer!r} is no answer", hint="Say True, False or an Answer.")
        if not is_valid(given):
            raise SessionError(
                f"{given!r} is no answer",
                hint=f"`allowed` is True or False, `scope` one of {', '.join(_SCOPES)}, "
                "`rule` nothing or a rule that allows something.",
            )
        asked = self._history.pending.get(shown)
        if asked is None or asked.call.id != call_id:
            raise self._unknown(call_id)
        waiter = self._waiters.get(shown)
        if waiter is not None and waiter.done():
            raise self._unknown(call_id)
        if waiter is None and _seconds_left(asked, 1.0, at) <= 0:
            self._close(asked, EXPIRED, "expiry", letter)
            raise UnknownApproval(
                f"the question about call {call_id} has expired, which counts as a no",
                hint="Send the prompt again if it is still wanted.",
            )
        closed = self._close(asked, given, by, letter)
        if waiter is not None:
            waiter.set_result(closed)

    def _unknown(self, call_id: str) -> UnknownApproval:
        if any(asked.call.id == call_id for asked in self._history.pending.values()):
            return UnknownApproval(
                f"the answer is for something else than what call {call_id} would do",
                hint="Look at the question again, then answer that one.",
            )
        return UnknownApproval(
            f"no question is open for call {call_id}",
            hint="It was answered already, has expired, or its turn is over.",
        )

    def expire(self) -> None:
        """Close requests whose time is over and that nobody is waiting for: they count as a no."""
        for asked in list(self._history.pending.values()):
            if asked.shown not in self._waiters and _seconds_left(asked, 1.0) <= 0:
                self._close(asked, EXPIRED, "expiry")

    def cancel_waiters(self) -> None:
        """Stop waiting for answers. The requests stay open in the log until their turn ends."""
        for waiter in self._waiters.values():
            waiter.cancel()
        self._waiters.clear()

    def add_unanswered(self, count: int) -> None:
        """Count calls of a child session that were refused because nobody was there to answer."""
        self._unanswered += count

    def take_unanswered(self) -> int:
        """Return how many calls were refused because nobody was there, and start at zero again."""
        count, self._unanswered = self._unanswered, 0
        return count

    def _close(self, asked: ApprovalAsked, answer: Answer, by: str, letter: str = "") -> Answer:
        scope, rule = _scope_and_rule(asked, answer)
        self._emit(
            ApprovalAnswered(
                call_id=asked.call.id,
                allowed=answer.allowed,
                by=by,
                scope=scope,
                word=answer.word,
                shown=asked.shown,
                letter=letter,
                cwd=asked.cwd,
                rule=rule,
                until="" if by == GRANT else self._grant_end(asked, answer, scope),
            )
        )
        if rule and self._parts.learn is not None:
            try:
                self._parts.learn(rule, by)
            except Exception:  # the interface's code; the rule holds for the session all the same
                log.warning("the rule %s could not be kept", rule, exc_info=True)
        return answer

    def _grant_end(self, asked: ApprovalAsked, answer: Answer, scope: Scope) -> str:
        """Return when the grant that the answer gives ends, or "" if it gives none."""
        if answer.allowed is not True or asked.once_only or scope == "once":
            return ""
        return timestamp(time.time() + self._parts.ask_grant_seconds) or _NEVER


def approval_fingerprint(judged: JudgedCall, session_id: str, nonce: str) -> str:
    """Return what binds an answer to this call, its effects and reasons, and this one request.

    The nonce comes first in it, because some servers give the calls of every step the same ids;
    whoever knows the fingerprint can tell whether the request is still the same one.
    """
    decision, facts = judged.decision, judged.facts
    once_only = "lasting" if decision.once_only else ""  # the word that earlier versions hashed
    said = (decision.reason, decision.rule, decision.covers, once_only)
    care: tuple[str, ...] = (facts.guard, facts.opaque, facts.sandbox)
    if decision.network:
        care = (*care, "network")
    effects = ("|", *judged.commands, "|", *judged.paths)
    return nonce + fingerprint(judged.call, session_id, judged.cwd, nonce, *said, *care, *effects)


def is_about(judged: JudgedCall, session_id: str, shown: str) -> bool:
    """Return whether a request with that fingerprint is about exactly this call."""
    return len(shown) > NONCE and shown == approval_fingerprint(judged, session_id, shown[:NONCE])


def approval_request(
    judged: JudgedCall, shown: str, expires: str = "", group: str = ""
) -> ApprovalAsked:
    """Return the request as it is recorded, but for how often the like was allowed before."""
    decision, facts = judged.decision, judged.facts
    return ApprovalAsked(
        call=judged.call,
        shown=shown,
        reason=decision.reason,
        rule=decision.rule,
        cwd=judged.cwd,
        expires=expires,
        commands=judged.commands,
        paths=judged.paths,
        covers=decision.covers,
        proposal=propose_rule(judged.call, facts, decision),
        group=group,
        once_only=decision.once_only,
        sandbox=facts.sandbox,
        hosts=judged.hosts,
        network=decision.network,
    )


def answered_decision(asked: Decision, answer: Answer) -> Decision:
    """Return the decision that an answer makes of an ask. Only `True` is a yes."""
    if answer.allowed is not True:
        reason = f"the answer was no: {answer.word}" if answer.word else "the answer was no"
        return Decision("deny", reason, asked.rule)
    return Decision(
        "allow",
        "allowed by a person",
        asked.rule,
        word=answer.word,
        network=asked.network,
        person=True,
    )


def _scope_and_rule(asked: ApprovalAsked, answer: Answer) -> tuple[Scope, str]:
    """Return how far an answer reaches. A no reaches no farther than its call."""
    if answer.allowed is not True:
        return answer.scope, ""
    if asked.once_only:
        return "once", ""
    if answer.scope != "rule":
        return answer.scope, ""
    return "rule", answer.rule or asked.proposal


def is_valid(answer: Answer) -> bool:
    """Return whether the answer's fields have values that they may have."""
    return isinstance(answer.allowed, bool) and answer.scope in _SCOPES and _is_rule(answer.rule)


def _is_rule(text: object) -> bool:
    """Return whether it is empty, or a rule that allows something."""
    try:
        return text == "" or (isinstance(text, str) and parse_rule(text).verdict == "allow")
    except ConfigError:
        return False


def _seconds_left(asked: ApprovalAsked, otherwise: float, at: float = 0.0) -> float:
    """Return how long a request stays open, from now or from `at`.

    One without a valid end, for example in a log from elsewhere, stays open `otherwise` seconds.
    """
    expires = parse_timestamp(asked.expires)
    return otherwise if expires is None else expires - (at or time.time())
