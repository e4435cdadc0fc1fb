"""`ClaudeCodeAgent`: the real Claude Code carries a turn, on the same reins as everybody else.

Knows when to try again and when to give up: a conversation that is gone is begun anew, and the
person is told; an error of the service that may pass is tried once more; everything else is said at
once. How a run goes is in claude_run.py, what its calls mean to the gate in claude_gate.py.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from bridle.agents.claude_options import ClaudeCodeConfig, load_sdk
from bridle.agents.claude_run import ClaudeRun, Order
from bridle.agents.claude_talk import Talk, usage_of
from bridle.agents.claude_verdict import Outcome
from bridle.agents.past import KNOWN, mark, missed, past_of, with_missed, with_past
from bridle.errors import BudgetReached, SessionBusy
from bridle.events import TraceEvent, UsageReported
from bridle.promises.agent import AgentResponse, OnTextChunk, OnToolActivity

ATTEMPTS = 3  # in all: the first, one for a stale conversation, one for a service that failed
_COST = "cost"  # in the session's state: what its conversation has cost so far
_LOST = "Claude Code has no conversation {} any more: a new one was started"
_OWN = "Claude Code has no conversation of this session yet: a new one was started"
_TOLD = "{}, and was told what the log has of what was said before."
_UNTOLD = "{}, which does not know what was said before. The log still has it."
_AGAIN = "The service failed for a moment. Go on with what was asked; do nothing twice."


class ClaudeCodeAgent:
    """Claude Code as an agent. Several sessions may run at once, each with a program of its own."""

    name = "claude-code"

    def __init__(self, config: ClaudeCodeConfig | None = None) -> None:
        self.config = config or ClaudeCodeConfig()
        self._turns: dict[str, _Turn] = {}
        self._costs: dict[str, float] = {}  # for sessions that cannot remember

    async def execute(
        self,
        prompt: str,
        session: Any,
        *,
        can_use_tool: Callable[..., Any] | None = None,
        on_text_chunk: OnTextChunk | None = None,
        on_tool_activity: OnToolActivity | None = None,
    ) -> AgentResponse:
        """Run the prompt to its end. Raise `AgentError` where the program cannot be run."""
        if session.id in self._turns:
            raise SessionBusy(f"Claude Code is at work for session {session.id} already.")
        roots = _roots(session.working_directory)
        order = Order(
            None, self.config, session, roots, can_use_tool, on_text_chunk, on_tool_activity
        )
        self._turns[session.id] = turn = _Turn(order, self._costs)
        try:
            return await turn.through(prompt)
        finally:
            del self._turns[session.id]
            turn.over.set()

    async def cancel(self, session_id: str) -> None:
        """Stop what runs for that session, for good: no other try follows."""
        if (turn := self._turns.get(session_id)) is not None:
            await turn.stop()

    async def shutdown(self) -> None:
        """Stop everything. No program is left."""
        turns = list(self._turns.values())
        await asyncio.gather(*(turn.stop() for turn in turns))
        await asyncio.gather(*(turn.over.wait() for turn in turns))


class _Turn:
    """One prompt, and as many runs as it takes."""

    def __init__(self, order: Order, costs: dict[str, float]) -> None:
        self._order = order
        self._session = order.session
        order.parts = tuple(getattr(order.session, "prompt", ()))
        self._costs = costs
        self._run: ClaudeRun | None = None
        self._stopped = asyncio.Event()
        self._used: dict[str, None] = {}
        self._cost, self._milliseconds, self._turns = 0.0, 0, 0
        self.over = asyncio.Event()

    async def through(self, prompt: str) -> AgentResponse:
        """To the end, with at most one try more for each of the two reasons."""
        _check(getattr(self._session, "room", None))
        self._order.sdk = await asyncio.to_thread(load_sdk)
        resume, asked = self._session.claude_session_id or None, prompt
        if resume is not None:
            prompt = with_missed(asked, missed(self._session, self._state.get(KNOWN)))
        elif past := past_of(self._session):
            await self._say_new(_OWN)
            prompt = with_past(asked, past)
        mended: set[str] = set()
        for _ in range(ATTEMPTS):
            outcome = await self._attempt(prompt, resume)
            if self._stopped.is_set() or outcome.kind in mended:
                break
            mended.add(outcome.kind)
            if outcome.kind == "stale":
                self._session.claude_session_id = None
                self._spent = 0.0
                await self._say_new(_LOST.format(resume))
                prompt, resume = with_past(asked, past_of(self._session)), None
            elif outcome.kind == "transient" and await self._waited(outcome):
                prompt, resume = self._next(prompt, resume)
            else:
                break
        if outcome.kind == "limit" and hasattr(self._session, "room"):
            raise BudgetReached(outcome.content)  # the limit is the session's, who says it its way
        return self._response(outcome)

    async def stop(self) -> None:
        """For good."""
        self._stopped.set()
        if self._run is not None:
            await self._run.stop()

    async def _attempt(self, prompt: str, resume: str | None) -> Outcome:
        if self._stopped.is_set():
            return Outcome("stopped", "It was stopped.")
        before = self._spent if resume else 0.0
        self._run = run = ClaudeRun(self._order, resume)
        outcome = Outcome("failed")
        try:
            outcome = await run.through(prompt)
        finally:
            self._used.update(run.hooks.used)
            self._keep_mark(run.talk.session_id)
            if outcome.kind != "stale":
                self._account(outcome, before, run.talk)
        return outcome

    def _next(self, prompt: str, resume: str | None) -> tuple[str, str | None]:
        """What the other try is told. A prompt that the program has written down is not said twice,

        and what was begun is gone on with: to begin again would be to do it twice.
        """
        assert self._run is not None
        talk = self._run.talk
        if resume is None and not talk.said:
            return prompt, None
        self._order.parts = ()
        return _AGAIN, talk.session_id or resume

    async def _say_new(self, words: str) -> None:
        """A conversation begins in the middle: nobody is left to believe that one goes on."""
        message = (_TOLD if past_of(self._session) else _UNTOLD).format(words)
        if (emit := getattr(self._session, "emit", None)) is not None:
            emit(TraceEvent("new_conversation", {"message": message}))
        elif self._order.on_text_chunk is not None:
            await self._order.on_text_chunk(f"[{message}]\n\n")

    async def _waited(self, outcome: Outcome) -> bool:
        """Wait before the other try; False where somebody has stopped it meanwhile."""
        seconds = self._order.config.retry_seconds
        if (emit := getattr(self._session, "emit", None)) is not None:
            detail = {"attempt": 1, "of": 2, "seconds": seconds, "error": outcome.content}
            emit(TraceEvent("retry", detail))
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except TimeoutError:
            return True
        return False

    def _keep_mark(self, heard: str) -> None:
        """How far the conversation knows the session, once the program has taken the prompt."""
        if heard and self._remembers and (known := mark(self._session)) is not None:
            self._session.state = {**self._state, KNOWN: known}

    @property
    def _remembers(self) -> bool:
        return isinstance(getattr(self._session, "state", None), dict)

    @property
    def _state(self) -> dict[str, Any]:
        return dict(self._session.state) if self._remembers else {}

    @property
    def _spent(self) -> float:
        """What the conversation had cost when it was last heard of."""
        if self._remembers:
            return float(self._state.get(_COST) or 0.0)
        return self._costs.get(self._session.id, 0.0)

    @_spent.setter
    def _spent(self, value: float) -> None:
        if self._remembers:
            self._session.state = {**self._state, _COST: value}
        else:
            self._costs[self._session.id] = value

    def _account(self, outcome: Outcome, before: float, talk: Talk) -> None:
        """The program counts from the beginning of the conversation; a turn pays its own part.

        Where it ends early its own figures lack replies, or all of them: those that came count.
        """
        self._milliseconds += outcome.duration_ms
        self._turns += outcome.num_turns
        said, cost = usage_of(outcome.usage), None
        usage = max(said, talk.used, key=lambda one: one.total_tokens)
        if outcome.total is not None:
            cost = outcome.total - before if outcome.total >= before else outcome.total
            self._cost += cost
            self._spent = outcome.total
        emit = getattr(self._session, "emit", None)
        if emit is not None and (usage.total_tokens or cost):
            emit(UsageReported(usage, talk.model, cost, priced=True))

    def _response(self, outcome: Outcome) -> AgentResponse:
        stopped = self._stopped.is_set()
        return AgentResponse(
            "It was stopped." if stopped else outcome.content,
            self._session.claude_session_id,
            self._cost,
            self._milliseconds,
            self._turns,
            list(self._used),
            stopped or outcome.kind != "done",
        )


def _check(room: Any) -> None:
    """Raise `BudgetReached` where nothing is left: the program takes no limit of nothing."""
    for name in ("money", "tokens", "steps"):
        found = getattr(room, name, None)
        if found is not None and found <= 0:
            raise BudgetReached(f"The limit of {name} is reached; Claude Code was not started.")


def _roots(folder: str) -> tuple[str, ...]:
    """The folder as it is named, and as it is spelled where its links lead."""
    whole = os.path.abspath(folder)  # noqa: PTH100 - `resolve` would follow the links
    return tuple(dict.fromkeys((whole, os.path.realpath(whole))))
