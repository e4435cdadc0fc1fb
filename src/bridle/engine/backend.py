"""Another agent carries a turn: it is started, listened to, stopped, and its end becomes ours.

The agent is somebody else's code. It may raise, hang, return something strange or not hear a
cancel; the turn has one end all the same, and each of its calls one result. How it speaks and asks
is the business of its session (agent_session.py) and of the one gate (agent_calls.py).
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

from bridle.engine.agent_calls import AgentCaller
from bridle.engine.agent_session import Assignment, LentSession
from bridle.engine.allowance import DayRoom
from bridle.engine.cancellation import run_uncancelled
from bridle.engine.history import History
from bridle.engine.loop import Ending
from bridle.engine.structured_output import AnswerSchema
from bridle.engine.tool_sources import refresh_tools
from bridle.engine.turn_context import TurnContext
from bridle.errors import AgentError, BadReply, BudgetReached
from bridle.events import AgentResponded, MessageAdded, TraceEvent, UsageReported
from bridle.messages import ToolCall, ToolOutput
from bridle.promises.agent import AgentResponse
from bridle.usage import Usage
from bridle.workspace.text import shorten

log = logging.getLogger(__name__)

GRACE = 2.0  # seconds that an agent has to end by itself after a cancel
PATIENCE = 6.0  # ... and then once its task is cancelled
_given_up: set["asyncio.Task[Any]"] = set()
_AGAIN = "The session can go on: send the prompt again."
_DONE = Ending("done")
_STOPPED = Ending("interrupted", "the turn was interrupted")
_RESTED = "While this turn rested, a person was asked about what you wanted to do. What came of it:"
_GO_ON = "Go on from there."
_MOST_TOLD = 4000  # characters of a result that an agent is told when it goes on


class Came(Struct, frozen=True):
    """What came of a run: a response, or the error that is the reason why there is none."""

    response: AgentResponse
    error: AgentError | None = None


async def carry_turn(turn: TurnContext, given: Assignment) -> Ending:
    """Have the agent run to its end. Raise `AgentError` where it failed."""
    caller = turn.tool_calls = AgentCaller(turn, given.history, given.session_id)
    run = _Run(turn, given, caller)
    day = DayRoom(turn.budget, given.session_id, turn.settled)
    try:
        run.session.day = day
        await day.check()
        return await run.carry()
    except BudgetReached as limit:
        await caller.settle(ended=True)
        return Ending("budget", limit.message, limit.hint)
    finally:
        await day.release()


class _Run:
    """One run of an agent, in one turn."""

    def __init__(self, turn: TurnContext, given: Assignment, caller: AgentCaller) -> None:
        self._turn = turn
        self._given = given
        self._caller = caller
        self._ended = True  # does nothing run any more that was ours to stop?
        schema = turn.config.output_schema
        self._answer_schema = AnswerSchema(schema) if schema is not None else None
        self.session = LentSession(turn, given, caller)

    async def carry(self) -> Ending:
        """From the prompt to the end."""
        over = self._caller.over
        try:
            prompt = await self._prompt()
        except BaseException:
            await self._caller.settle(ended=self._ended)
            raise
        self.session.end_if_reached(ahead=1)  # earlier turns, or this one before it was parked
        if over.done():
            await self._caller.settle(ended=True)
            return over.result()
        self.session.attach()
        running = asyncio.ensure_future(self._execute(prompt))
        try:
            await asyncio.wait((running, over), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._caller.end(_STOPPED)
            with suppress(Exception):  # whoever stops it wants to hear nothing else
                await run_uncancelled(self._wind_up(running))
            raise
        return await run_uncancelled(self._wind_up(running))

    async def _prompt(self) -> str:
        """What the agent is to do. One that goes on is told what came of its calls."""
        messages, told = self._given.prompts, ""
        if self._given.goes_on:
            await self._go_on()
            if self._caller.over.done():
                return ""
            told = _told(self._given.history)
            messages = self._given.steer()
        self.session.prompt = tuple(part for one in messages for part in one.parts)
        return "\n\n".join(filter(None, (told, *(one.content for one in messages))))

    async def _go_on(self) -> None:
        """Have the calls settled that waited for a person; a tool that does not stop is left."""
        if self._turn.sources:
            refresh_tools(self._turn)
        work = asyncio.ensure_future(self._caller.go_on(self._turn.open_calls))
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait((work,), timeout=PATIENCE)
            self._ended = work.done()
            if not self._ended:
                self._leave(work)
            raise
        work.result()

    async def _execute(self, prompt: str) -> Came:
        """Run it. If its answer does not fit the schema, say why and run it once more."""
        if self._answer_schema is None:
            return await self._execute_once(prompt)
        came = await self._execute_once(f"{prompt}\n\n{self._answer_schema.rule}")
        problem = await self._misfit(came)
        if problem is None or self._caller.over.done():
            return came
        if self._given.history.open_calls:  # no message can come before their results
            return Came(came.response, problem)
        self._say_response(came)
        self.session.begin_answer()
        correction = self._answer_schema.correction(problem)
        self._turn.emit(MessageAdded(correction, by="bridle"))
        self.session.prompt = correction.parts
        came = await self._execute_once(correction.content)
        return Came(came.response, came.error or await self._misfit(came))

    async def _misfit(self, came: Came) -> BadReply | None:
        """Record the answer. Return why it does not fit the schema, if it does not."""
        if self._answer_schema is None or came.error is not None or came.response.is_error:
            return None
        await self.session.end_reply(came.response.content)
        last = self._given.history.transcript[-1]
        try:
            self._answer_schema.fit(last.content if last.role == "assistant" else "")
        except BadReply as problem:
            return problem
        return None

    async def _execute_once(self, prompt: str) -> Came:
        """Run it; whatever it raises or returns becomes a response."""
        agent, session, name = self._given.agent, self.session, self._given.name
        try:
            found: Any = agent.execute(
                prompt,
                session,
                can_use_tool=session.can_use_tool,
                on_text_chunk=session.on_text_chunk,
                on_tool_activity=session.on_tool_activity,
            )
            return Came(_response(await found if inspect.isawaitable(found) else found, name))
        except AgentError as error:
            return Came(AgentResponse(error.message, is_error=True), error)
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # the one catch-all: an agent ends neither session nor host
            log.debug("agent %s broke", name, exc_info=True)
            typed = AgentError("agent", f"{name} broke: {_words(error)}", error, hint=_AGAIN)
            return Came(AgentResponse(typed.message, is_error=True), typed)

    async def _wind_up(self, running: "asyncio.Task[Came]") -> Ending:
        """The agent is done, or has to be; what it leaves is put in order."""
        over, session = self._caller.over, self.session
        if not running.done():
            await self._stop(running)
        await session.settle()
        ended = await self._caller.drain(PATIENCE) and running.done()
        if not ended:
            self._leave(running)
        await self._caller.settle(ended=ended)
        came = running.result() if running.done() and not running.cancelled() else None
        if not over.done() and came is not None:
            return await self._conclude(came)
        session.close("", "interrupted")
        self._say_response(came)
        stray = f"{self._given.name} was stopped from elsewhere"
        self._caller.end(Ending("interrupted", stray, _AGAIN))
        return over.result()

    async def _conclude(self, came: Came) -> Ending:
        response = came.response
        self.session.close("" if response.is_error else response.content, "complete")
        self._say_response(came)
        await self.session.settle()  # what it cost may be the last of the day
        self._caller.end(_DONE)  # nothing is let through any more
        if isinstance(came.error, BudgetReached):
            return Ending("budget", came.error.message, came.error.hint)
        if came.error is not None:
            raise came.error
        if response.is_error:
            said = response.content.strip() or f"{self._given.name} reported an error"
            raise AgentError("agent", said, hint=_AGAIN)
        return self._caller.over.result()  # done, unless that has reached a limit

    def _say_response(self, came: Came | None) -> None:
        """The agent's own account, with what it cost."""
        if came is None:
            return
        response, session = came.response, self.session
        session.remember(response.session_id)
        used = Usage() if session.has_usage else session.used
        if (response.cost and not session.has_cost) or used.total_tokens:
            session.spend(UsageReported(used, cost=response.cost or None))
        self._turn.emit(
            AgentResponded(
                self._given.name,
                self._given.number,
                response.session_id or "",
                "" if session.has_said(response.content) else response.content,
                response.cost,
                response.duration_ms,
                response.num_turns,
                tuple(response.tools_used),
                response.is_error,
            )
        )

    async def _stop(self, running: "asyncio.Task[Came]") -> None:
        """Ask it to end, then end it; one that does neither is left to itself."""
        asking = asyncio.ensure_future(self._ask_to_stop())
        await asyncio.wait((running,), timeout=GRACE)
        if not running.done():
            running.cancel()
            await asyncio.wait((running,), timeout=PATIENCE)
        asking.cancel()
        await asyncio.wait((asking,), timeout=GRACE)

    async def _ask_to_stop(self) -> None:
        try:
            await self._given.agent.cancel(self._given.session_id)
        except Exception:  # it is somebody else's, and its task is cancelled next
            log.debug("agent %s could not be cancelled", self._given.name, exc_info=True)

    def _leave(self, running: "asyncio.Task[Any]") -> None:
        said = f"{self._given.name} did not stop within {GRACE + PATIENCE:g} seconds"
        detail = {"agent": self._given.name, "message": f"{said} and may still be running"}
        self._turn.emit(TraceEvent("not_stopped", detail))
        if not running.done():
            _given_up.add(running)  # asyncio itself holds tasks only weakly
            running.add_done_callback(_forget)


def _forget(running: "asyncio.Task[Any]") -> None:
    _given_up.discard(running)
    if not running.cancelled():
        running.exception()  # nobody else will ask


def _told(history: History) -> str:
    """What came of the calls that a person was asked about, for an agent that goes on."""
    messages = history.transcript
    answers = messages[-1].tool_results if len(messages) > 1 else ()
    calls = {one.id: one for one in messages[-2].tool_calls} if answers else {}
    lines = [f"- {_named(calls.get(one.call_id), one)}:\n{_shown(one)}" for one in answers]
    return "\n\n".join((_RESTED, *lines, _GO_ON))


def _named(call: ToolCall | None, output: ToolOutput) -> str:
    if call is None:
        return output.name
    return f"{call.name} {msgspec.json.encode(call.arguments, enc_hook=str).decode()}"


def _shown(output: ToolOutput) -> str:
    how = "it failed, or was refused: " if output.is_error else ""
    return how + shorten(output.text, _MOST_TOLD)


def _response(found: Any, name: str) -> AgentResponse:
    """What an agent gave back, whoever's class it is. Raise `AgentError`."""
    fields = AgentResponse.__struct_fields__
    given = {key: getattr(found, key) for key in fields if hasattr(found, key)}
    try:
        response = msgspec.convert(given, AgentResponse, strict=False)
    except msgspec.ValidationError as error:
        what = type(found).__name__
        raise AgentError(
            "agent",
            f"{name} gave back a {what} that is no AgentResponse: {error}",
            hint="`execute` returns an AgentResponse, as in bridle.agents.base.",
        ) from None
    if isfinite(response.cost) and response.cost >= 0:
        return response
    return replace(response, cost=0.0)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
