"""One run of the `claude` program, from its start to its end.

Each run starts the program anew, and it resumes the conversation by its id. That costs half a
second, and leaves no state that could go stale between turns: mode, limits and prompts are those of
the turn, no 200 MB wait for a person, and a program that died is no different from one that ended.
"""

import asyncio
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
    private_servers,
)
from bridle.agents.claude_code.process import ClaudeProcess
from bridle.agents.claude_code.tool_mapping import Roots
from bridle.errors import AgentError, ConfigError
from bridle.events import Event, TextDelta
from bridle.messages import File, Image
from bridle.protocols.agent import OnTextChunk, OnToolActivity
from bridle.workspace.process.supervised import exit_description

STOP_SECONDS = 1.5  # that the program has to end after an interrupt
_STOPPED = Outcome("stopped", "It was stopped.")
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
                return _STOPPED
            return self._failure(error, process)
        if result is None:
            return _STOPPED if self.is_stopped else self._failure(EOFError("no result"), process)
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
