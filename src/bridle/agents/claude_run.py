"""One run of the `claude` program, from its start to its end: spoken to, listened to, stopped.

A fresh program for each run, which takes up the conversation by its id. That costs half a second,
and has no state to go stale between turns: mode, limits and prompts are those of the turn, nothing
of 200 MB waits for a person, and a program that died is no different from one that ended.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from msgspec import Struct

from bridle.agents.claude_gate import Hooks, attach
from bridle.agents.claude_options import (
    INSTALL,
    ClaudeCodeConfig,
    build_options,
    command_line,
    config_folder,
    environment,
    find_cli,
    private_servers,
)
from bridle.agents.claude_process import ClaudeProcess
from bridle.agents.claude_prompt import blocks_of
from bridle.agents.claude_talk import Talk, answers_in
from bridle.agents.claude_tools import Roots
from bridle.agents.claude_verdict import Outcome, judged, stale_by
from bridle.errors import AgentError, ConfigError
from bridle.events import Event, TextDelta
from bridle.promises.agent import OnTextChunk, OnToolActivity
from bridle.workspace.process.supervised import exit_description

PATIENCE = 1.5  # seconds that the program has to end after an interrupt
_STOPPED = Outcome("stopped", "It was stopped.")
_GOES_ON = (
    "What was done until then is in the log. Send the prompt again: "
    "the program is started anew, and its conversation goes on."
)


class Order(Struct):
    """What is to be run, for whom, and who listens."""

    sdk: Any
    config: ClaudeCodeConfig
    session: Any
    roots: Roots
    can_use_tool: Callable[..., Any] | None = None
    on_text_chunk: OnTextChunk | None = None
    on_tool_activity: OnToolActivity | None = None
    parts: tuple[Any, ...] = ()  # the prompt as it was sent, with its pictures


class ClaudeRun:
    """One run. `through` gives its outcome; `stop` ends it from elsewhere."""

    def __init__(self, order: Order, resume: str | None) -> None:
        self._order = order
        self._resume = resume
        self._env = environment(order.config, order.roots[0])
        self.talk = Talk(order.roots)
        self.hooks = Hooks(
            order.session,
            order.can_use_tool,
            order.on_tool_activity,
            self.talk,
            order.roots,
            config_folder(self._env),
        )
        self._client: Any = None
        self._process: ClaudeProcess | None = None
        self._over = asyncio.Event()
        self.is_stopped = False

    async def through(self, prompt: str) -> Outcome:
        """Start, speak, listen. Raise `AgentError` where the program did not get to a result."""
        options = self._options()
        with private_servers(options) as servers:
            wanted = replace(options, permission_prompt_tool_name="stdio", mcp_servers=servers)
            return await self._run(prompt, options, command_line(wanted))

    async def _run(self, prompt: str, options: Any, words: list[str]) -> Outcome:
        self._process = process = ClaudeProcess(words, self._order.roots[0], self._env)
        client = self._order.sdk.ClaudeSDKClient(
            replace(options, allowed_tools=[]), transport=process
        )
        try:
            try:
                await client.connect()
                self._client = client
                result = None if self.is_stopped else await self._talked(client, prompt)
            finally:
                self._client = None
                try:
                    await client.disconnect()
                finally:
                    await process.kill()
                    self._over.set()
        except Exception as error:  # the SDK raises plain ones, too: each has an outcome here
            if self.is_stopped:
                return _STOPPED
            return self._failure(error, process)
        if result is None:
            return _STOPPED if self.is_stopped else self._failure(EOFError("no result"), process)
        return judged(result, self.talk.error, resumed=bool(self._resume))

    async def stop(self) -> None:
        """Ask it to stop, and if it does not, end it."""
        self.is_stopped = self.hooks.is_stopped = True
        client = self._client
        if client is not None:
            with suppress(Exception):  # it may be gone; then it is ended below
                await asyncio.wait_for(client.interrupt(), PATIENCE)
                await asyncio.wait_for(self._over.wait(), PATIENCE)
                return
        if self._process is not None:
            await self._process.kill()
            await self._over.wait()

    def _options(self) -> Any:
        order, sdk = self._order, self._order.sdk
        found = build_options(order.config, order.session, self._resume)
        return sdk.ClaudeAgentOptions(
            **found,
            cli_path=find_cli(order.config, order.roots[0]),
            hooks=self.hooks.registered(sdk, order.config.hook_seconds),
            can_use_tool=self._permitted,
        )

    async def _permitted(self, name: str, given: dict[str, Any], context: Any) -> Any:
        found = await self.hooks.permitted(name, given, context)
        if found:
            return self._order.sdk.PermissionResultAllow()
        return self._order.sdk.PermissionResultDeny(message=found.message)

    async def _talked(self, client: Any, prompt: str) -> Any:
        """Everything that is said, up to the result."""
        await client.query(self._told(prompt))
        async with aclosing(client.receive_response()) as messages:
            async for message in messages:
                if type(message).__name__ == "ResultMessage":
                    return message
                for event in self.talk.take(message):
                    await self._say(event)
                attach(self._order.session, self.talk.session_id)
                if type(message).__name__ == "AssistantMessage":
                    await self.hooks.heard()
                for answer in answers_in(message):
                    await self.hooks.answered(answer)
        return None

    def _told(self, prompt: str) -> Any:
        """The words, or a message of several parts, which the SDK takes from a stream alone."""
        blocks = blocks_of(prompt, self._order.parts)
        return _stream(blocks) if blocks else prompt

    async def _say(self, event: Event) -> None:
        emit = getattr(self._order.session, "emit", None)
        if isinstance(event, TextDelta) and self._order.on_text_chunk is not None:
            await self._order.on_text_chunk(event.text)
        elif emit is not None:
            emit(event)

    def _failure(self, error: Exception, process: ClaudeProcess) -> Outcome:
        """What an exception says of the run. Raise `AgentError` where it says that it is over."""
        data = getattr(error, "data", None)
        if self._resume and isinstance(data, dict) and stale_by(data):
            return Outcome("stale", str(error))
        if isinstance(error, AgentError):
            raise error
        how, said = exit_description(process.exit_code), process.stderr_tail()
        said = f" It said: {said}" if said else ""
        if not self.talk.session_id:
            words = f"Claude Code could not be started: the program {how}.{said}"
            raise ConfigError(words, error, hint=INSTALL) from error
        words = f"Claude Code {how} before its answer came.{said}"
        raise AgentError("agent", words, error, hint=_GOES_ON) from error


async def _stream(blocks: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    message = {"role": "user", "content": blocks}
    yield {"type": "user", "message": message, "parent_tool_use_id": None}
