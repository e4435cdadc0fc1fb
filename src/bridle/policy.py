"""May this call run? Pure: a call, what is known of it, rules and a mode in; a decision out.

A call is judged by what it would do, its *acts*: a shell line has one for each command in it and
for each file it touches, a file tool one for each path. The strictest verdict on any act decides.

The order: the floor, deny rules, the mode `plan`, ask rules, what only a person may allow (a
guard), allow rules, the tool's own policy, and, if nothing of these applies, ask. No rule and no
mode lifts the floor or a deny. What was not understood (opaque) is never allowed by a rule; in
`auto` it runs only inside a sandbox.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Literal
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from bridle.errors import ConfigError
from bridle.messages import ToolCall

Mode = Literal["plan", "ask", "edits", "auto"]
Verdict = Literal["allow", "ask", "deny"]
Risk = Literal["low", "medium", "high"]
Does = Literal["reads", "edits", "builds", "changes"]

MODES: tuple[Mode, ...] = ("plan", "ask", "edits", "auto")
ORDER: tuple[Verdict, ...] = ("deny", "ask", "allow")
CLASSES = {"builds": "tests and builds"}  # classes of calls that one yes for the session covers


class ToolPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a tool declares about itself.

    `read_only`: it changes nothing. `edits`: it changes files of the workspace and nothing else.
    `files`: its paths are paths of the workspace, and are judged as such. `runs`: the argument that
    holds a shell command. `asks`: the call is itself a question to the person, so only a person
    answers it. `delegates`: it starts work elsewhere, where each call is judged by itself and has
    its own time limit; it has no effect of its own, may run beside others, and is not repeated.
    """

    read_only: bool = False
    requires_approval: bool = False
    risk: Risk = "medium"
    edits: bool = False
    files: bool = False
    runs: str = ""
    asks: bool = False
    delegates: bool = False


class Act(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that a call would do.

    `names` are what a rule may call it: the tool's name, and `read`, `write` or `fetch` for what it
    comes down to. `subject` is what the rule's pattern is matched against: a command as it was
    understood, a path from the root, a host. `also` are other spellings of it; they can only
    forbid. A `minor` act is part of another: rules can deny it or have it asked about, and it needs
    no allow of its own. `within` is the folder that a command runs in, if that is not the root.
    `cut`: there are more spellings than `also` holds; what forbids any of them forbids the act.
    `network`: it needs the network.
    """

    names: tuple[str, ...]
    subject: str = ""
    does: Does = "changes"
    reason: str = ""
    also: tuple[str, ...] = ()
    is_path: bool = False
    minor: bool = False
    within: str = ""
    cut: bool = False
    network: bool = False


class Search(Struct, frozen=True, gc=False):
    """A command that reads every file below some folders.

    These are the folders among `paths`, which are absolute, or `folder` if none of them is one.
    """

    folder: str
    paths: tuple[str, ...] = ()


class Facts(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a call besides its words.

    Without `acts` there is one: the tool's name and `subject`. `floor` says why it must never run,
    `guard` why only a person may allow it, `opaque` what in it was not understood. `sandboxed`:
    it would run inside an active sandbox; `sandbox` is the level of it (`none`: without one), and
    empty if the call is not a command. `searches` are its commands that read whole folders.
    `unknown_tool`: it is opaque only because nothing is known of its tool; a rule that allows the
    tool by its name settles that.
    """

    policy: ToolPolicy = ToolPolicy()
    subject: str = ""
    floor: str = ""
    acts: tuple[Act, ...] = ()
    guard: str = ""
    opaque: str = ""
    sandboxed: bool = False
    sandbox: str = ""
    searches: tuple[Search, ...] = ()
    unknown_tool: bool = False

    @property
    def lacks_network(self) -> bool:
        """Whether it needs the network, which its sandbox does not have."""
        return self.sandboxed and any(act.network for act in self.acts)


class Rule(Struct, frozen=True, gc=False, omit_defaults=True):
    """`allow: shell(git status)`: a verdict, a tool's name and a pattern for its subject.

    In a pattern for commands `*` matches anything, and ` *` at the end also nothing. In one for
    paths `*` stays within a folder, `**` does not, and a pattern without `/` matches the name.
    `origin` is where the rule was written, `reason` why, for a person. With `where`, a real path,
    the rule is only for the workspace with that root; the caller of `decide` leaves out the others.
    It then only allows commands that run in the root itself.
    """

    verdict: Verdict
    tool: str
    pattern: str = "*"
    origin: str = ""
    reason: str = ""
    where: str = ""

    def __str__(self) -> str:
        inside = "" if self.pattern == "*" else f"({self.pattern})"
        return f"{self.verdict}: {self.tool}{inside}"

    def applies_to(self, act: Act) -> bool:
        """Whether this rule is about that act. One that forbids applies to other spellings, too."""
        if self.tool not in act.names and not self._matches_tool(act):
            return False
        if self.where and act.within and self.verdict == "allow":
            return False
        if self.pattern == "*":
            return True
        if self.verdict == "allow":
            match = _compile(self.pattern, act.is_path, "exact").fullmatch
            return match(act.subject) is not None
        match = _compile(self.pattern, act.is_path, "ignore").fullmatch
        spellings = (act.subject, *act.also)
        return act.cut or any(match(_fold_case(text)) is not None for text in spellings)

    def _matches_tool(self, act: Act) -> bool:
        """Whether the tool of the rule is a pattern that matches one of the act's names."""
        if "*" not in self.tool and "?" not in self.tool:
            return False
        match = _compile(self.tool, False, "exact").fullmatch
        return any(match(name) is not None for name in act.names)


def parse_rule(text: str, origin: str = "") -> Rule:
    """Parse a rule such as `allow: shell(git status)`. Raise `ConfigError` with its origin."""
    fields = _RULE.fullmatch(text.strip())
    place = f"{origin}: " if origin else ""
    if fields is None or len(text) > _LONGEST or not text.strip().isprintable():
        quote = text.strip() if text.isprintable() and len(text) < 100 else f"{text[:60]!r} …"
        raise ConfigError(f"{place}`{quote}` is not a rule", hint=_EXAMPLE)
    verdict, tool, pattern = fields.groups("*")
    if verdict not in ORDER:
        raise ConfigError(f"{place}a rule cannot say `{verdict}`", hint=_EXAMPLE)
    if not pattern.strip():
        hint = f"Write `{verdict}: {tool}` for everything that {tool} does."
        raise ConfigError(f"{place}there is nothing between the parentheses", hint=hint)
    return Rule(verdict, tool, pattern.strip(), origin)


_RULE = re.compile(r"(\w+)\s*:\s*([\w.*?-]+)\s*(?:\((.*)\))?", re.DOTALL)
_LONGEST = 2000  # characters of a rule
_EXAMPLE = (
    "A rule says allow, ask or deny, then a tool, then what it is about: "
    "`allow: shell(git status)`, `ask: write(**/*.sql)`, `deny: web_fetch`."
)


class Decision(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the gate says, with the rule and a reason for a person.

    `covers` is a class of calls (`builds`) that an approval for the session covers. `word` is what
    the person added. `once_only`: no mode and no grant may answer the ask. `network`: the command
    gets the network in its sandbox if it runs, because a person or their rule allowed it.
    `person`: a person was asked and allowed it.
    """

    verdict: Verdict
    reason: str = ""
    rule: str = ""
    covers: str = ""
    word: str = ""
    once_only: bool = False
    network: bool = False
    person: bool = False


def decide(call: ToolCall, facts: Facts, rules: Sequence[Rule], mode: Mode) -> Decision:
    """Judge one call."""
    if facts.floor:
        return Decision("deny", facts.floor, "floor")
    if not rules and _is_harmless(facts):
        return _READS
    acts = facts.acts or (_single_act(call, facts),)
    act_rules = [_rule_for(act, rules) for act in acts] if rules else []
    rule = _strictest(act_rules)
    if rule is not None and rule.verdict == "deny":
        return Decision("deny", _reason_of(rule, "a rule forbids it"), str(rule))
    if mode == "plan" and not _only_reads(facts, acts):
        return Decision("deny", "plan mode only reads; nothing is changed until the plan is agreed")
    if rule is not None and rule.verdict == "ask":
        once_only = bool(facts.guard) or facts.policy.asks
        reason = _reason_of(rule, "a rule says so")
        decision = Decision("ask", reason, str(rule), once_only=once_only)
    else:
        decision = _decide_otherwise(call, facts, acts, act_rules, mode)
    if decision.verdict == "ask" and mode == "auto":
        return _decide_in_auto(decision, facts)
    if facts.lacks_network and (decision.verdict == "ask" or _network_rules(acts, act_rules)):
        return replace(decision, network=True)
    return decision


def _is_harmless(facts: Facts) -> bool:
    """Whether the tool only reads and nothing else is known: most calls of most sessions."""
    policy = facts.policy
    if not policy.read_only or policy.asks or policy.requires_approval:
        return False
    return not (facts.acts or facts.guard or facts.opaque)


def _single_act(call: ToolCall, facts: Facts) -> Act:
    """The only act of a call about which nothing more is known."""
    policy = facts.policy
    does: Does = "reads" if policy.read_only else "edits" if policy.edits else "changes"
    return Act((call.name,), facts.subject, does)


def is_allowed_by_pattern(act: Act, rules: Sequence[Rule]) -> bool:
    """Whether a rule allows this act by a pattern that does not match everything."""
    rule = _rule_for(act, rules)
    return rule is not None and rule.verdict == "allow" and bool(rule.pattern.strip("*/"))


def may_match(name: str, patterns: Sequence[str]) -> bool:
    """May one of these search patterns match the file's name? Programs differ on brackets."""
    if not patterns or any(sign in pattern for pattern in patterns for sign in "[]{}\\"):
        return True
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _rule_for(act: Act, rules: Sequence[Rule]) -> Rule | None:
    """The strictest rule about an act."""
    return _strictest([rule for rule in rules if rule.applies_to(act)])


def _strictest(rules: Sequence[Rule | None]) -> Rule | None:
    given = [rule for rule in rules if rule is not None]
    return min(given, key=lambda rule: ORDER.index(rule.verdict)) if given else None


def _only_reads(facts: Facts, acts: tuple[Act, ...]) -> bool:
    if facts.policy.asks:
        return True
    return not facts.opaque and all(act.does == "reads" for act in acts)


def _decide_otherwise(
    call: ToolCall,
    facts: Facts,
    acts: tuple[Act, ...],
    act_rules: list[Rule | None],
    mode: Mode,
) -> Decision:
    """Decide without a deny or ask rule: by a guard, allow rules, or the tool's own policy."""
    if facts.policy.asks:
        return Decision("ask", "it is a question to you", once_only=True)
    if facts.guard:
        return Decision("ask", facts.guard, once_only=True)
    if facts.opaque:
        return Decision("ask", facts.opaque)
    major = [act for act in acts if not act.minor]  # a minor act that is part of nothing counts
    open_acts = major or list(acts)
    allowed = {act: rule for act, rule in zip(acts, act_rules, strict=False) if rule is not None}
    open_acts = [act for act in open_acts if act not in allowed] if allowed else open_acts
    if facts.policy.requires_approval and open_acts:
        return Decision("ask", f"{call.name} always asks")
    decision = _apply_tool_policy(call, open_acts, mode)
    return _allow_by_rule(allowed) if allowed and decision.verdict == "allow" else decision


def _allow_by_rule(rules: dict[Act, Rule]) -> Decision:
    """Name the rule that allows the act with the most effect."""
    rule = rules[max(rules, key=lambda act: _EFFECTS.index(act.does))]
    return Decision("allow", _reason_of(rule, "a rule says so"), str(rule))


_EFFECTS: tuple[Does, ...] = ("reads", "edits", "builds", "changes")


def _network_rules(acts: Sequence[Act], act_rules: Sequence[Rule | None]) -> bool:
    """Whether rules name each command that needs the network, and nothing else is run.

    A line has one network for all of its commands, so a rule for `pytest` beside one for `curl` is
    not enough: the tests would have the network, too.
    """
    rules = dict(zip(acts, act_rules, strict=False))
    for act in acts:
        rule = rules.get(act)
        named = rule is not None and rule.verdict == "allow" and bool(rule.pattern.strip("*? "))
        if not act.minor and act.does not in ("reads", "edits") and not (named and act.network):
            return False
    return any(act.network and not act.minor for act in acts)


def _reason_of(rule: Rule, text: str) -> str:
    return f"{text}: {rule.reason}" if rule.reason else text


def _apply_tool_policy(call: ToolCall, acts: list[Act], mode: Mode) -> Decision:
    """Decide about the acts to which no rule applies."""
    limited = [act for act in acts if act.does not in _FREE[mode]]
    if not limited:
        edits = any(act.does == "edits" for act in acts)
        return _EDITS if edits else _READS
    reason = _join_reasons(limited)
    if not reason:
        only_edits = all(act.does == "edits" for act in limited)
        reason = f"{call.name} {'changes files' if only_edits else 'may change things'}"
    if all(act.does == "builds" for act in limited):
        return Decision("ask", reason, covers="builds")
    return Decision("ask", reason)


def _join_reasons(acts: list[Act]) -> str:
    """Why these ask, the worst first; each reason once, and not more than a person reads."""
    worst = sorted(acts, key=lambda act: -_EFFECTS.index(act.does))
    reasons = list(dict.fromkeys(act.reason for act in worst if act.reason))
    more = f" and {len(reasons) - _MAX_REASONS} more" if len(reasons) > _MAX_REASONS else ""
    return "; ".join(reasons[:_MAX_REASONS]) + more


_MAX_REASONS = 3
_FREE: dict[Mode, frozenset[Does]] = {
    "plan": frozenset({"reads"}),
    "ask": frozenset({"reads"}),
    "edits": frozenset({"reads", "edits"}),
    "auto": frozenset({"reads", "edits"}),
}
_READS = Decision("allow", "it only reads")
_EDITS = Decision("allow", "file edits inside the workspace may run")


def _decide_in_auto(asked: Decision, facts: Facts) -> Decision:
    """Decide in `auto`: every ask is allowed, except for what only a person may allow."""
    if facts.policy.asks:
        return asked
    if asked.once_only:
        return Decision("deny", f"{asked.reason}; only a person may allow that", asked.rule)
    if facts.opaque and not facts.sandboxed:
        reason = f"{facts.opaque}; the mode auto runs that only in a sandbox, and none is active"
        return Decision("deny", reason, asked.rule)
    reason = f"{asked.reason}; the mode auto runs it without asking"
    if facts.lacks_network:
        reason += ", but only a person's approval gives it the network"
    return Decision("allow", reason, asked.rule)


def _fold_case(text: str) -> str:
    return text.casefold() if text.isascii() else normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)
def _compile(pattern: str, is_path: bool, case: Literal["exact", "ignore"]) -> re.Pattern[str]:
    """Compile a rule's pattern; to ignore case, for texts after `_fold_case`."""
    if case == "ignore":
        pattern = _fold_case(pattern)
    if is_path:
        return re.compile(_path_regex(pattern), re.DOTALL)
    is_optional = pattern.endswith(" *")
    glob = (pattern[:-2] if is_optional else pattern).replace("[", "[[]")  # no character classes
    regex = translate(glob)[:-2]  # without its end, which newer Pythons spell differently
    return re.compile(regex + ("(?: .*)?" if is_optional else ""), re.DOTALL)


def _path_regex(pattern: str) -> str:
    """Translate component by component. Atomic groups keep the expression quick on every path."""
    whole = pattern if "/" in pattern else f"**/{pattern}"
    within = re.sub(r"(?<=[^/*])\*\*+(?=[^/*])", "*", whole)  # `a**b` may be one name, or several
    variants = (_components_regex(_separate_stars(text)) for text in (within, whole))
    return "|".join(dict.fromkeys(variants))


def _separate_stars(pattern: str) -> str:
    """Make `**` a component of its own: `src/**.py` is `src/**/*.py`."""
    pattern = re.sub(r"\*\*(?=[^/])", "**/*", pattern.removeprefix("./"))
    return re.sub(r"(?<=[^/])\*\*", "*/**", pattern)


def _components_regex(pattern: str) -> str:
    names: list[list[str]] = [[]]  # the names between one `**` and the next
    for number, name in enumerate(pattern.split("/")):
        if name == "**":
            names.append([])
        elif name or number == 0:
            names[-1].append(_component_regex(name))
    start, *rest = ["/".join(part) for part in names]
    if not rest:
        return start
    below = "" if rest[-1] else "(?:/.*)?"  # `db/**` is `db` as well
    parts = [part for part in rest if part]
    if not parts:
        return f"{start}{below}" if names[0] else ".*"
    begin = f"{start}/" if names[0] else ""
    middle = "".join(f"(?>(?:[^/]*/)*?{part}/)" for part in parts[:-1])
    return f"{begin}{middle}(?:[^/]*/)*{parts[-1]}{below}"


def _component_regex(name: str) -> str:
    """Translate one name of a path, in which `*` and `?` stand for anything but `/`."""
    first, *rest = (re.escape(part).replace(r"\?", "[^/]") for part in re.split(r"\*+", name))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"
