"""Whether a caller may have what they ask for: an agent, a model, a mode, a wide approval."""

from bridle.events import ApprovalAsked
from bridle.policy import MODES, Mode
from bridle.protocols.session_values import ApprovalAnswer, NewSession, ResumeOptions, SessionUpdate
from bridle.server.caller import Caller, may
from bridle.server.problems import refused
from bridle.service.choices import AllowedChoices

PLAN = "exit_plan_mode"


def check_choice(
    offer: AllowedChoices, caller: Caller, wanted: NewSession | ResumeOptions | SessionUpdate
) -> None:
    """Raise what stands in the way of having that. Every door to these goes through here."""
    agent = getattr(wanted, "agent", "") or ""
    offer.check_agent(agent)
    offer.check_model(wanted.provider or "", wanted.model or "", agent)
    check_mode(offer, caller, getattr(wanted, "mode", None))


def check_mode(offer: AllowedChoices, caller: Caller, mode: Mode | None) -> None:
    """Raise `Refused` for a wider mode than the server's own, unless an admin wants it."""
    if mode is None or may(caller, "admin") or MODES.index(mode) <= MODES.index(offer.mode):
        return
    raise refused(
        "forbidden_role",
        f"The mode {mode} is wider than this server's own, and needs the role admin; "
        f"{caller.name} has {caller.role}.",
        f"Choose {offer.mode} or a narrower one, or ask whoever runs the server.",
    )


def is_weighty(offer: AllowedChoices, answer: ApprovalAnswer) -> bool:
    """Could it be more than a yes to one call, so that the question has to be looked at?"""
    return answer.allowed and (answer.scope == "rule" or offer.mode == "plan")


def check_answer(
    offer: AllowedChoices, caller: Caller, answer: ApprovalAnswer, asked: ApprovalAsked | None
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
