"""The narrowest rule that would allow a call, and what such a rule would have allowed. Pure."""

from collections.abc import Iterable

from bridle.engine.facts import NOBODYS
from bridle.errors import ConfigError
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Facts, Rule, read_rule

_WILD = frozenset("*?")


def proposal(call: ToolCall, facts: Facts, decision: Decision) -> str:
    """The rule in its words; empty where no rule would do, or none that covers only this."""
    if decision.lasting or decision.rule or _is_beyond_rules(facts):
        return ""
    acts = bound(call, facts)
    if len(acts) != 1:
        return ""
    (act,) = acts
    if facts.opaque and not act.subject:
        return ""  # another agent's tool: its name alone may stand for anything that it has
    if act.within or _WILD & {*act.subject, *act.names[0]}:
        return ""  # in a rule it would stand for more than itself, or for another folder
    rule = Rule("allow", act.names[0], _pattern(act))
    return str(rule) if _is_plain(rule, act) else ""


def bound(call: ToolCall, facts: Facts) -> tuple[Act, ...]:
    """The acts that need somebody's leave: those that do more than read, where there are any."""
    acts = facts.acts or (Act((call.name,), facts.subject),)
    own = [act for act in acts if not act.minor] or list(acts)
    changing = [act for act in own if act.does != "reads"] or own
    return tuple({(act.names, act.subject): act for act in changing}.values())


def _is_beyond_rules(facts: Facts) -> bool:
    """Would no rule allow it? A tool that is nobody's can be allowed by its name."""
    return bool(facts.floor or facts.guard or facts.opaque not in ("", NOBODYS))


def _pattern(act: Act) -> str:
    if not act.subject:
        return "*"
    if act.is_path and "/" not in act.subject:
        return f"./{act.subject}"  # without a slash it would be for the name, in any folder
    return act.subject


def _is_plain(rule: Rule, act: Act) -> bool:
    """Does it say the same when it is read again, and is it about that act?"""
    try:
        return read_rule(str(rule)) == rule and rule.speaks_of(act)
    except ConfigError:
        return False


def preview(rule: Rule, past: Iterable[tuple[ToolCall, Facts]]) -> tuple[ToolCall, ...]:
    """The calls that this rule covers: an allow all that they would do, another one any of it."""
    return tuple(call for call, facts in past if _covers(rule, call, facts))


def _covers(rule: Rule, call: ToolCall, facts: Facts) -> bool:
    if rule.verdict != "allow":
        acts = facts.acts or (Act((call.name,), facts.subject),)
        return any(rule.speaks_of(act) for act in acts)
    if _is_beyond_rules(facts) or facts.policy.asks:
        return False
    return all(rule.speaks_of(act) for act in bound(call, facts))
