"""The engine of a chat: our own loop with a chat's tools, and without a log.

Conversations are stored in the database, so each turn is a session in memory that is deleted
afterwards. One engine serves all users at once. The session of a call says which turn it belongs
to; nothing that the model writes can change that.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from bridle.chat.limits import RunLimits
from bridle.chat.profile import Profile
from bridle.chat.reply_filter import ReplyStream
from bridle.chat.tools.source import ToolInfo, failure
from bridle.chat.turn import ChatTurn
from bridle.chat.values import AgentContext
from bridle.config.loader import load_settings
from bridle.errors import ConfigError
from bridle.events import ReplyDiscarded, ResponseCompleted, TextDelta, TurnEnded
from bridle.messages import Message, Text, ToolCall
from bridle.policy import Rule, ToolPolicy
from bridle.protocols.provider import Provider
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.runtime import Engine, Limits, build_engine, find_provider
from bridle.runtime import provider as provider_of
from bridle.stores.memory_store import MemoryStore

_encode = msgspec.json.Encoder(enc_hook=str).encode
_LONGEST = 2_000  # characters of an old message that the model is shown
_INVALID = "The arguments did not fit the tool."


class BoundTool:
    """A tool of the source, for the engine."""

    def __init__(self, info: ToolInfo, runs: Mapping[str, ChatTurn]) -> None:
        self.name, self.description = info.name, info.description
        open_schema = {k: v for k, v in info.parameters.items() if k != "additionalProperties"}
        self.parameters: dict[str, Any] = {"type": "object", **open_schema}
        self.policy = ToolPolicy(read_only=info.reads)
        self._info = info
        self._runs = runs

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Call the tool for the user of this session's turn."""
        run = self._runs[context.session_id]
        run.reached.add(context.call_id)
        result = await run.call(self._info, arguments)
        text = _encode(result).decode()
        return ToolResult(result.get("success") is True, text)


class ChatEngine:
    """One engine with one system prompt for any number of turns at once."""

    def __init__(
        self, provider: Provider, profile: Profile, infos: Iterable[ToolInfo], limits: RunLimits
    ) -> None:
        self._store = MemoryStore()
        self._runs: dict[str, ChatTurn] = {}
        self._limits = limits
        tools = [BoundTool(info, self._runs) for info in infos]
        # the gate of a chat is the run: who may change what is decided there, for each call
        self._engine: Engine = build_engine(
            provider,
            tools=tools,
            store=self._store,
            system=profile.system_prompt,
            rules=[Rule("allow", tool.name) for tool in tools],
            limits=Limits(
                max_steps=limits.max_tool_calls + 2,
                max_tool_calls=limits.max_tool_calls,
                tool_seconds=0.0,
                repeats=3,
                max_cost=limits.max_cost,
            ),
            undo=False,
            redact_tokens=False,  # a title is what its user says it is
            face="chat",
            telemetry=False,
        )

    async def run_turn(self, run: ChatTurn, past: Iterable[Message]) -> TurnResult:
        """Run one turn of the model with its calls. Cancelling it interrupts them."""
        session = await self._engine.session()
        self._runs[session.id] = run
        run.calls_of_reply = lambda: _last_calls(session.history.transcript)
        showing = None
        if run.stream is not None:
            showing = asyncio.create_task(_show_text(session.subscribe(), run.stream))
        try:
            result = await self._engine.run(run.message, past, session=session)
            _record_refused_calls(run, session.history.transcript)
            if showing is not None:
                await showing
            return result
        finally:
            if showing is not None:
                showing.cancel()
            run.spend(session.metrics.cost, session.metrics.unpriced)
            await session.close()
            del self._runs[session.id]
            self._store.delete(session.id)

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.close()


async def _show_text(records: AsyncGenerator[Record, None], stream: ReplyStream) -> None:
    """Feed the model's text to the stream until the turn ends."""
    async with aclosing(records):
        async for record in records:
            match record.event:
                case TextDelta(text=text):
                    stream.feed(text)
                case ResponseCompleted():
                    stream.end_message()
                case ReplyDiscarded():
                    stream.discard_message()
                case TurnEnded():
                    return


def _last_calls(messages: Sequence[Message]) -> Sequence[ToolCall]:
    """Return the calls of the model's last reply."""
    return next(
        (message.tool_calls for message in reversed(messages) if message.role == "assistant"), ()
    )


def _record_refused_calls(run: ChatTurn, messages: Iterable[Message]) -> None:
    """Record the calls that the engine itself refused."""
    for message in messages:
        for call in message.tool_calls:
            if call.id not in run.reached and not run.is_full:
                run.note(call.name, call.arguments, failure("invalid_input", _INVALID))


def past_messages(context: AgentContext, limit: int) -> list[Message]:
    """Return the newest messages of a conversation for the model: text only.

    Tool calls in the history are left out: nobody here has seen them happen.
    """
    kept = context.message_history[-limit:] if limit else ()
    found: list[Message] = []
    for message in kept:
        if words := message.content.strip()[:_LONGEST]:
            role = "user" if message.role == "user" else "assistant"
            found.append(Message(role, (Text(words),)))  # type: ignore[arg-type]
    return found


def choose_provider(
    given: Provider | str | None, profile: Profile, environ: Mapping[str, str] | None = None
) -> Provider:
    """Return the given provider, else the one whose API key is set, else the responder."""
    if given is not None and not isinstance(given, str):
        return given
    if given and given not in ("offline", "responder"):
        return provider_of(given)
    if not given:
        environ = os.environ if environ is None else environ
        settings = load_settings({}, environ).settings
        choice = find_provider(settings, environ, probe=list)
        if choice.name:
            return choice.provider()
    if profile.responder is None:
        raise ConfigError(
            f"no model was found for {profile.name}, and it has no offline responder",
            hint="Set an API key, name a model, or give the profile a responder.",
        )
    return profile.responder()
