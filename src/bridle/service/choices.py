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
    """What the server was started with. `free`: the caller is the user, on a socket of their own.

    `agents` and `vendors` (of models) are those that can be chosen; `model` is the server's own,
    whatever it is. `mode` is the widest that needs no admin. `face` is what sessions are said to be
    carried by: what was left behind is taken up by who has the same one.
    """

    free: bool = True
    agents: tuple[str, ...] = (LOOP,)
    vendors: frozenset[str] = frozenset()
    model: str = ""
    mode: Mode = "edits"
    face: str = "server"

    def check_agent(self, agent: str) -> None:
        """Raise `ForbiddenChoice` for one that the server was not started with."""
        if not (self.free or not agent or agent.strip() in self.agents):
            raise ForbiddenChoice(
                f"the agent {agent[:100]!r} is none that this server was started with",
                hint=f"It is {', '.join(self.agents)}; others are for who starts the server "
                "(--agent, --offer-agent).",
            )

    def check_resumed(self, agent: str) -> None:
        """Raise `ForbiddenChoice` for one that a log names, and that this server may not start."""
        self.check_agent(agent)
        if is_file_name(agent) and agent not in self.agents:
            raise ForbiddenChoice(
                f"this session last used the agent {agent[:200]!r}; bridle imports a file of code "
                "only if a person names it",
                hint="Name it when you resume the session (--agent) or start the server.",
            )

    def check_model(self, provider: str, model: str, agent: str = "") -> None:
        """Raise `ForbiddenChoice` for one that opens a file, or is none of ours to pay for."""
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
            f"the model {name[:100]!r} is none that this server was started for",
            hint=f"It has those of {', '.join(sorted(self.vendors))}: GET /api/models lists them.",
        )
