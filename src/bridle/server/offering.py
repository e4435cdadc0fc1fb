"""What may be chosen over HTTP, and by whom: agents, models, modes. The one place that decides it.

Whoever has a token chooses among what the person who started the server has chosen; nobody names a
program to start, a file to open or a host to talk to. Knows names and roles; starts nothing.
"""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from bridle.policy import MODES, Mode
from bridle.runtime.agents import CLAUDE, LOOP, is_file_name
from bridle.runtime.providers import split
from bridle.server.caller import Caller, may
from bridle.server.problems import refused
from bridle.server.refusals import ForbiddenChoice

if TYPE_CHECKING:
    from bridle.events import ApprovalAsked
    from bridle.server.views import ApprovalAnswer, Change, NewSession, Resume

PLAN = "exit_plan_mode"

_PLAIN = re.compile(r"[A-Za-z0-9][\w.\-\[\]]{0,99}", re.ASCII)  # a model as Claude Code names it


class Offer(Struct, frozen=True):
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


def check_choice(offer: Offer, caller: Caller, wanted: "NewSession | Resume | Change") -> None:
    """Raise what stands in the way of having that. Every door to these goes through here."""
    agent = getattr(wanted, "agent", "") or ""
    offer.check_agent(agent)
    offer.check_model(wanted.provider or "", wanted.model or "", agent)
    check_mode(offer, caller, getattr(wanted, "mode", None))


def check_mode(offer: Offer, caller: Caller, mode: Mode | None) -> None:
    """Raise `Refused` for a wider mode than the server's own, unless an admin wants it."""
    if mode is None or may(caller, "admin") or MODES.index(mode) <= MODES.index(offer.mode):
        return
    raise refused(
        "forbidden_role",
        f"The mode {mode} is wider than this server's own, and needs the role admin; "
        f"{caller.name} has {caller.role}.",
        f"Choose {offer.mode} or a narrower one, or ask whoever runs the server.",
    )


def is_weighty(offer: Offer, answer: "ApprovalAnswer") -> bool:
    """Could it be more than a yes to one call, so that the question has to be looked at?"""
    return answer.allowed and (answer.scope == "rule" or offer.mode == "plan")


def check_answer(
    offer: Offer, caller: Caller, answer: "ApprovalAnswer", asked: "ApprovalAsked | None"
) -> None:
    """Raise `Refused` for a yes that reaches further than they may: a rule, a wider mode."""
    if asked is not None and asked.call.name == PLAN and answer.allowed:
        check_mode(offer, caller, "ask")  # a plan that is agreed to ends the mode plan
    if answer.scope == "rule" and answer.allowed:
        _check_rule(caller, answer.rule, asked.proposal if asked is not None else "")


def _check_rule(caller: Caller, rule: str, proposal: str) -> None:
    if rule and rule != proposal and not may(caller, "admin"):
        raise refused(
            "forbidden_role",
            "A rule other than the one that is proposed needs the role admin; "
            f"{caller.name} has {caller.role}.",
            f"Take the rule that is proposed: {proposal}" if proposal else "Allow it once.",
        )
