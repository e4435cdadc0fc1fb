"""A line, judged over an imagined ground and decided without rules: what would happen to it."""

from imagined import ROOT, Imagined

from bridle.command_analysis.judge import judge
from bridle.messages import ToolCall
from bridle.policy import Facts, Rule, ToolPolicy, decide

GROUND = Imagined()
SHELL = ToolPolicy(runs="command", risk="high")


def understood(line, ground=GROUND, cwd=ROOT):
    """What the line would do."""
    return judge(line, cwd, ground)


def decided(line, *rules, mode="ask", ground=GROUND):
    """The decision about it, with rules written as `deny: shell(curl *)`."""
    found = judge(line, ground.root, ground)
    facts = Facts(SHELL, line, found.floor, found.acts, found.guard, found.opaque)
    return decide(ToolCall("c1", "shell", {"command": line}), facts, [*map(rule, rules)], mode)


def verdict(line, *rules, mode="ask", ground=GROUND):
    """allow, ask or deny; `builds` where one yes would cover the class."""
    decision = decided(line, *rules, mode=mode, ground=ground)
    return decision.covers or decision.verdict


def rule(text):
    """A rule from its line."""
    head, _, rest = text.partition(": ")
    tool, _, pattern = rest.partition("(")
    return Rule(head, tool, pattern.removesuffix(")") or "*")
