"""Grants: what an approval covers beyond its one call, and for how long. Pure.

An approval for once grants nothing. An approval for the session grants the same tool with the same
arguments, in the same folder and the same sandbox, as long as the call would do the same. For a
test or a build (`builds`) it grants all tests and builds in that folder. An approval as a rule
grants what the rule says, and this module proposes that rule. Every grant ends.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from bridle.errors import ConfigError
from bridle.events import ApprovalAnswered, ApprovalAsked, Grant
from bridle.messages import ToolCall
from bridle.policy import CLASSES, Act, Decision, Facts, Rule, parse_rule
from bridle.workspace.fs import is_below

_LONGEST = 200  # characters in the description of a grant
_WILDCARDS = frozenset("*?")


def call_grant_id(call: ToolCall, cwd: str, sandbox: str = "", *effects: str) -> str:
    """Return the id of the grant for the same call in the same folder, with the same effects."""
    return fingerprint(ToolCall("", call.name, call.arguments), cwd, sandbox, *effects)


def class_grant_id(covers: str, cwd: str, sandbox: str = "") -> str:
    """Return the id of the grant for every call of a class, such as `builds`, in the folder."""
    return fingerprint(ToolCall("", "", {"covers": covers}), cwd, sandbox)


def sandbox_label(sandbox: str, *, network: bool) -> str:
    """Name the sandbox that a call would run in. With the network it is a different one."""
    return f"{sandbox} with the network" if network else sandbox


def grants_of_answer(
    request: ApprovalAsked, answer: ApprovalAnswered, since: str
) -> Iterator[Grant]:
    """Yield the grant that an answer gives, if it allows more than the one call."""
    if request.once_only or answer.allowed is not True:
        return
    details = {"since": since, "until": answer.until, "by": answer.by, "cwd": request.cwd}
    sandbox = sandbox_label(request.sandbox, network=request.network)
    # In logs of earlier versions an approval for once has an end, too, and grants the class.
    if request.covers and answer.until and answer.scope in ("once", "session"):
        description = f"{CLASSES.get(request.covers, request.covers)} in {request.cwd}"
        yield Grant(class_grant_id(request.covers, request.cwd, sandbox), description, **details)
    elif answer.scope in ("session", "rule"):
        effects = (*request.commands, *request.paths)
        grant_id = call_grant_id(request.call, request.cwd, sandbox, *effects)
        description = answer.rule or _description(request)
        yield Grant(grant_id, description, **details, rule=answer.rule)


def similarity_key(request: ApprovalAsked) -> str:
    """Return a key that similar requests share: the tool, and everything the call is about."""
    text = f"{request.call.name} {_subject(request)}".rstrip()
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} {fingerprint(ToolCall('', '', {}), text)}"


def _subject(request: ApprovalAsked) -> str:
    if effects := (*request.commands, *request.paths):
        return "; ".join(effects)
    arguments = request.call.arguments
    return str(arguments.get("command") or arguments.get("path") or "")


def _description(request: ApprovalAsked) -> str:
    """Describe what was allowed, for a list of grants."""
    subject = "; ".join(request.commands) or ", ".join(request.paths) or _subject(request)
    if not subject and request.call.arguments:
        subject = str(request.call.arguments)
    return f"{request.call.name}({subject[:_LONGEST]})" if subject else request.call.name


def has_ended(grant: Grant, seconds: float) -> bool:
    """Return whether the grant is over. One without an end lasts `seconds` from its start."""
    return time.time() >= _end(grant, seconds)


def with_end(grant: Grant, seconds: float) -> Grant:
    """Return the grant with its end filled in, if none was recorded."""
    return grant if grant.until else replace(grant, until=timestamp(_end(grant, seconds)))


def _end(grant: Grant, seconds: float) -> float:
    if (until := parse_timestamp(grant.until)) is not None:
        return until
    return (parse_timestamp(grant.since) or 0.0) + seconds


def granted_rules(grants: Mapping[str, Grant], root: str, seconds: float) -> tuple[Rule, ...]:
    """Return the rules among the grants that hold now in this workspace."""
    rules = (
        _parse_rule(grant, root)
        for grant in grants.values()
        if grant.rule and is_below(grant.cwd, root) and not has_ended(grant, seconds)
    )
    return tuple(rule for rule in rules if rule is not None and rule.verdict == "allow")


def _parse_rule(grant: Grant, root: str) -> Rule | None:
    try:
        return replace(parse_rule(grant.rule, "this session"), where=root)
    except ConfigError:
        return None  # a log from elsewhere may hold anything; this grants nothing


def parse_timestamp(text: str) -> float | None:
    """Return a recorded time in seconds since 1970, or None if it is not a time."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def timestamp(seconds: float) -> str:
    """Format seconds since 1970 for the log. Return "" for a time that no calendar has."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(seconds)))
    except (OverflowError, ValueError):
        return ""


def propose_rule(call: ToolCall, facts: Facts, decision: Decision) -> str:
    """Return the narrowest rule that would allow the call, or "" if no rule covers only this."""
    if decision.once_only or decision.rule or _is_beyond_rules(facts):
        return ""
    acts = acts_to_allow(call, facts)
    if len(acts) != 1:
        return ""
    (act,) = acts
    if facts.opaque and not act.subject:
        return ""  # a foreign agent's tool: its name says nothing about what it does
    if act.within or _WILDCARDS & {*act.subject, *act.names[0]}:
        return ""  # the rule would cover more than this act, or another folder
    rule = Rule("allow", act.names[0], _pattern(act))
    return str(rule) if _means_only(rule, act) else ""


def acts_to_allow(call: ToolCall, facts: Facts) -> tuple[Act, ...]:
    """Return the acts that need permission: those that do more than read, if there are any."""
    acts = facts.acts or (Act((call.name,), facts.subject),)
    own = [act for act in acts if not act.minor] or list(acts)
    changing = [act for act in own if act.does != "reads"] or own
    return tuple({(act.names, act.subject): act for act in changing}.values())


def _is_beyond_rules(facts: Facts) -> bool:
    """Return whether no rule could allow it. An unknown tool can be allowed by its name."""
    return bool(facts.floor or facts.guard or (facts.opaque and not facts.unknown_tool))


def _pattern(act: Act) -> str:
    if not act.subject:
        return "*"
    if act.is_path and "/" not in act.subject:
        return f"./{act.subject}"  # without a slash it would match that name in any folder
    return act.subject


def _means_only(rule: Rule, act: Act) -> bool:
    """Return whether the rule reads back as itself and is about that act."""
    try:
        return parse_rule(str(rule)) == rule and rule.applies_to(act)
    except ConfigError:
        return False


def covered_calls(rule: Rule, past: Iterable[tuple[ToolCall, Facts]]) -> tuple[ToolCall, ...]:
    """Return the calls that this rule would have covered.

    A rule that allows covers a call if it covers all of it; any other rule if it covers any of it.
    """
    return tuple(call for call, facts in past if _covers(rule, call, facts))


def _covers(rule: Rule, call: ToolCall, facts: Facts) -> bool:
    if rule.verdict != "allow":
        acts = facts.acts or (Act((call.name,), facts.subject),)
        return any(rule.applies_to(act) for act in acts)
    if _is_beyond_rules(facts) or facts.policy.asks:
        return False
    return all(rule.applies_to(act) for act in acts_to_allow(call, facts))


# Hash a tool call together with whatever an approval, a grant or a record of it is bound to.

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def fingerprint(call: ToolCall, *bound: str) -> str:
    """Return the hash of exactly this call and of the texts that it is bound to."""
    content = [call.id, call.name, call.arguments, bound]
    try:
        data = _encode(content)
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form; its repr is still unambiguous
        data = repr(content).encode("utf-8", "backslashreplace")
    return blake2b(data, digest_size=16).hexdigest()
