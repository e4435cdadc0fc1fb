"""A line, judged over an imagined machine and decided without rules: what would happen to it."""

from imagined import ROOT, Imagined

from bridle.command_analysis.analysis import analyze
from bridle.messages import ToolCall
from bridle.policy import Facts, Rule, ToolPolicy, decide

MACHINE = Imagined()
SHELL = ToolPolicy(runs="command", risk="high")


def understood(line, machine=MACHINE, cwd=ROOT):
    """What the line would do."""
    return analyze(line, cwd, machine)


def decided(line, *rules, mode="ask", machine=MACHINE):
    """The decision about it, with rules written as `deny: shell(curl *)`."""
    found = analyze(line, machine.root, machine)
    facts = Facts(SHELL, line, found.floor, found.acts, found.guard, found.opaque)
    return decide(ToolCall("c1", "shell", {"command": line}), facts, [*map(rule, rules)], mode)


def verdict(line, *rules, mode="ask", machine=MACHINE):
    """allow, ask or deny; `builds` where one yes would cover the class."""
    decision = decided(line, *rules, mode=mode, machine=machine)
    return decision.covers or decision.verdict


def rule(text):
    """A rule from its line."""
    head, _, rest = text.partition(": ")
    tool, _, pattern = rest.partition("(")
    return Rule(head, tool, pattern.removesuffix(")") or "*")
