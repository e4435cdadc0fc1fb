"""The engine of a chat: our own loop with a chat's tools, and without a log.

Conversations are stored in the database, so each turn is a session in memory that is deleted
afterwards. One engine serves all users at once. The session of a call says which turn it belongs
to; nothing that the model writes can change that.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bridle.chat.limits import RunLimits
from bridle.chat.profile import Profile
from bridle.chat.tools.source import ToolInfo, failed
from bridle.chat.turn import ChatTurn
from bridle.chat.values import AgentContext
from bridle.config.loader import load_settings
from bridle.errors import ConfigError
from bridle.messages import Message, Text
from bridle.policy import Rule, ToolPolicy
from bridle.protocols.provider import Provider
from bridle.protocols.session import TurnResult
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.runtime import Engine, Limits, build_engine, find_provider
from bridle.runtime import provider as provider_of
from bridle.stores.memory_store import MemoryStore

_encode = msgspec.json.Encoder(enc_hook=str).encode
_LONGEST = 2_000  # characters of an old message that the model is shown
_INVALID = "The arguments did not fit the tool."


class BoundTool:
    """A tool of the source as the engine knows it."""

    def __init__(self, info: ToolInfo, runs: Mapping[str, ChatTurn]) -> None:
        self.name, self.description = info.name, info.description
        open_schema = {k: v for k, v in info.parameters.items() if k != "additionalProperties"}
        self.parameters: dict[str, Any] = {"type": "object", **open_schema}
        self.policy = ToolPolicy(read_only=info.reads)
        self._info = info
        self._runs = runs

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Call it for the user of the turn that asks."""
        run = self._runs[context.session_id]
        run.reached.add(context.call_id)
        result = await run.call(self._info, arguments)
        text = _encode(result).decode()
        return ToolResult(result.get("success") is True, text)


class ChatEngine:
    """One engine, with one system prompt, for as many turns at once as come."""

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
        """One turn of the model, with its calls. Cancelling it interrupts them."""
        session = await self._engine.session()
        self._runs[session.id] = run
        try:
            result = await self._engine.run(run.message, past, session=session)
            _record_refused_calls(run, session.history.transcript)
            return result
        finally:
            run.spend(session.metrics.cost, session.metrics.unpriced)
            await session.close()
            del self._runs[session.id]
            self._store.delete(session.id)

    async def close(self) -> None:
        """Let go of everything."""
        await self._engine.close()


def _record_refused_calls(run: ChatTurn, messages: Iterable[Message]) -> None:
    """Calls that the engine itself refused are on record like any other."""
    for message in messages:
        for call in message.tool_calls:
            if call.id not in run.reached and not run.is_full:
                run.note(call.name, call.arguments, failed("invalid_input", _INVALID))


def past_messages(context: AgentContext, limit: int) -> list[Message]:
    """The newest messages of a conversation for the model: words only, whoever wrote them.

    Calls that stand in a history are not handed on: nobody here saw them happen.
    """
    kept = context.message_history[-limit:] if limit else ()
    found: list[Message] = []
    for one in kept:
        if words := one.content.strip()[:_LONGEST]:
            role = "user" if one.role == "user" else "assistant"
            found.append(Message(role, (Text(words),)))  # type: ignore[arg-type]
    return found


def choose_provider(
    given: Provider | str | None, profile: Profile, environ: Mapping[str, str] | None = None
) -> Provider:
    """The model's side: as it was given; where a key is, that vendor's; else the responder."""
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
            f"no model was found for {profile.name}, and it has no responder of its own",
            hint="Set an API key, name a model, or give the profile a responder.",
        )
    return profile.responder()
