"""What this process has to work with, as a house tells it: tools, MCP servers, rules, the machine.

Reads what is there; what was found is put into words elsewhere.
"""

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from bridle.cli.user_input import user_name
from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.errors import SessionError, SessionLocked
from bridle.presentation.amounts import budget_lines
from bridle.protocols.session import Conversation
from bridle.service.inventory import rules_of
from bridle.tui.house import Named, is_same

if TYPE_CHECKING:
    from bridle.protocols.session_values import Choices


def to_named(choices: "Choices", chosen: str = "") -> tuple[Named, ...]:
    """Choices as a house tells them; `chosen` is one of them, and first where it was not known."""
    found = tuple(
        Named(
            name=one.name,
            about=one.label,
            chosen=is_same(one.name, chosen) if chosen else one.default,
            why_not=one.why_not,
        )
        for one in choices.choices
    )
    if chosen and not any(one.chosen for one in found):
        return (Named(name=chosen, chosen=True), *found)
    return found


def rule_names(engine: Engine, session: Conversation) -> tuple[Named, ...]:
    """The mode, the grants of a session, and the rules that hold."""
    grants = session.grants() if isinstance(session, Session) else ()
    return to_named(rules_of(engine.parts.rules, session.mode, grants))


def budget_of(session: Conversation, usual: Limits) -> tuple[tuple[str, str, str], ...]:
    """Limits as name, used, most."""
    limits = session.limits if isinstance(session, Session) else usual
    return budget_lines(asdict(limits), session.metrics)


async def narrow(session: Conversation, money: float) -> None:
    """A lower limit for the session's money, from the next turn on."""
    if not 0 < money < 1e9:
        raise SessionError(
            "that is not an amount of money", hint="Enter an amount in dollars, for example 2.50."
        )
    if isinstance(session, Session):
        await session.lower_limits(replace(session.limits, max_session_cost=money), by=user_name())
        return
    from bridle.client import RemoteSession  # it takes long to load

    if isinstance(session, RemoteSession):
        await session.set_budget(max_session_cost=money)
    else:
        raise SessionLocked(
            f"session {session.id} is in use by another process, which keeps its limits",
            hint="Set it there.",
        )
