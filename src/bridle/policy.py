"""May this call run? Pure: a call, what is known of it, rules and a mode in; a decision out.

The order: the floor, deny rules, the mode `plan`, ask rules, allow rules, the tool's own policy,
and, when nothing spoke, ask. No rule and no mode lifts the floor or a deny.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from bridle.messages import ToolCall

Mode = Literal["plan", "ask", "edits", "auto"]
Verdict = Literal["allow", "ask", "deny"]
Risk = Literal["low", "medium", "high"]

MODES: tuple[Mode, ...] = ("plan", "ask", "edits", "auto")


class ToolPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a tool says of itself.

    `read_only`: it changes nothing. `edits`: it changes files of the workspace and nothing else.
    """

    read_only: bool = False
    requires_approval: bool = False
    risk: Risk = "medium"
    edits: bool = False


class Facts(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a call besides its words. `subject` is what rules match: command or path."""

    policy: ToolPolicy = ToolPolicy()
    subject: str = ""
    floor: str = ""


class Rule(Struct, frozen=True, gc=False, omit_defaults=True):
    """`allow: shell(git status)`: a verdict, a tool's name and a pattern for its subject."""

    verdict: Verdict
    tool: str
    pattern: str = "*"

    def __str__(self) -> str:
        inside = "" if self.pattern == "*" else f"({self.pattern})"
        return f"{self.verdict}: {self.tool}{inside}"

    def matches(self, name: str, subject: str) -> bool:
        """Does the rule speak about this call?"""
        return fnmatchcase(name, self.tool) and (
            self.pattern == "*" or fnmatchcase(subject, self.pattern)
        )


class Decision(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the gate says, with the rule and a reason for a person."""

    verdict: Verdict
    reason: str = ""
    rule: str = ""


def decide(call: ToolCall, facts: Facts, rules: Iterable[Rule], mode: Mode) -> Decision:
    """Judge one call."""
    if facts.floor:
        return Decision("deny", facts.floor, "floor")
    found = [rule for rule in rules if rule.matches(call.name, facts.subject)]
    spoken = _strictest(found) if found else None
    if spoken is not None and spoken.verdict == "deny":
        return Decision("deny", "a rule forbids it", str(spoken))
    if mode == "plan" and not facts.policy.read_only:
        return Decision("deny", "plan mode only reads; nothing is changed until the plan is agreed")
    if spoken is not None:
        return _answered(Decision(spoken.verdict, "a rule says so", str(spoken)), mode)
    return _answered(_own(call, facts.policy, mode), mode)


def _strictest(rules: Iterable[Rule]) -> Rule | None:
    order = ("deny", "ask", "allow")
    return min(rules, key=lambda rule: order.index(rule.verdict), default=None)


def _own(call: ToolCall, policy: ToolPolicy, mode: Mode) -> Decision:
    """The tool's own policy, where no rule spoke."""
    if policy.requires_approval:
        return Decision("ask", f"{call.name} always asks")
    if policy.read_only:
        return Decision("allow", "it only reads")
    if policy.edits and mode in ("edits", "auto"):
        return Decision("allow", "file edits inside the workspace may run")
    if policy.edits:
        return Decision("ask", f"{call.name} changes files")
    return Decision("ask", f"{call.name} may change things")


def _answered(decision: Decision, mode: Mode) -> Decision:
    """In `auto` the person has answered every ask beforehand."""
    if decision.verdict == "ask" and mode == "auto":
        return Decision("allow", f"{decision.reason}; answered yes by --yes", decision.rule)
    return decision
