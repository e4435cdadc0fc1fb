"""What callers of a service may choose: agents, models and modes.

The person who starts a server decides what can be chosen. Callers cannot name a program to start, a
file to open or a host to connect to.
"""

import re

from msgspec import Struct

from bridle.policy import Mode
from bridle.protocols.session_errors import ForbiddenChoice
from bridle.runtime.agents import CLAUDE, LOOP, is_file_name
from bridle.runtime.providers import split

_PLAIN = re.compile(r"[A-Za-z0-9][\w.\-\[\]]{0,99}", re.ASCII)  # a model as Claude Code names it


class AllowedChoices(Struct, frozen=True):
    """The choices of a service. `free`: the caller is the user and may choose anything.

    `agents` and `vendors` (of models) can be chosen, and `model`, which is the service's own.
    `mode` is the widest mode that does not need the role admin. `face` is the interface that is
    recorded for sessions: what a killed service left open is resumed by one with the same name.
    """

    free: bool = True
    agents: tuple[str, ...] = (LOOP,)
    vendors: frozenset[str] = frozenset()
    model: str = ""
    mode: Mode = "edits"
    face: str = "server"

    def check_agent(self, agent: str) -> None:
        """Raise `ForbiddenChoice` for an agent that was not allowed at the start."""
        if not (self.free or not agent or agent.strip() in self.agents):
            raise ForbiddenChoice(
                f"this server does not allow the agent {agent[:100]!r}",
                hint=f"It allows {', '.join(self.agents)}. Others have to be allowed when the "
                "server is started (--agent, --offer-agent).",
            )

    def check_resumed(self, agent: str) -> None:
        """Raise `ForbiddenChoice` for an agent in a log that this service may not start."""
        self.check_agent(agent)
        if is_file_name(agent) and agent not in self.agents:
            raise ForbiddenChoice(
                f"this session last used the agent {agent[:200]!r}; bridle imports a file of code "
                "only if a person names it",
                hint="Name it when you resume the session (--agent) or start the server.",
            )

    def check_model(self, provider: str, model: str, agent: str = "") -> None:
        """Raise `ForbiddenChoice` for a model that opens a file, or of another vendor."""
        if self.free or not (provider or model):
            return
        name = f"{provider}/{model}" if provider and model else provider or model
        name = model if provider and model.startswith(f"{provider}/") else name
        if name == self.model or split(name)[0] in self.vendors:
            return
        carrier = agent or self.agents[0]
        if carrier == CLAUDE and not provider and _PLAIN.fullmatch(model):
            return
        raise ForbiddenChoice(
            f"this server does not allow the model {name[:100]!r}",
            hint=f"It allows models of {', '.join(sorted(self.vendors))}. "
            "GET /api/models lists them.",
        )
