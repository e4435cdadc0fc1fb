"""`ClaudeCodeAgent`: runs turns with the real Claude Code, through the same gate as everybody else.

Decides when to try again and when to give up: a conversation that is gone is started anew, and the
person is told; an error of the service that may pass is tried once more; everything else is
reported at once.

Each run starts the program anew, and it resumes the conversation by its id. That costs half a
second, and leaves no state that could go stale between turns: mode, limits and prompts are those of
the turn, no 200 MB wait for a person, and a program that died is no different from one that ended.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from msgspec import Struct

from bridle.agents.claude_code.hooks import Hooks, remember_conversation
from bridle.agents.claude_code.messages import (
    MessageReader,
    Outcome,
    is_stale,
    outcome_of,
    to_usage,
    tool_results,
)
from bridle.agents.claude_code.options import (
    INSTALL,
    ClaudeCodeConfig,
    build_options,
    command_line,
    config_folder,
    environment,
    find_cli,
    load_sdk,
    private_servers,
)
from bridle.agents.claude_code.process import ClaudeProcess
from bridle.agents.claude_code.tool_mapping import Roots
from bridle.agents.session_history import (
    POSITION,
    earlier_history,
    history_position,
    missed_history,
    with_earlier_history,
    with_missed_history,
)
from bridle.errors import AgentError, BudgetReached, ConfigError, SessionBusy
from bridle.events import Event, TextDelta, TraceEvent, UsageReported
from bridle.messages import File, Image
from bridle.protocols.agent import AgentResponse, OnTextChunk, OnToolActivity
from bridle.workspace.process.supervised_process import exit_description

ATTEMPTS = 3  # in all: the first, one for a stale conversation, one for a service that failed
_COST = "cost"  # in the session's state: what its conversation has cost so far
_LOST = "Claude Code no longer has conversation {}: a new one was started"
_NONE_YET = "Claude Code has no conversation of this session yet: a new one was started"
_TOLD = "{}, and was told what the log has of what was said before."
_NOT_TOLD = "{}, which does not know what was said before. The log still has it."
_CONTINUE = "The service failed for a moment. Continue with what was asked; do nothing twice."
_STOPPED = "It was stopped."
STOP_SECONDS = 1.5  # that the program has to end after an interrupt
_HINT = (
    "What was done until then is in the log. Send the prompt again: "
    "the program is started anew, and its conversation continues."
)


class RunRequest(Struct):
    """What a run needs: the SDK, the settings, the session and the callbacks."""

    sdk: Any
    config: ClaudeCodeConfig
    session: Any
    roots: Roots
    can_use_tool: Callable[..., Any] | None = None
    on_text_chunk: OnTextChunk | None = None
    on_tool_activity: OnToolActivity | None = None
    parts: tuple[Any, ...] = ()  # the prompt as it was sent, with its pictures


class ClaudeCodeAgent:
    """Claude Code as an agent. Several sessions may run at once, each with a program of its own."""

    name = "claude-code"

    def __init__(self, config: ClaudeCodeConfig | None = None) -> None:
        self.config = config or ClaudeCodeConfig()
        self._turns: dict[str, _Turn] = {}
        self._costs: dict[str, float] = {}  # for sessions that cannot store it

    async def execute(
        self,
        prompt: str,
        session: Any,
        *,
        can_use_tool: Callable[..., Any] | None = None,
        on_text_chunk: OnTextChunk | None = None,
        on_tool_activity: OnToolActivity | None = None,
    ) -> AgentResponse:
        """Run the prompt to its end. Raise `AgentError` if the program cannot be run."""
        if session.id in self._turns:
            raise SessionBusy(f"Claude Code is running a turn of session {session.id} already.")
        request = RunRequest(
            sdk=None,
            config=self.config,
            session=session,
            roots=_roots(session.working_directory),
            can_use_tool=can_use_tool,
            on_text_chunk=on_text_chunk,
            on_tool_activity=on_tool_activity,
            parts=tuple(getattr(session, "prompt", ())),
        )
        self._turns[session.id] = turn = _Turn(request, self._costs)
        try:
            return await turn.run(prompt)
        finally:
            del self._turns[session.id]
            turn.over.set()

    async def cancel(self, session_id: str) -> None:
        """Stop the turn of that session, without another attempt."""
        if (turn := self._turns.get(session_id)) is not None:
            await turn.stop()

    async def shutdown(self) -> None:
        """Stop everything, and leave no program behind."""
        turns = list(self._turns.values())
        await asyncio.gather(*(turn.stop() for turn in turns))
        await asyncio.gather(*(turn.over.wait() for turn in turns))


class _Turn:
    """One prompt, and as many runs of the program as it takes."""

    def __init__(self, request: RunRequest, costs: dict[str, float]) -> None:
        self._request = request
        self._session = request.session
        self._costs = costs
        self._run: ClaudeRun | None = None
        self._stopped = asyncio.Event()
        self._tools_used: dict[str, None] = {}
        self._cost, self._milliseconds, self._turns = 0.0, 0, 0
        self.over = asyncio.Event()

    async def run(self, prompt: str) -> AgentResponse:
        """Run the prompt to its end, with at most one more attempt for each of the two reasons."""
        _check_limits(getattr(self._session, "remaining", None))
        self._request.sdk = await asyncio.to_thread(load_sdk)
        resume, asked = self._session.claude_session_id or None, prompt
        if resume is not None:
            missed = missed_history(self._session, self._state.get(POSITION))
            prompt = with_missed_history(asked, missed)
        elif history := earlier_history(self._session):
            await self._report_new_conversation(_NONE_YET)
            prompt = with_earlier_history(asked, history)
        retried: set[str] = set()
        for _ in range(ATTEMPTS):
            outcome = await self._attempt(prompt, resume)
            if self._stopped.is_set() or outcome.kind in retried:
                break
            retried.add(outcome.kind)
            if outcome.kind == "stale":
                self._session.claude_session_id = None
                self._conversation_cost = 0.0
                await self._report_new_conversation(_LOST.format(resume))
                resume = None
                prompt = with_earlier_history(asked, earlier_history(self._session))
            elif outcome.kind == "transient" and await self._wait_before_retry(outcome):
                prompt, resume = self._next_prompt(prompt, resume)
            else:
                break
        if outcome.kind == "limit" and hasattr(self._session, "remaining"):
            raise BudgetReached(outcome.content)  # the engine words its own limits
        return self._response(outcome)

    async def stop(self) -> None:
        """Stop the turn, without another attempt."""
        self._stopped.set()
        if self._run is not None:
            await self._run.stop()

    async def _attempt(self, prompt: str, resume: str | None) -> Outcome:
        if self._stopped.is_set():
            return Outcome("stopped", _STOPPED)
        cost_before = self._conversation_cost if resume else 0.0
        self._run = run = ClaudeRun(self._request, resume)
        outcome = Outcome("failed")
        try:
            outcome = await run.run(prompt)
        finally:
            self._tools_used.update(run.hooks.used)
            self._store_position(run.messages.session_id)
            if outcome.kind != "stale":
                self._account(outcome, cost_before, run.messages)
        return outcome

    def _next_prompt(self, prompt: str, resume: str | None) -> tuple[str, str | None]:
        """Return the next attempt's prompt, and the conversation to resume.

        A prompt that the program has written down is not sent again, and it continues what it
        began: to begin again would be to do things twice.
        """
        assert self._run is not None
        messages = self._run.messages
        if resume is None and not messages.has_reply:
            return prompt, None
        self._request.parts = ()
        return _CONTINUE, messages.session_id or resume

    async def _report_new_conversation(self, reason: str) -> None:
        """Tell the person that the conversation does not continue the one before."""
        message = (_TOLD if earlier_history(self._session) else _NOT_TOLD).format(reason)
        if (emit := getattr(self._session, "emit", None)) is not None:
            emit(TraceEvent("new_conversation", {"message": message}))
        elif self._request.on_text_chunk is not None:
            await self._request.on_text_chunk(f"[{message}]\n\n")

    async def _wait_before_retry(self, outcome: Outcome) -> bool:
        """Wait before the next attempt. Return False if somebody has stopped it meanwhile."""
        seconds = self._request.config.retry_seconds
        if (emit := getattr(self._session, "emit", None)) is not None:
            detail = {"attempt": 1, "of": 2, "seconds": seconds, "error": outcome.content}
            emit(TraceEvent("retry", detail))
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except TimeoutError:
            return True
        return False

    def _store_position(self, conversation_id: str) -> None:
        """Store how far the conversation knows the session, once the program has the prompt."""
        if not conversation_id or not self._has_state:
            return
        if (position := history_position(self._session)) is not None:
            self._session.state = {**self._state, POSITION: position}

    @property
    def _has_state(self) -> bool:
        return isinstance(getattr(self._session, "state", None), dict)

    @property
    def _state(self) -> dict[str, Any]:
        return dict(self._session.state) if self._has_state else {}

    @property
    def _conversation_cost(self) -> float:
        """What the conversation had cost when it last said so."""
        if self._has_state:
            return float(self._state.get(_COST) or 0.0)
        return self._costs.get(self._session.id, 0.0)

    @_conversation_cost.setter
    def _conversation_cost(self, value: float) -> None:
        if self._has_state:
            self._session.state = {**self._state, _COST: value}
        else:
            self._costs[self._session.id] = value

    def _account(self, outcome: Outcome, cost_before: float, messages: MessageReader) -> None:
        """Report what the run used.

        The program counts from the beginning of the conversation; a turn is charged its own part.
        If a run ends early, the program's figures lack some replies: then those that came count.
        """
        self._milliseconds += outcome.duration_ms
        self._turns += outcome.num_turns
        reported, cost = to_usage(outcome.usage), None
        usage = max(reported, messages.usage, key=lambda usage: usage.total_tokens)
        if outcome.total_cost is not None:
            total = outcome.total_cost
            cost = total - cost_before if total >= cost_before else total
            self._cost += cost
            self._conversation_cost = total
        emit = getattr(self._session, "emit", None)
        if emit is not None and (usage.total_tokens or cost):
            emit(UsageReported(usage, messages.model, cost, priced=True))

    def _response(self, outcome: Outcome) -> AgentResponse:
        stopped = self._stopped.is_set()
        return AgentResponse(
            content=_STOPPED if stopped else outcome.content,
            session_id=self._session.claude_session_id,
            cost=self._cost,
            duration_ms=self._milliseconds,
            num_turns=self._turns,
            tools_used=list(self._tools_used),
            is_error=stopped or outcome.kind != "done",
        )


def _check_limits(remaining: Any) -> None:
    """Raise `BudgetReached` if nothing is left: the program does not accept a limit of zero."""
    for name in ("money", "tokens", "steps"):
        left = getattr(remaining, name, None)
        if left is not None and left <= 0:
            raise BudgetReached(f"The limit of {name} is reached; Claude Code was not started.")


def _roots(folder: str) -> tuple[str, ...]:
    """Return the folder as it is named, and as it is spelled without links."""
    whole = os.path.abspath(folder)  # noqa: PTH100 - `resolve` would follow the links
    return tuple(dict.fromkeys((whole, os.path.realpath(whole))))


class ClaudeRun:
    """One run. `run` returns its outcome; `stop` ends it from another task."""

    def __init__(self, request: RunRequest, resume: str | None) -> None:
        self._request = request
        self._resume = resume
        self._environment = environment(request.config, request.roots[0])
        self.messages = MessageReader(request.roots)
        self.hooks = Hooks(
            session=request.session,
            can_use_tool=request.can_use_tool,
            on_tool_activity=request.on_tool_activity,
            messages=self.messages,
            roots=request.roots,
            config_folder=config_folder(self._environment),
        )
        self._client: Any = None
        self._process: ClaudeProcess | None = None
        self._over = asyncio.Event()
        self.is_stopped = False

    async def run(self, prompt: str) -> Outcome:
        """Run the prompt. Raise `AgentError` if the program ends without a result."""
        options = self._options()
        with private_servers(options) as servers:
            written = replace(options, permission_prompt_tool_name="stdio", mcp_servers=servers)
            return await self._run(prompt, options, command_line(written))

    async def _run(self, prompt: str, options: Any, argv: list[str]) -> Outcome:
        request = self._request
        self._process = process = ClaudeProcess(argv, request.roots[0], self._environment)
        client_options = replace(options, allowed_tools=[])
        client = request.sdk.ClaudeSDKClient(client_options, transport=process)
        try:
            try:
                await client.connect()
                self._client = client
                result = None if self.is_stopped else await self._converse(client, prompt)
            finally:
                self._client = None
                try:
                    await client.disconnect()
                finally:
                    await process.kill()
                    self._over.set()
        except Exception as error:  # the SDK raises plain ones, too
            if self.is_stopped:
                return Outcome("stopped", _STOPPED)
            return self._failure(error, process)
        if result is None:
            return (
                Outcome("stopped", _STOPPED)
                if self.is_stopped
                else self._failure(EOFError("no result"), process)
            )
        return outcome_of(result, self.messages.error, resumed=bool(self._resume))

    async def stop(self) -> None:
        """Interrupt the program, and kill it if it does not end."""
        self.is_stopped = self.hooks.is_stopped = True
        client = self._client
        if client is not None:
            with suppress(Exception):  # it may have ended; if not, it is killed below
                await asyncio.wait_for(client.interrupt(), STOP_SECONDS)
                await asyncio.wait_for(self._over.wait(), STOP_SECONDS)
                return
        if self._process is not None:
            await self._process.kill()
            await self._over.wait()

    def _options(self) -> Any:
        request, sdk = self._request, self._request.sdk
        return sdk.ClaudeAgentOptions(
            **build_options(request.config, request.session, self._resume),
            cli_path=find_cli(request.config, request.roots[0]),
            hooks=self.hooks.registrations(sdk, request.config.hook_seconds),
            can_use_tool=self._can_use_tool,
        )

    async def _can_use_tool(self, name: str, arguments: dict[str, Any], context: Any) -> Any:
        permission = await self.hooks.can_use_tool(name, arguments, context)
        if permission:
            return self._request.sdk.PermissionResultAllow()
        return self._request.sdk.PermissionResultDeny(message=permission.message)

    async def _converse(self, client: Any, prompt: str) -> Any:
        """Send the prompt, handle everything that is said, and return the result."""
        content = prompt_content(prompt, self._request.parts)
        await client.query(_message_stream(content) if content else prompt)
        async with aclosing(client.receive_response()) as messages:
            async for message in messages:
                if type(message).__name__ == "ResultMessage":
                    return message
                for event in self.messages.read(message):
                    await self._emit(event)
                remember_conversation(self._request.session, self.messages.session_id)
                if type(message).__name__ == "AssistantMessage":
                    await self.hooks.on_reply()
                for result in tool_results(message):
                    await self.hooks.on_result(result)
        return None

    async def _emit(self, event: Event) -> None:
        emit = getattr(self._request.session, "emit", None)
        if isinstance(event, TextDelta) and self._request.on_text_chunk is not None:
            await self._request.on_text_chunk(event.text)
        elif emit is not None:
            emit(event)

    def _failure(self, error: Exception, process: ClaudeProcess) -> Outcome:
        """Return the outcome of a run that ended with an exception.

        Raise `AgentError` if the conversation cannot simply be started anew.
        """
        data = getattr(error, "data", None)
        if self._resume and isinstance(data, dict) and is_stale(data):
            return Outcome("stale", str(error))
        if isinstance(error, AgentError):
            raise error
        how, complaint = exit_description(process.exit_code), process.stderr_tail()
        quote = f" It said: {complaint}" if complaint else ""
        if not self.messages.session_id:
            message = f"Claude Code could not be started: the program {how}.{quote}"
            raise ConfigError(message, error, hint=INSTALL) from error
        message = f"Claude Code {how} before its answer came.{quote}"
        raise AgentError("agent", message, error, hint=_HINT) from error


def prompt_content(prompt: str, parts: Any) -> list[dict[str, Any]]:
    """Return the prompt with the pictures and documents that came with it; empty if none did."""
    media = [_media_block(part) for part in parts if isinstance(part, Image | File)]
    return [*media, {"type": "text", "text": prompt}] if media else []


def _media_block(part: Image | File) -> dict[str, Any]:
    kind = "image" if isinstance(part, Image) else "document"
    if isinstance(part, Image) and part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source}


async def _message_stream(content: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """Yield a message of several parts, which the SDK accepts only as a stream."""
    message = {"role": "user", "content": content}
    yield {"type": "user", "message": message, "parent_tool_use_id": None}
