"""May this call run? Pure: a call, what is known of it, rules and a mode in; a decision out.

A call is judged by what it would do, its *acts*: a shell line has one for each command in it and
for each file it touches, a file tool one for each path. The strictest word about any act decides.

The order: the floor, deny rules, the mode `plan`, ask rules, what only a person may allow (a
guard), allow rules, the tool's own policy, and, when nothing spoke, ask. No rule and no mode lifts
the floor or a deny. What was not understood (opaque) is never allowed by a rule; in `auto` it runs
only inside a sandbox.
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
    """What a tool says of itself.

    `read_only`: it changes nothing. `edits`: it changes files of the workspace and nothing else.
    `files`: its paths are paths of the workspace, and are judged as such. `runs`: the argument that
    holds a shell command. `asks`: the call is itself a question to the person, so nothing but a
    person answers it. `delegates`: it begins work elsewhere, of which each call is judged by itself
    and has its own clock; it is no effect of its own, may run beside others, and is not repeated.
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
    comes down to. `subject` is what the rule's pattern is held against: a command as it was
    understood, a path from the root, a host. `also` are other spellings of it; they can only
    forbid. A `minor` act is part of another: rules can forbid it or have it asked, and it needs no
    allow of its own. `within` is the folder that a command runs in, where that is not the root.
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
    empty for what is not a command. `searches` are its commands that read whole folders.
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
        """Does it need the network, which its sandbox does not have?"""
        return self.sandboxed and any(act.network for act in self.acts)


class Rule(Struct, frozen=True, gc=False, omit_defaults=True):
    """`allow: shell(git status)`: a verdict, a tool's name and a pattern for its subject.

    In a pattern for commands `*` stands for anything, and ` *` at the end also for nothing. In one
    for paths `*` stays within a folder, `**` does not, and a pattern without `/` is for the name.
    `origin` is where the rule was written, `reason` why, for a person. With `where` it is for the
    workspace at that root alone, a real path; whoever reads rules passes the others over. What it
    allows there are commands that run in the root itself.
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

    def speaks_of(self, act: Act) -> bool:
        """Is this rule about that act? One that forbids is also held against other spellings."""
        if self.tool not in act.names and not self._names(act):
            return False
        if self.where and act.within and self.verdict == "allow":
            return False
        if self.pattern == "*":
            return True
        if self.verdict == "allow":
            return _expression(self.pattern, act.is_path, False).fullmatch(act.subject) is not None
        fits = _expression(self.pattern, act.is_path, True).fullmatch
        return act.cut or any(fits(_flat(one)) is not None for one in (act.subject, *act.also))

    def _names(self, act: Act) -> bool:
        """Does the pattern of the tool's name fit one of the act's?"""
        if "*" not in self.tool and "?" not in self.tool:
            return False
        fits = _expression(self.tool, False, False).fullmatch
        return any(fits(name) is not None for name in act.names)


def read_rule(text: str, origin: str = "") -> Rule:
    """A rule from its words, `allow: shell(git status)`. Raise `ConfigError` with its origin."""
    found = _RULE.fullmatch(text.strip())
    place = f"{origin}: " if origin else ""
    if found is None or len(text) > _LONGEST or not text.strip().isprintable():
        said = text.strip() if text.isprintable() and len(text) < 100 else f"{text[:60]!r} …"
        raise ConfigError(f"{place}`{said}` is no rule", hint=_EXAMPLE)
    verdict, tool, pattern = found.groups("*")
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

    `covers` is a class of calls (`builds`) that a yes for the session covers. `word` is what the
    person added. `once_only`: no mode and no grant may answer the ask. `network`: the
    command gets the network in its sandbox if it runs, because a person or their rule said so.
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
    acts = facts.acts or (_only(call, facts),)
    spoken = [_spoken(act, rules) for act in acts] if rules else []
    said = _strictest(spoken)
    if said is not None and said.verdict == "deny":
        return Decision("deny", _because("a rule forbids it", said), str(said))
    if mode == "plan" and not _reads(facts, acts):
        return Decision("deny", "plan mode only reads; nothing is changed until the plan is agreed")
    if said is not None and said.verdict == "ask":
        once_only = bool(facts.guard) or facts.policy.asks
        found = Decision("ask", _because("a rule says so", said), str(said), once_only=once_only)
    else:
        found = _unforbidden(call, facts, acts, spoken, mode)
    if found.verdict == "ask" and mode == "auto":
        return _answered(found, facts)
    if facts.lacks_network and (found.verdict == "ask" or _is_ruled(acts, spoken)):
        return replace(found, network=True)
    return found


def _is_harmless(facts: Facts) -> bool:
    """A tool that only reads, of which nothing else is known: most calls of most sessions."""
    policy = facts.policy
    if not policy.read_only or policy.asks or policy.requires_approval:
        return False
    return not (facts.acts or facts.guard or facts.opaque)


def _only(call: ToolCall, facts: Facts) -> Act:
    """The one act of a call of which nothing more is known."""
    policy = facts.policy
    does: Does = "reads" if policy.read_only else "edits" if policy.edits else "changes"
    return Act((call.name,), facts.subject, does)


def is_named(act: Act, rules: Sequence[Rule]) -> bool:
    """Does a rule allow this act by a pattern that is about some things and not about all?"""
    rule = _spoken(act, rules)
    return rule is not None and rule.verdict == "allow" and bool(rule.pattern.strip("*/"))


def may_match(name: str, patterns: Sequence[str]) -> bool:
    """May one of these search patterns match the file's name? Programs differ on brackets."""
    if not patterns or any(sign in pattern for pattern in patterns for sign in "[]{}\\"):
        return True
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _spoken(act: Act, rules: Sequence[Rule]) -> Rule | None:
    """The strictest rule about an act."""
    return _strictest([rule for rule in rules if rule.speaks_of(act)])


def _strictest(rules: Sequence[Rule | None]) -> Rule | None:
    found = [rule for rule in rules if rule is not None]
    return min(found, key=lambda rule: ORDER.index(rule.verdict)) if found else None


def _reads(facts: Facts, acts: tuple[Act, ...]) -> bool:
    if facts.policy.asks:
        return True
    return not facts.opaque and all(act.does == "reads" for act in acts)


def _unforbidden(
    call: ToolCall,
    facts: Facts,
    acts: tuple[Act, ...],
    spoken: list[Rule | None],
    mode: Mode,
) -> Decision:
    """No rule forbids it or has it asked: a guard, rules that allow, the tool's own policy."""
    if facts.policy.asks:
        return Decision("ask", "it is a question to you", once_only=True)
    if facts.guard:
        return Decision("ask", facts.guard, once_only=True)
    if facts.opaque:
        return Decision("ask", facts.opaque)
    major = [act for act in acts if not act.minor]  # a minor act that is part of nothing counts
    open_acts = major or list(acts)
    ruled = {act: rule for act, rule in zip(acts, spoken, strict=False) if rule is not None}
    open_acts = [act for act in open_acts if act not in ruled] if ruled else open_acts
    if facts.policy.requires_approval and open_acts:
        return Decision("ask", f"{call.name} always asks")
    found = _own(call, open_acts, mode)
    return _by_rule(ruled) if ruled and found.verdict == "allow" else found


def _by_rule(ruled: dict[Act, Rule]) -> Decision:
    """Allowed, and by rules: the one is named that speaks of the most that is done."""
    rule = ruled[max(ruled, key=lambda act: _WEIGHT.index(act.does))]
    return Decision("allow", _because("a rule says so", rule), str(rule))


_WEIGHT: tuple[Does, ...] = ("reads", "edits", "builds", "changes")


def _is_ruled(acts: Sequence[Act], spoken: Sequence[Rule | None]) -> bool:
    """Does the person's rule name each command that needs the network, and is nothing else run?

    A line has one network for all of its commands, so a rule for `pytest` beside one for `curl` is
    not enough: the tests would have the network, too.
    """
    ruled = dict(zip(acts, spoken, strict=False))
    for act in acts:
        rule = ruled.get(act)
        named = rule is not None and rule.verdict == "allow" and bool(rule.pattern.strip("*? "))
        if not act.minor and act.does not in ("reads", "edits") and not (named and act.network):
            return False
    return any(act.network and not act.minor for act in acts)


def _because(words: str, rule: Rule) -> str:
    return f"{words}: {rule.reason}" if rule.reason else words


def _own(call: ToolCall, acts: list[Act], mode: Mode) -> Decision:
    """The tool's own policy, for the acts of which no rule spoke."""
    bound = [act for act in acts if act.does not in _FREE[mode]]
    if not bound:
        edits = any(act.does == "edits" for act in acts)
        return _EDITS if edits else _READS
    reason = _reasons(bound) or _why(call, bound)
    if all(act.does == "builds" for act in bound):
        return Decision("ask", reason, covers="builds")
    return Decision("ask", reason)


def _reasons(acts: list[Act]) -> str:
    """Why they ask, the worst first; each once, and not more than a person reads."""
    worst = sorted(acts, key=lambda act: -_WEIGHT.index(act.does))
    found = list(dict.fromkeys(act.reason for act in worst if act.reason))
    more = f" and {len(found) - _REASONS} more" if len(found) > _REASONS else ""
    return "; ".join(found[:_REASONS]) + more


_REASONS = 3
_FREE: dict[Mode, frozenset[Does]] = {
    "plan": frozenset({"reads"}),
    "ask": frozenset({"reads"}),
    "edits": frozenset({"reads", "edits"}),
    "auto": frozenset({"reads", "edits"}),
}
_READS = Decision("allow", "it only reads")
_EDITS = Decision("allow", "file edits inside the workspace may run")


def _why(call: ToolCall, acts: list[Act]) -> str:
    if all(act.does == "edits" for act in acts):
        return f"{call.name} changes files"
    return f"{call.name} may change things"


def _answered(asked: Decision, facts: Facts) -> Decision:
    """In `auto` the person has answered every ask beforehand, but for what only they can answer."""
    if facts.policy.asks:
        return asked
    if asked.once_only:
        return Decision("deny", f"{asked.reason}; only a person may allow that", asked.rule)
    if facts.opaque and not facts.sandboxed:
        reason = f"{facts.opaque}; the mode auto runs that only in a sandbox, and none is active"
        return Decision("deny", reason, asked.rule)
    return Decision("allow", f"{asked.reason}; {_unasked(facts)}", asked.rule)


def _unasked(facts: Facts) -> str:
    """How a call runs in `auto` that is asked about in the other modes."""
    if facts.lacks_network:
        return "the mode auto runs it unasked, but only a person's yes gives it the network"
    return "the mode auto runs it unasked"


def _flat(text: str) -> str:
    return text.casefold() if text.isascii() else normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)
def _expression(pattern: str, is_path: bool, loose: bool) -> re.Pattern[str]:
    """What fits the pattern; loosely: whatever the case or the unicode form, of flat text."""
    if loose:
        pattern = _flat(pattern)
    if is_path:
        return re.compile(_path_expression(pattern), re.DOTALL)
    tail = pattern.endswith(" *")
    plain = (pattern[:-2] if tail else pattern).replace("[", "[[]")  # no classes of characters
    spelled = translate(plain)[:-2]  # without its end, which newer Pythons spell differently
    return re.compile(spelled + ("(?: .*)?" if tail else ""), re.DOTALL)


def _path_expression(pattern: str) -> str:
    """Component by component. Groups that give nothing back keep it quick on every path."""
    whole = pattern if "/" in pattern else f"**/{pattern}"
    within = re.sub(r"(?<=[^/*])\*\*+(?=[^/*])", "*", whole)  # `a**b` may be one name, or several
    return "|".join(dict.fromkeys((_way(_spread(within)), _way(_spread(whole)))))


def _spread(pattern: str) -> str:
    """`**` as a component of its own: `src/**.py` is `src/**/*.py`."""
    ahead = re.sub(r"\*\*(?=[^/])", "**/*", pattern.removeprefix("./"))
    return re.sub(r"(?<=[^/])\*\*", "*/**", ahead)


def _way(pattern: str) -> str:
    stretches: list[list[str]] = [[]]  # the names between one `**` and the next
    for number, name in enumerate(pattern.split("/")):
        if name == "**":
            stretches.append([])
        elif name or number == 0:
            stretches[-1].append(_component(name))
    start, *rest = ["/".join(one) for one in stretches]
    if not rest:
        return start
    below = "" if rest[-1] else "(?:/.*)?"  # `db/**` is `db` as well
    found = [one for one in rest if one]
    if not found:
        return f"{start}{below}" if stretches[0] else ".*"
    begin = f"{start}/" if stretches[0] else ""
    return begin + "".join(map(_somewhere, found[:-1])) + f"(?:[^/]*/)*{found[-1]}{below}"


def _somewhere(stretch: str) -> str:
    return f"(?>(?:[^/]*/)*?{stretch}/)"


def _component(name: str) -> str:
    """One name of a path, in which `*` and `?` stand for anything but `/`."""
    first, *rest = (re.escape(one).replace(r"\?", "[^/]") for one in re.split(r"\*+", name))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{one})" for one in middle) + f"[^/]*{last}"
