"""Approvals: ask a person whether a call may run, and apply their answer.

A request is recorded when it is made and when it is answered; the first answer wins. An answer is
bound to exactly what the person was shown. Without an answer, or after an interrupt, nothing runs.
Requests and answers are in the log, so they outlive the process that asked.
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
from bridle.engine.history import History, denial_reason
from bridle.engine.turn_context import Parked
from bridle.errors import ConfigError, SessionError, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, Event
from bridle.policy import Decision, parse_rule
from bridle.protocols.session import Answer

log = logging.getLogger(__name__)

UNATTENDED = Answer(False, word="no one is available to approve it")
EXPIRED = Answer(False, word="no one answered in time")
CHANGED = Answer(False, word="it would now do something else than what was approved")
GRANT = "grant"  # `by` of an answer that a grant gives
NONCE = 16  # random characters at the beginning of each request's fingerprint
_SCOPES = ("once", "session", "rule")
_NEVER = "9999-12-31T23:59:59Z"
Scope = Literal["once", "session", "rule"]


class Approvals:
    """The approval requests of one session."""

    def __init__(
        self, emit: Callable[[Event], None], config: EngineConfig, session_id: str, history: History
    ) -> None:
        self._emit = emit
        self._config = config
        self._session_id = session_id
        self._history = history
        self._waiters: dict[str, asyncio.Future[Answer]] = {}  # by fingerprint
        self._unanswered = 0
        self._approver_lock: asyncio.Lock | None = None  # an approver gets one request at a time

    async def settle(self, judged: JudgedCall) -> Decision:
        """Return an allow or a deny for a call that needs approval. Raise `Parked`."""
        if self.is_granted(judged):
            if (request := self._open_request(judged)) is not None:
                self._close(request, Answer(True), GRANT)  # no one needs to answer it any more
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
        seconds = self._config.ask_grant_seconds
        return any(grant is not None and not has_ended(grant, seconds) for grant in grants)

    async def ask(self, judged: JudgedCall) -> Answer:
        """Ask a person, and return the answer.

        Raise `Parked` if a turn is to be parked rather than to wait for it.
        """
        recorded = self._history.answers.get(judged.call.id)
        if recorded is not None and is_about(judged, self._session_id, recorded.shown):
            return Answer(recorded.allowed, recorded.scope, recorded.word, recorded.by)
        seconds = self._config.ask_seconds
        if (request := self._open_request(judged)) is None:
            request = self.request(judged)
        elif (seconds := _seconds_left(request, seconds)) <= 0:
            return self._close(request, EXPIRED, "expiry")
        if self._config.approver is None and self._config.on_ask != "wait":
            if self._config.on_ask == "park":
                raise Parked
            self._unanswered += 1
            return self._close(request, UNATTENDED, "nobody")
        answer = await self._wait_until_expiry(request, seconds)
        if answer.allowed is True and not is_about(judged, self._session_id, request.shown):
            return CHANGED  # the approver has altered the call
        return answer

    async def _wait_until_expiry(self, request: ApprovalAsked, seconds: float) -> Answer:
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[request.shown] = waiter
        try:
            async with asyncio.timeout(seconds):
                return await self._first_answer(request, waiter)
        except TimeoutError:
            if waiter.done() and not waiter.cancelled():  # answered at the last moment: it counts
                return waiter.result()
            return self._close(request, EXPIRED, "expiry")
        finally:
            self._waiters.pop(request.shown, None)

    @property
    def can_group(self) -> bool:
        """Can several requests be shown before the first one is answered?"""
        return self._config.approver is not None or self._config.on_ask != "deny"

    def is_requested(self, call_id: str) -> bool:
        """Return whether there is an open request about that call, or an answer to one."""
        if call_id in self._history.answers:
            return True
        return any(request.call.id == call_id for request in self._history.pending.values())

    def request_all(self, calls: Sequence[JudgedCall]) -> None:
        """Record requests as one group, before an answer to any of them is awaited."""
        group = secrets.token_hex(NONCE // 2)
        for judged in calls:
            if self._open_request(judged) is None:
                self.request(judged, group)

    def request(self, judged: JudgedCall, group: str = "") -> ApprovalAsked:
        """Record a request for approval."""
        shown = approval_fingerprint(judged, self._session_id, secrets.token_hex(NONCE // 2))
        expires = timestamp(time.time() + self._config.ask_seconds)
        request = approval_request(judged, shown, expires, group)
        if times := self._history.times.get(similarity_key(request), 0):
            request = replace(request, times=times)
        self._emit(request)
        return request

    def _open_request(self, judged: JudgedCall) -> ApprovalAsked | None:
        """Return the open request about exactly this call, for example from before a restart."""
        for request in self._history.pending.values():
            is_same_call = request.call.id == judged.call.id
            if is_same_call and is_about(judged, self._session_id, request.shown):
                return request
        return None

    async def _first_answer(
        self, request: ApprovalAsked, waiter: "asyncio.Future[Answer]"
    ) -> Answer:
        """Return the approver's answer or one given to `answer`, whichever comes first."""
        if self._config.approver is None:
            return await waiter
        task = asyncio.create_task(self._ask_approver(request, self._config.approver))
        try:
            await asyncio.wait([task, waiter], return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                answer = task.result()
                self.answer(request.call.id, answer, request.shown, answer.by or "approver")
            return waiter.result()
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def ask_for_child(self, task: str, request: ApprovalAsked) -> Answer:
        """Ask this session's approver about a call of a subagent."""
        assert self._config.approver is not None  # a subagent has its parent's approver
        reason = f"{request.reason}; for the task “{task}”".removeprefix("; ")
        return await self._ask_approver(replace(request, reason=reason), self._config.approver)

    async def _ask_approver(self, request: ApprovalAsked, approver: Approver) -> Answer:
        """Return the approver's answer: a deny if it fails or returns anything else."""
        try:
            self._approver_lock = self._approver_lock or asyncio.Lock()
            async with self._approver_lock:
                answer = await approver(request)
        except Exception as error:  # the approver is somebody else's code
            log.debug("the approver failed", exc_info=True)
            return Answer(False, word=f"the approver failed: {error!r}")
        if isinstance(answer, Answer):
            word = f"the approver returned {answer!r}, which is not a valid answer"
            return answer if is_valid(answer) else Answer(False, word=word)
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

        `at` is when the answer was given, in seconds since 1970, if that was earlier than now.
        """
        if isinstance(answer, bool):
            answer = Answer(answer)
        if not isinstance(answer, Answer) or not is_valid(answer):
            raise SessionError(
                f"{answer!r} is not a valid answer",
                hint="Pass True, False or an Answer: `allowed` is True or False, `scope` is one of "
                f"{', '.join(_SCOPES)}, and `rule` is empty or a rule that allows something.",
            )
        request = self._history.pending.get(shown)
        if request is None or request.call.id != call_id:
            raise self._unknown_approval(call_id)
        waiter = self._waiters.get(shown)
        if waiter is not None and waiter.done():
            raise self._unknown_approval(call_id)
        if waiter is None and _seconds_left(request, 1.0, at) <= 0:
            self._close(request, EXPIRED, "expiry", letter)
            raise UnknownApproval(
                f"the approval request for call {call_id} has expired, so the call was denied",
                hint="Send the prompt again if you still want it.",
            )
        closed = self._close(request, answer, by, letter)
        if waiter is not None:
            waiter.set_result(closed)

    def _unknown_approval(self, call_id: str) -> UnknownApproval:
        if any(request.call.id == call_id for request in self._history.pending.values()):
            return UnknownApproval(
                f"the answer is not for what call {call_id} would do now",
                hint="Look at the request again, and answer that one.",
            )
        return UnknownApproval(
            f"there is no open approval request for call {call_id}",
            hint="It was answered already, has expired, or its turn is over.",
        )

    def expire(self) -> None:
        """Deny requests that have expired, unless somebody in this process waits for the answer."""
        for request in list(self._history.pending.values()):
            if request.shown not in self._waiters and _seconds_left(request, 1.0) <= 0:
                self._close(request, EXPIRED, "expiry")

    def cancel_waiters(self) -> None:
        """Stop waiting for answers. The requests stay open in the log until their turn ends."""
        for waiter in self._waiters.values():
            waiter.cancel()
        self._waiters.clear()

    def add_unanswered(self, count: int) -> None:
        """Count calls of a subagent that were denied because no one was available to answer."""
        self._unanswered += count

    def take_unanswered(self) -> int:
        """Return how many calls were denied because no one was available, and reset the count."""
        count, self._unanswered = self._unanswered, 0
        return count

    def _close(self, request: ApprovalAsked, answer: Answer, by: str, letter: str = "") -> Answer:
        """Record the answer to a request, and return it."""
        scope, rule = _scope_and_rule(request, answer)
        self._emit(
            ApprovalAnswered(
                call_id=request.call.id,
                allowed=answer.allowed,
                by=by,
                scope=scope,
                word=answer.word,
                shown=request.shown,
                letter=letter,
                cwd=request.cwd,
                rule=rule,
                until="" if by == GRANT else self._grant_end(request, answer, scope),
            )
        )
        if rule and self._config.learn is not None:
            try:
                self._config.learn(rule, by)
            except Exception:  # the interface's code; the grant is in effect all the same
                log.warning("the rule %s could not be saved", rule, exc_info=True)
        return answer

    def _grant_end(self, request: ApprovalAsked, answer: Answer, scope: Scope) -> str:
        """Return when the grant that the answer gives ends, or "" if it gives none."""
        if answer.allowed is not True or request.once_only or scope == "once":
            return ""
        return timestamp(time.time() + self._config.ask_grant_seconds) or _NEVER


def approval_fingerprint(judged: JudgedCall, session_id: str, nonce: str) -> str:
    """Return what binds an answer to this call, its effects and reasons, and this one request.

    The nonce, which comes first in it, makes each request different: some servers give the calls of
    every step the same ids.
    """
    decision, facts = judged.decision, judged.facts
    once_only = "lasting" if decision.once_only else ""  # the word that earlier versions hashed
    reasons = [decision.reason, decision.rule, decision.covers, once_only]
    reasons += [facts.guard, facts.opaque, facts.sandbox]
    if decision.network:
        reasons.append("network")
    effects = ("|", *judged.commands, "|", *judged.paths)
    return nonce + fingerprint(judged.call, session_id, judged.cwd, nonce, *reasons, *effects)


def is_about(judged: JudgedCall, session_id: str, shown: str) -> bool:
    """Return whether a request with that fingerprint is about exactly this call."""
    return len(shown) > NONCE and shown == approval_fingerprint(judged, session_id, shown[:NONCE])


def approval_request(
    judged: JudgedCall, shown: str, expires: str = "", group: str = ""
) -> ApprovalAsked:
    """Return the request for a call, without how often similar calls were allowed."""
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
    """Return the decision after an answer. Only `True` allows the call."""
    if answer.allowed is not True:
        return Decision("deny", denial_reason(answer.word), asked.rule)
    return Decision(
        "allow",
        "allowed by a person",
        asked.rule,
        word=answer.word,
        network=asked.network,
        person=True,
    )


def _scope_and_rule(request: ApprovalAsked, answer: Answer) -> tuple[Scope, str]:
    """Return the scope and the rule of an answer. A deny has no rule."""
    if answer.allowed is not True:
        return answer.scope, ""
    if request.once_only:
        return "once", ""
    if answer.scope != "rule":
        return answer.scope, ""
    return "rule", answer.rule or request.proposal


def is_valid(answer: Answer) -> bool:
    """Return whether the answer's fields have valid values."""
    return isinstance(answer.allowed, bool) and answer.scope in _SCOPES and _is_rule(answer.rule)


def _is_rule(text: object) -> bool:
    """Return whether it is empty, or a rule that allows something."""
    try:
        return text == "" or (isinstance(text, str) and parse_rule(text).verdict == "allow")
    except ConfigError:
        return False


def _seconds_left(request: ApprovalAsked, default: float, at: float = 0.0) -> float:
    """Return how long a request stays open, from now or from `at`.

    Without a valid end, for example in another program's log, it stays open `default` seconds.
    """
    expires = parse_timestamp(request.expires)
    return default if expires is None else expires - (at or time.time())
