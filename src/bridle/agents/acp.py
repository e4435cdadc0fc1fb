"""Any program that speaks the Agent Client Protocol over its pipes, as an agent of ours.

`AcpAgent("gemini --acp")` starts the program in the workspace, one for each session, and keeps it
between turns. What it asks leave for goes to the gate; the files and commands that it has us read,
write and run go through our workspace and our shell. What it does without asking cannot be held
back here: it is recorded as that. The official library (extra `acp`) is imported with the first
prompt.
"""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridle.distribution import install_hint
from bridle.errors import ConfigError, MissingExtra, SessionBusy
from bridle.promises.agent import AgentResponse, OnTextChunk, OnToolActivity

if TYPE_CHECKING:
    from bridle.agents.acp_conversation import Conversation

KEPT = 4  # programs that are kept for sessions in which nothing happens


class AcpAgent:
    """Carries turns by a program that speaks ACP.

    `command` is a line as one would type it, or its words. The program is told a short list of
    harmless variables and, where we know it, its own vendor's; `inherit` names more of ours that
    it may have, and `env` is given to it as it is. `auth` chooses a way to log in; `start_seconds`
    is how long the program may take for each answer before the first prompt. Of programs that wait
    for the next prompt, `keep` are kept.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = (),
        auth: str = "",
        start_seconds: float = 60.0,
        keep: int = KEPT,
    ) -> None:
        self._argv = _words(command)
        self._env = dict(env or {})
        self._inherit = tuple(inherit)
        self._auth = auth
        self._seconds = start_seconds
        self._keep = keep
        self._conversations: dict[str, Conversation] = {}
        self._running: dict[str, Conversation] = {}
        self.name = f"acp:{shlex.join(self._argv)}"

    async def execute(
        self,
        prompt: str,
        session: Any,
        *,
        can_use_tool: Callable[..., Any] | None = None,
        on_text_chunk: OnTextChunk | None = None,
        on_tool_activity: OnToolActivity | None = None,
    ) -> AgentResponse:
        """Run the prompt to its end. Raise `AgentError` where the program fails."""
        require_library()
        from bridle.agents.acp_reins import Reins

        if session.id in self._running:
            raise SessionBusy("This agent is at work for that session already.")
        reins = Reins(session, can_use_tool, on_text_chunk, on_tool_activity)
        began = time.monotonic()
        conversation = self._running[session.id] = self._conversation(session.id)
        try:
            response = await conversation.prompt(prompt, reins)
        finally:
            self._running.pop(session.id, None)
            await self._tidy()
        spent = int((time.monotonic() - began) * 1000)
        return replace(response, duration_ms=spent)

    async def cancel(self, session_id: str) -> None:
        """Ask the agent to stop; `execute` returns when it has, or when its time is up."""
        if (conversation := self._running.get(session_id)) is not None:
            await conversation.cancel()

    async def shutdown(self) -> None:
        """End every program."""
        found = list(self._conversations.values())
        self._conversations.clear()
        await asyncio.gather(*(one.close() for one in found))

    def _conversation(self, session_id: str) -> "Conversation":
        """The one of that session, as it was left; or one that is still to be opened."""
        from bridle.agents.acp_conversation import Conversation, settings_of

        found = self._conversations.pop(session_id, None)
        if found is None:
            given = (self._env, self._inherit, self._auth, self._seconds)
            found = Conversation(settings_of(self._argv, *given))
        self._conversations[session_id] = found  # the one that was used last is dropped last
        return found

    async def _tidy(self) -> None:
        """Of programs that wait only some are kept, but for those that more would be lost with."""
        idle = [name for name in self._conversations if name not in self._running]
        alive = [name for name in idle if self._conversations[name].is_alive]
        dead = [name for name in idle if name not in alive]
        over = alive[: max(len(alive) - self._keep, 0)]
        for name in (*dead, *(one for one in over if self._conversations[one].can_be_left)):
            await self._conversations.pop(name).close()


def require_library() -> None:
    """Raise `MissingExtra` where the protocol's library is not installed."""
    from importlib.util import find_spec

    if find_spec("acp") is None:
        raise MissingExtra(
            "Agents that speak ACP need the library `agent-client-protocol`, and it is not there.",
            hint=install_hint("acp"),
        )


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(one) for one in command]
    except ValueError as error:
        raise ConfigError(f"`{command}` is no command: {error}.", error, hint=_EXAMPLE) from error
    if not words or not words[0].strip():
        raise ConfigError("There is no command for the agent to be started with.", hint=_EXAMPLE)
    return tuple(words)


_EXAMPLE = 'Write the program and its words, such as `acp:"gemini --acp"`.'
