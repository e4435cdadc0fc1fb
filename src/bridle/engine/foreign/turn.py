"""A turn that a foreign agent runs: start the agent, stop it, and turn its end into the turn's.

The agent is somebody else's code. It may raise, hang, return an invalid value or ignore a cancel;
the turn has exactly one end all the same, and each of its calls one result.
"""

import asyncio
import inspect
import logging
from contextlib import suppress
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.cancellation import run_uncancelled
from bridle.engine.foreign.budget import DayBudget
from bridle.engine.foreign.calls import ForeignCalls
from bridle.engine.foreign.session import AgentSessionView, AgentTurnInput
from bridle.engine.history import History
from bridle.engine.loop import Ending
from bridle.engine.structured_output import AnswerSchema
from bridle.engine.turn_context import TurnContext, refresh_tools
from bridle.errors import AgentError, BadReply, BudgetReached
from bridle.events import AgentResponded, MessageAdded, TraceEvent, UsageReported
from bridle.messages import ToolCall, ToolOutput
from bridle.protocols.agent import AgentResponse
from bridle.usage import Usage
from bridle.workspace.text import shorten

log = logging.getLogger(__name__)

CANCEL_SECONDS = 2.0  # that an agent has to end by itself after a cancel
TASK_CANCEL_SECONDS = 6.0  # ... and then once its task is cancelled
_abandoned: set["asyncio.Task[Any]"] = set()
_HINT = "The session can continue: send the prompt again."
_DONE = Ending("done")
_INTERRUPTED = Ending("interrupted", "the turn was interrupted")
_RESUMED = (
    "While this turn was parked, a person was asked about what you wanted to do. The results:"
)
_CONTINUE = "Continue from there."
_MOST_RESULT = 4000  # characters of a result that an agent is told when it continues


class AgentOutcome(Struct, frozen=True):
    """The outcome of a run: a response, or the error that explains why there is none."""

    response: AgentResponse
    error: AgentError | None = None


async def run_agent_turn(turn: TurnContext, turn_input: AgentTurnInput) -> Ending:
    """Run the agent to its end. Raise `AgentError` if it fails."""
    calls = ForeignCalls(turn, turn_input.history, turn_input.session_id)
    run = _Run(turn, turn_input, calls)
    day = run.session.day = DayBudget(turn.budget, turn_input.session_id, turn.settled)
    try:
        await day.check()
        return await run.run()
    except BudgetReached as limit:
        await calls.settle(ended=True)
        return Ending("budget", limit.message, limit.hint)
    finally:
        await day.release()


class _Run:
    """One run of an agent, in one turn."""

    def __init__(self, turn: TurnContext, turn_input: AgentTurnInput, calls: ForeignCalls) -> None:
        self._turn = turn
        self._input = turn_input
        self._calls = calls
        self._ended = True  # has everything stopped that was ours to stop?
        self.session = AgentSessionView(turn, turn_input, calls)
        schema = turn.config.output_schema
        self._answer_schema = AnswerSchema(schema) if schema is not None else None

    async def run(self) -> Ending:
        """Run the agent from the prompt to the end."""
        over = self._calls.over
        try:
            prompt = await self._prompt()
        except BaseException:
            await self._calls.settle(ended=self._ended)
            raise
        # earlier turns, or this one before it was parked, may have used everything
        self.session.end_if_limit_reached(ahead=1)
        if over.done():
            await self._calls.settle(ended=True)
            return over.result()
        self.session.attach()
        running = asyncio.ensure_future(self._execute(prompt))
        try:
            await asyncio.wait((running, over), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._calls.end(_INTERRUPTED)
            with suppress(Exception):  # whoever cancels is not interested in anything else
                await run_uncancelled(self._finish(running))
            raise
        return await run_uncancelled(self._finish(running))

    async def _prompt(self) -> str:
        """Return the agent's prompt. For a resumed turn, begin with the results of its calls."""
        messages, results = self._input.prompts, ""
        if self._input.resumes:
            await self._resume_calls()
            if self._calls.over.done():
                return ""
            results = _results_of_parked_calls(self._input.history)
            messages = self._input.steer()
        self.session.prompt = tuple(part for message in messages for part in message.parts)
        return "\n\n".join(filter(None, (results, *(message.content for message in messages))))

    async def _resume_calls(self) -> None:
        """Settle the calls that waited for a person. A tool that does not stop is abandoned."""
        if self._turn.sources:
            refresh_tools(self._turn)
        work = asyncio.ensure_future(self._calls.resume(self._turn.open_calls))
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait((work,), timeout=TASK_CANCEL_SECONDS)
            self._ended = work.done()
            if not self._ended:
                self._abandon(work)
            raise
        work.result()

    async def _execute(self, prompt: str) -> AgentOutcome:
        """Run the agent. If its answer does not fit the schema, say why and run it once more."""
        if self._answer_schema is None:
            return await self._execute_once(prompt)
        outcome = await self._execute_once(f"{prompt}\n\n{self._answer_schema.rule}")
        problem = await self._check_answer(outcome)
        if problem is None or self._calls.over.done():
            return outcome
        if self._input.history.open_calls:  # no message can come before their results
            return AgentOutcome(outcome.response, problem)
        self._record_response(outcome)
        self.session.begin_answer()
        correction = self._answer_schema.correction(problem)
        self._turn.emit(MessageAdded(correction, by="bridle"))
        self.session.prompt = correction.parts
        outcome = await self._execute_once(correction.content)
        return AgentOutcome(outcome.response, outcome.error or await self._check_answer(outcome))

    async def _check_answer(self, outcome: AgentOutcome) -> BadReply | None:
        """Record the answer. Return why it does not fit the schema, if it does not."""
        if self._answer_schema is None or outcome.error is not None or outcome.response.is_error:
            return None
        await self.session.end_reply(outcome.response.content)
        last = self._input.history.transcript[-1]
        try:
            self._answer_schema.fit(last.content if last.role == "assistant" else "")
        except BadReply as problem:
            return problem
        return None

    async def _execute_once(self, prompt: str) -> AgentOutcome:
        """Run the agent. Whatever it raises or returns becomes a response."""
        agent, session, name = self._input.agent, self.session, self._input.name
        try:
            response: Any = agent.execute(
                prompt,
                session,
                can_use_tool=session.can_use_tool,
                on_text_chunk=session.on_text_chunk,
                on_tool_activity=session.on_tool_activity,
            )
            if inspect.isawaitable(response):
                response = await response
            return AgentOutcome(_valid_response(response, name))
        except AgentError as error:
            return AgentOutcome(AgentResponse(error.message, is_error=True), error)
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an agent may end neither the session nor the host program
            log.debug("agent %s failed", name, exc_info=True)
            typed = AgentError("agent", f"{name} failed: {_error_text(error)}", error, hint=_HINT)
            return AgentOutcome(AgentResponse(typed.message, is_error=True), typed)

    async def _finish(self, running: "asyncio.Task[AgentOutcome]") -> Ending:
        """Stop the agent if it still runs, record what it leaves, and return the turn's ending."""
        over, session = self._calls.over, self.session
        if not running.done():
            await self._stop(running)
        await session.settle()
        ended = await self._calls.drain(TASK_CANCEL_SECONDS) and running.done()
        if not ended:
            self._abandon(running)
        await self._calls.settle(ended=ended)
        outcome = running.result() if running.done() and not running.cancelled() else None
        if not over.done() and outcome is not None:
            return await self._conclude(outcome)
        session.close("", "interrupted")
        self._record_response(outcome)
        detail = f"{self._input.name} was stopped from outside bridle"
        self._calls.end(Ending("interrupted", detail, _HINT))
        return over.result()

    async def _conclude(self, outcome: AgentOutcome) -> Ending:
        response = outcome.response
        self.session.close("" if response.is_error else response.content, "complete")
        self._record_response(outcome)
        await self.session.settle()  # its cost may use up the day
        self._calls.end(_DONE)  # nothing is let through any more
        if isinstance(outcome.error, BudgetReached):
            return Ending("budget", outcome.error.message, outcome.error.hint)
        if outcome.error is not None:
            raise outcome.error
        if response.is_error:
            message = response.content.strip() or f"{self._input.name} reported an error"
            raise AgentError("agent", message, hint=_HINT)
        return self._calls.over.result()  # done, unless its cost has reached a limit

    def _record_response(self, outcome: AgentOutcome | None) -> None:
        """Record the agent's own account of the run, with its cost."""
        if outcome is None:
            return
        response, session = outcome.response, self.session
        session.remember(response.session_id)
        usage = Usage() if session.has_usage else session.usage
        if (response.cost and not session.has_cost) or usage.total_tokens:
            session.spend(UsageReported(usage, cost=response.cost or None))
        self._turn.emit(
            AgentResponded(
                agent=self._input.name,
                turn=self._input.number,
                session_id=response.session_id or "",
                content="" if session.has_said(response.content) else response.content,
                cost=response.cost,
                duration_ms=response.duration_ms,
                num_turns=response.num_turns,
                tools_used=tuple(response.tools_used),
                is_error=response.is_error,
            )
        )

    async def _stop(self, running: "asyncio.Task[AgentOutcome]") -> None:
        """Ask the agent to end, then cancel its task. If it ignores both, return all the same."""
        asking = asyncio.ensure_future(self._ask_to_stop())
        await asyncio.wait((running,), timeout=CANCEL_SECONDS)
        if not running.done():
            running.cancel()
            await asyncio.wait((running,), timeout=TASK_CANCEL_SECONDS)
        asking.cancel()
        await asyncio.wait((asking,), timeout=CANCEL_SECONDS)

    async def _ask_to_stop(self) -> None:
        try:
            await self._input.agent.cancel(self._input.session_id)
        except Exception:  # it is somebody else's code, and its task is cancelled next
            log.debug("agent %s could not be cancelled", self._input.name, exc_info=True)

    def _abandon(self, running: "asyncio.Task[Any]") -> None:
        """Report that something does not stop, and leave it."""
        seconds = CANCEL_SECONDS + TASK_CANCEL_SECONDS
        message = (
            f"{self._input.name} did not stop within {seconds:g} seconds and may still be running"
        )
        detail = {"agent": self._input.name, "message": message}
        self._turn.emit(TraceEvent("not_stopped", detail))
        if not running.done():
            _abandoned.add(running)  # asyncio itself holds tasks only weakly
            running.add_done_callback(_forget)


def _forget(running: "asyncio.Task[Any]") -> None:
    _abandoned.discard(running)
    if not running.cancelled():
        running.exception()  # or asyncio would report that nobody has looked at it


def _results_of_parked_calls(history: History) -> str:
    """Return the results of the calls that a person was asked about, for an agent that resumes."""
    messages = history.transcript
    outputs = messages[-1].tool_results if len(messages) > 1 else ()
    calls = {call.id: call for call in messages[-2].tool_calls} if outputs else {}
    lines = [
        f"- {_call_line(calls.get(output.call_id), output)}:\n{_result_text(output)}"
        for output in outputs
    ]
    return "\n\n".join((_RESUMED, *lines, _CONTINUE))


def _call_line(call: ToolCall | None, output: ToolOutput) -> str:
    if call is None:
        return output.name
    return f"{call.name} {msgspec.json.encode(call.arguments, enc_hook=str).decode()}"


def _result_text(output: ToolOutput) -> str:
    prefix = "it failed, or was refused: " if output.is_error else ""
    return prefix + shorten(output.text, _MOST_RESULT)


def _valid_response(value: Any, name: str) -> AgentResponse:
    """Return what an agent returned as an `AgentResponse`. Raise `AgentError` if it is not one."""
    names = AgentResponse.__struct_fields__
    fields = {key: getattr(value, key) for key in names if hasattr(value, key)}
    try:
        response = msgspec.convert(fields, AgentResponse, strict=False)
    except msgspec.ValidationError as error:
        raise AgentError(
            "agent",
            f"{name} returned a {type(value).__name__} that is not an AgentResponse: {error}",
            hint="`execute` returns an AgentResponse, as in bridle.agents.base.",
        ) from None
    if isfinite(response.cost) and response.cost >= 0:
        return response
    return replace(response, cost=0.0)


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
