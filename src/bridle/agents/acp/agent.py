"""`AcpAgent`: runs turns with any program that speaks the Agent Client Protocol over its pipes.

The program is started in the workspace, one for each session, and kept between turns. What it asks
permission for goes to the gate; the files and commands that it has us read, write and run go
through our workspace and our shell. What it does without asking cannot be prevented here: it is
recorded as such. The official library (extra `acp`) is imported with the first prompt.
"""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridle.distribution import install_hint
from bridle.errors import ConfigError, MissingExtra, SessionBusy
from bridle.protocols.agent import AgentResponse, OnTextChunk, OnToolActivity

if TYPE_CHECKING:
    from bridle.agents.acp.session import AcpSession

MAX_IDLE = 4  # idle programs that are kept running
_EXAMPLE = 'Write the program and its arguments, such as `acp:"gemini --acp"`.'


class AcpAgent:
    """An agent that is a program speaking ACP, such as `AcpAgent("gemini --acp")`.

    `command` is a command line, or a list of its words. The program gets a short list of harmless
    environment variables and, if we know it, those of its own vendor; `inherit` names more of ours
    that it may have, and `env` is added as it is. `auth` chooses a way to log in. `start_seconds`
    is how long the program may take for each answer before the first prompt. `keep` is how many
    idle programs are kept running.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = (),
        auth: str = "",
        start_seconds: float = 60.0,
        keep: int = MAX_IDLE,
    ) -> None:
        self._argv = _split(command)
        self._env = dict(env or {})
        self._inherit = tuple(inherit)
        self._auth = auth
        self._start_seconds = start_seconds
        self._keep = keep
        self._sessions: dict[str, AcpSession] = {}  # least recently used first
        self._running: dict[str, AcpSession] = {}
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
        """Run the prompt to its end. Raise `AgentError` if the program fails."""
        require_library()
        from bridle.agents.acp.client import Host

        if session.id in self._running:
            raise SessionBusy("This agent is running a turn of that session already.")
        host = Host(session, can_use_tool, on_text_chunk, on_tool_activity)
        started = time.monotonic()
        acp_session = self._running[session.id] = self._session(session.id)
        try:
            response = await acp_session.prompt(prompt, host)
        finally:
            self._running.pop(session.id, None)
            await self._close_idle()
        return replace(response, duration_ms=int((time.monotonic() - started) * 1000))

    async def cancel(self, session_id: str) -> None:
        """Ask the agent to stop. `execute` returns when it has, or when its time is up."""
        if (acp_session := self._running.get(session_id)) is not None:
            await acp_session.cancel()

    async def shutdown(self) -> None:
        """End every program."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(acp_session.close() for acp_session in sessions))

    def _session(self, session_id: str) -> "AcpSession":
        """Return the session as it was left, or a new one whose program is not started yet."""
        from bridle.agents.acp.program import environment
        from bridle.agents.acp.session import AcpSession, Settings

        acp_session = self._sessions.pop(session_id, None)
        if acp_session is None:
            acp_session = AcpSession(
                Settings(
                    argv=self._argv,
                    environment=environment(self._argv[0], self._env, self._inherit),
                    auth=self._auth,
                    seconds=self._start_seconds,
                )
            )
        self._sessions[session_id] = acp_session
        return acp_session

    async def _close_idle(self) -> None:
        """End idle programs beyond those that are kept, unless that would lose the conversation."""
        idle = [name for name in self._sessions if name not in self._running]
        alive = [name for name in idle if self._sessions[name].is_alive]
        dead = [name for name in idle if name not in alive]
        surplus = alive[: max(len(alive) - self._keep, 0)]
        for name in (*dead, *(name for name in surplus if self._sessions[name].can_be_resumed)):
            await self._sessions.pop(name).close()


def require_library() -> None:
    """Raise `MissingExtra` if the protocol's library is not installed."""
    if find_spec("acp") is None:
        raise MissingExtra(
            "Agents that speak ACP need the library `agent-client-protocol`, "
            "and it is not installed.",
            hint=install_hint("acp"),
        )


def _split(command: str | Sequence[str]) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(map(str, command))
    except ValueError as error:
        raise ConfigError(
            f"`{command}` is not a command: {error}.", error, hint=_EXAMPLE
        ) from error
    if not words or not words[0].strip():
        raise ConfigError("There is no command to start the agent with.", hint=_EXAMPLE)
    return tuple(words)
