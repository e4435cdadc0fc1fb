"""The one gate before every effect: find the facts of a call, apply the rules, and decide.

`Gate.judge` is the only place where a decision is put together: for the loop, for other agents, for
dry runs, for past calls that are judged again, and for a project's own linters. It finds out what
the call would do (`facts_of`), adds what its words do not say (files that a search would come by),
and hands that to `policy.decide`, which is pure. It runs nothing and asks nobody.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.grants import (
    call_grant_id,
    class_grant_id,
    granted_rules,
    sandbox_label,
)
from bridle.engine.redaction import MARK
from bridle.errors import ToolError
from bridle.events import Grant
from bridle.messages import ToolCall
from bridle.policy import (
    Act,
    Decision,
    Does,
    Facts,
    Mode,
    Rule,
    ToolPolicy,
    decide,
    is_allowed_by_pattern,
    may_match,
)
from bridle.protocols.tool import Access, Tool, ToolContext, ToolResult, judge_by_words
from bridle.workspace.sensitive_paths import protection_of

if TYPE_CHECKING:
    from bridle.engine.engine_config import EngineConfig
    from bridle.engine.subagents import Parent
    from bridle.protocols.machine import Machine, Place

_MARKED = (
    f"the arguments hold {MARK}, which stands for a secret that was taken out: the tool would work "
    "with the marker in its place. Leave it out, or name the file or variable that holds it"
)
_UNKNOWN_TOOL = "it is a tool of the agent's own, and nothing is known here of what it does"


class Confinement(Protocol):
    """The part of a sandbox that the gate needs. Finding out the level may take a moment."""

    @property
    def level(self) -> str: ...


SandboxLevel = bool | str | Confinement


class JudgedCall(Struct, frozen=True, gc=False):
    """A call with its tool, what is known of it, and what the gate says. `cwd` is where it runs."""

    call: ToolCall
    tool: Tool
    facts: Facts
    decision: Decision
    cwd: str = ""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing. That can be true of a command that was fully understood."""
        policy, facts = self.tool.policy, self.facts
        if policy.read_only or policy.delegates:
            return policy.read_only
        if not facts.acts or facts.opaque or facts.floor:
            return False
        return all(act.does == "reads" for act in facts.acts)

    @property
    def changes_folder(self) -> bool:
        """Would the shell be in another folder afterwards?"""
        names = (act.subject.partition(" ")[0] for act in self.facts.acts if not act.is_path)
        return any(name in ("cd", "pushd", "popd") for name in names)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that it would run, as far as they were understood."""
        if not self.tool.policy.runs:
            return ()
        return tuple(dict.fromkeys(act.subject for act in self.facts.acts if not act.is_path))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those of the commands that are hosts to connect to, not programs to run."""
        acts = [act for act in self.facts.acts if not act.is_path]
        run = {act.subject for act in acts if act.names != ("fetch",)}
        return tuple(command for command in self.commands if command not in run)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it would touch."""
        return tuple(dict.fromkeys(act.subject for act in self.facts.acts if act.is_path))

    @property
    def group_key(self) -> tuple[str, ...]:
        """A key that is equal for requests which are shown to a person together."""
        acts = self.facts.acts
        if not self.decision.once_only and acts and all(act.does == "edits" for act in acts):
            return ("edits",)
        return (self.call.name, self.decision.covers or self.decision.reason)

    @property
    def grant_ids(self) -> tuple[str, ...]:
        """The ids of the grants that would cover it; any one of them is enough."""
        if self.decision.once_only:
            return ()
        covers = self.decision.covers
        sandbox = sandbox_label(self.facts.sandbox, network=self.decision.network)
        own = call_grant_id(self.call, self.cwd, sandbox, *self.commands, *self.paths)
        return (own, class_grant_id(covers, self.cwd, sandbox)) if covers else (own,)


class ForeignTool:
    """A tool that only a foreign agent has. Nothing is known of it, so it needs approval.

    In the mode `auto`, which asks for no approval, it is denied, because it runs outside our
    sandbox. A rule may allow it by its name.
    """

    description = "a tool of another agent"
    parameters: dict[str, Any] = {"type": "object"}
    policy = ToolPolicy()

    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """Return the words in the arguments as facts: nothing else is known. Rules match each."""
        facts = judge_by_words(self.name, arguments, subject=subject_of(arguments))
        if facts.opaque:
            return facts
        return replace(facts, opaque=_UNKNOWN_TOOL, unknown_tool=True)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Return a failure: only the agent itself can run it."""
        return ToolResult.failure(f"there is no tool named {self.name!r} here")


class Gate(Struct):
    """What calls are judged by, and the judgement.

    `mode` is asked for each call, because a person may change it. `sandbox` is the level that
    commands would run at (empty: none), or what knows it. `grants` are those of the session, as
    they grow; each lasts `grant_seconds` if it has no end of its own. With `redacts`, secrets were
    taken out of the arguments, and a marker in them stands for one. `parent` is what a child
    session has above it.
    """

    root: str
    rules: tuple[Rule, ...]
    mode: Callable[[], Mode]
    machine: "Machine | None" = None
    sandbox: SandboxLevel = ""
    grants: Mapping[str, Grant] = {}
    grant_seconds: float = 0.0
    redacts: bool = True
    parent: "Parent | None" = None

    @classmethod
    def of_session(
        cls, parts: "EngineConfig", mode: Callable[[], Mode], grants: Mapping[str, Grant]
    ) -> "Gate":
        """Return the gate of a session with these parts."""
        return cls(
            root=parts.workspace.root,
            rules=parts.rules,
            mode=mode,
            machine=parts.machine,
            sandbox=parts.sandbox,
            grants=grants,
            grant_seconds=parts.ask_grant_seconds,
            redacts=parts.redactor is not None,
            parent=parts.parent,
        )

    def judge(
        self, call: ToolCall, tool: Tool, cwd: str = "", *, foreign: bool = False
    ) -> JudgedCall:
        """Decide whether a call is allowed, denied, or has to be asked about.

        `cwd` is the folder that relative paths start from; by default the root of the workspace. A
        `foreign` call is one that a foreign agent makes itself, outside our sandbox.
        """
        sandbox = "" if foreign else self.sandbox
        facts = facts_of(call, tool, self.machine, cwd=cwd, sandbox=sandbox)
        if self.redacts and MARK in repr(call.arguments):
            decision = Decision("deny", _MARKED, "redaction")
            return JudgedCall(call, tool, facts, decision, cwd or self.root)
        rules = self.rules
        if self.grants:
            rules = (*rules, *granted_rules(self.grants, self.root, self.grant_seconds))
        if facts.unknown_tool and _is_named_by_rules(facts, rules):
            facts = replace(facts, opaque="", unknown_tool=False)
        if rules and facts.searches:
            facts = _with_ruled_reads(facts, self.machine, rules)
        if foreign and call.name in RECURSIVE_TOOLS:
            facts = _with_recursive_reads(call, facts, self.machine, rules)
        decision = decide(call, facts, rules, self.mode())
        if self.parent is not None:
            decision = self.parent.bound(decision, partial(decide, call, facts, rules))
        return JudgedCall(call, tool, facts, decision, cwd or self.root)

    def file_access(self, judged: JudgedCall) -> Access:
        """Return which guarded files a command may use, because a person or a rule allows it.

        Only a person can approve a guarded file. If the call needed no such approval, the command
        gets access to none: `ls .env` only shows a name.
        """
        facts, rules = judged.facts, self.rules
        acts = facts.acts if facts.guard else ()
        reads = {act.subject for act in acts if act.is_path and "read" in act.names}
        writes = {act.subject for act in acts if act.is_path and "write" in act.names}

        def may_read(path: str) -> bool:
            return path in reads or is_allowed_by_pattern(Act(("read",), path, is_path=True), rules)

        def may_write(path: str) -> bool:
            if path in writes or is_allowed_by_pattern(Act(("write",), path, is_path=True), rules):
                return True
            return any(
                path.startswith(f"{folder}/") and protection_of(folder).writing for folder in writes
            )

        git = any(
            not act.is_path and act.does != "reads" and act.subject.startswith("git ")
            for act in facts.acts
        )
        asked = judged.decision.person or judged.decision.network
        return Access(may_read, may_write, "" if not git else "any" if asked else "known")


# -- what a call would do

_FETCH = "web_fetch"
_UNEXPANDED = ("~", "$HOME", "${HOME}")  # for a folder of that name, write ./~
_UNSANDBOXED = "it would run outside the sandbox"
_NO_MACHINE = "nothing is known of the folder that it would run in"


def facts_of(
    call: ToolCall,
    tool: Tool,
    machine: "Machine | None" = None,
    *,
    cwd: str = "",
    sandbox: SandboxLevel = False,
) -> Facts:
    """Find out what a call would do, and what care that takes.

    A command is understood by `command_analysis`, a path by the machine it lies on; a tool that has
    neither needs neither. `cwd` is where its words are read (default: the root). The level of the
    sandbox is looked at for commands alone.
    """
    policy = tool.policy
    if policy.runs:
        return _command_facts(call, policy, machine, cwd, sandbox)
    if policy.files:
        return _file_facts(call, tool, machine, cwd)
    if call.name == _FETCH:
        return Facts(policy, acts=(_fetch_act(call, tool),))
    if (own_facts := getattr(tool, "facts", None)) is not None:  # it knows more of its calls
        try:
            facts: Facts = own_facts(call.arguments)
            return facts
        except (ToolError, KeyError, TypeError, ValueError, AttributeError):
            return Facts(policy, opaque="it is not known what it would do")
    return Facts(policy, subject_of(call.arguments))


def subject_of(arguments: dict[str, Any]) -> str:
    """Return what a rule's pattern is matched with, for a tool of which nothing more is known."""
    subject = arguments.get("command") or arguments.get("path") or ""
    return subject if isinstance(subject, str) else str(subject)


def _command_facts(
    call: ToolCall,
    policy: ToolPolicy,
    machine: "Machine | None",
    cwd: str,
    sandbox: SandboxLevel,
) -> Facts:
    """Return what a command line would do, and whether it asks to leave the sandbox."""
    text = call.arguments.get(policy.runs)
    leaves = call.arguments.get("sandbox") is False
    guard = _UNSANDBOXED if leaves else ""
    level = "none" if leaves else _sandbox_level(sandbox)
    if not isinstance(text, str):
        return Facts(policy, guard=guard, opaque="there is no command in it", sandbox=level)
    if machine is None:
        return Facts(
            policy=policy,
            subject=text,
            guard=guard,
            opaque=_NO_MACHINE,
            sandboxed=level != "none",
            sandbox=level,
        )
    from bridle.command_analysis.analysis import analyze  # 10 ms, for the first command only

    understood = analyze(text, cwd or machine.root, machine)
    return Facts(
        policy=policy,
        subject=text,
        floor=understood.floor,
        acts=understood.acts or (Act((call.name,), text),),
        guard="; ".join(filter(None, (guard, understood.guard))),
        opaque=understood.opaque,
        sandboxed=level != "none",
        sandbox=level,
        searches=understood.searches,
    )


def _sandbox_level(sandbox: SandboxLevel) -> str:
    if isinstance(sandbox, bool):
        return "active" if sandbox else "none"
    return (sandbox if isinstance(sandbox, str) else sandbox.level) or "none"


def _file_facts(call: ToolCall, tool: Tool, machine: "Machine | None", cwd: str) -> Facts:
    """Return one act for each path, and the strictest protection that any of them has."""
    policy = tool.policy
    try:
        paths = _touched_paths(call, tool)
    except ToolError as error:  # the tool would refuse it with the same message
        return Facts(policy, floor=error.message)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Facts(policy, opaque="it is not known which files it touches")
    if machine is None:
        return Facts(policy, acts=tuple(_path_act(call.name, policy, path) for path in paths))
    folder = cwd or machine.root
    places = [(path, machine.place(path, folder, read_only=policy.read_only)) for path in paths]
    acts = tuple(_path_act(call.name, policy, place.path, path) for path, place in places)
    reasons = {"": "", "ask": "", "deny": ""}
    for path, place in reversed(places):
        # Whoever changes a file also sees what was in it.
        cares = {place.reading} if policy.read_only else {place.reading, place.writing}
        care = "ask" if "ask" in cares else ""
        if not place.inside or "deny" in cares:
            care = "deny"
        reasons[care] = place.why or f"{path} leads out of the workspace"
    return Facts(policy, floor=reasons["deny"], acts=acts, guard=reasons["ask"])


def _touched_paths(call: ToolCall, tool: Tool) -> tuple[str, ...]:
    """Return the paths that a call touches, as it spells them. Raise `ToolError`, `TypeError` …"""
    touched = getattr(tool, "touched", None)
    paths = touched(call.arguments) if touched else (call.arguments.get("path", "."),)
    if not paths or not all(isinstance(path, str) for path in paths):
        raise TypeError("no paths")
    for path in paths:
        if (head := path.partition("/")[0]) in _UNEXPANDED:
            raise ToolError(f"{head} is not expanded: give the path relative to the workspace")
    return tuple(paths)


def _path_act(name: str, policy: ToolPolicy, path: str, spelling: str = "") -> Act:
    """Return the act on one path. Rules can deny it as it is spelled; they allow where it leads."""
    does: Does = "reads" if policy.read_only else "edits" if policy.edits else "changes"
    kind = "read" if policy.read_only else "write"
    names = (name,) if name == kind else (name, kind)
    also = (spelling,) if spelling and spelling != path else ()
    return Act(names, path, does, also=also, is_path=True)


def _fetch_act(call: ToolCall, tool: Tool) -> Act:
    """Return the act of fetching a page, whose subject is the host as the tool itself reads it.

    Rules can also deny it by the host without its port, and by the whole address.
    """
    plain = _host(_host_of, call)
    host = _host(getattr(tool, "host_of", _host_of), call)
    url = call.arguments.get("url")
    also = tuple(text for text in (plain, url) if isinstance(text, str) and text not in ("", host))
    does: Does = "reads" if tool.policy.read_only else "changes"
    return Act((_FETCH, "fetch"), host, does, also=also)


def _host(host_of: Callable[[dict[str, Any]], str], call: ToolCall) -> str:
    try:
        return host_of(call.arguments)
    except (ToolError, KeyError, TypeError, ValueError, AttributeError):
        return ""


def _host_of(arguments: dict[str, Any]) -> str:
    return urlsplit(arguments["url"]).hostname or ""


def _is_named_by_rules(facts: Facts, rules: Sequence[Rule]) -> bool:
    """Return whether rules allow all of it by the tool's name: then the tool counts as known."""
    named = [rule for rule in rules if rule.verdict == "allow" and rule.tool.strip("*?")]
    return all(any(rule.applies_to(act) for rule in named) for act in facts.acts)


# -- files that a search would come by

RECURSIVE_TOOLS = frozenset({"grep"})  # tools that read every file below a folder
_READ = Act(("read",))
_MAX_ENTRIES = 20_000  # that are looked at
_MAX_FILES = 20  # that become acts: one is enough to forbid the call
_RULED_CROWD = "a rule protects some files from being read, and {} has too many to look for them"
_RULED = "a rule is about files that may be in {}, and the agent's own search would read them"
_CROWDED = "{} has too many files to look for credentials in them"


def unreadable_paths(rules: tuple[Rule, ...]) -> Callable[[str], bool] | None:
    """Return a test for paths that a rule protects from being read, or None if no rule does."""
    recorder = tuple(rule for rule in rules if rule.verdict != "allow" and rule.pattern != "*")
    return _is_unreadable(recorder) if recorder else None


@lru_cache(maxsize=64)
def _is_unreadable(rules: tuple[Rule, ...]) -> Callable[[str], bool]:
    def is_unreadable(path: str) -> bool:
        act = Act(("grep", "read"), path, "reads", is_path=True)
        return any(rule.applies_to(act) for rule in rules)

    return is_unreadable


def _with_ruled_reads(facts: Facts, machine: "Machine | None", rules: tuple[Rule, ...]) -> Facts:
    """Return the facts of a command with the files it would read that a rule is about.

    The rule names files, but the command only a folder. So search the folder, up to a limit; each
    file that a rule is about becomes an act of the command.
    """
    is_unreadable = unreadable_paths(rules) if facts.searches else None
    if machine is None or is_unreadable is None or facts.floor:
        return facts
    acts: list[Act] = []
    guards = [facts.guard]
    for search in facts.searches:
        for folder in list(filter(os.path.isdir, search.paths)) or [search.folder]:
            paths = _files_below(folder, machine.root, is_unreadable)
            if paths is None:
                guards.append(_RULED_CROWD.format(folder))
            for path in paths or ():
                acts.append(Act(("shell", "read"), path, "reads", is_path=True, minor=True))
    guard = "; ".join(filter(None, guards))
    return replace(facts, acts=(*facts.acts, *acts), guard=guard)


def _files_below(folder: str, root: str, is_unreadable: Callable[[str], bool]) -> list[str] | None:
    """Return files below the folder that a rule is about, or None if there are too many files."""
    files: list[str] = []
    left = _MAX_ENTRIES
    for parent, _, names in os.walk(os.path.realpath(folder)):
        inside = os.path.relpath(parent, os.path.realpath(root))
        left -= len(names) + 1
        if left < 0:
            return None
        paths = (name if inside == "." else f"{inside}/{name}" for name in names)
        files += [path for path in paths if is_unreadable(path)]
        if len(files) >= _MAX_FILES:
            break
    return files


def _with_recursive_reads(
    call: ToolCall, facts: Facts, machine: "Machine | None", rules: Sequence[Rule]
) -> Facts:
    """Return the facts of another agent's own search with all that it would come by.

    Our own tool leaves credentials out of what it searches. Whether somebody else's does, nobody
    knows, so the machine is asked what lies below, as it is for a command.
    """
    if machine is None or facts.floor or not facts.acts:
        return facts
    places: list[Place] = []
    guards = [facts.guard]
    for act in facts.acts:
        if not Path(machine.root, act.subject).is_dir():
            continue
        below = machine.sensitive_files(act.subject, machine.root)
        if below is None:
            guards.append(_CROWDED.format(act.subject))
        places += _sensitive_places(act.subject, below or (), call, machine)
        if any(map(_is_about_some_files, rules)):
            guards.append(_RULED.format(act.subject))
    guards[1:1] = [_reason(place) for place in places if place.reading == "ask"][:1]
    floor = next((_reason(place) for place in places if place.reading == "deny"), "")
    more = tuple(
        Act((call.name, "read"), place.path, "reads", is_path=True, minor=True) for place in places
    )
    guard = "; ".join(filter(None, guards))
    return replace(facts, acts=(*facts.acts, *more), floor=floor, guard=guard)


def _sensitive_places(
    folder: str, below: tuple[str, ...], call: ToolCall, machine: "Machine"
) -> "Iterator[Place]":
    """Yield the sensitive files below a folder that the search's own pattern does not exclude."""
    if not below:
        return
    wanted = call.arguments.get("glob")
    names = (wanted.rpartition("/")[2],) if isinstance(wanted, str) and wanted[:1] != "!" else ()
    for path in below:
        if may_match(path.rpartition("/")[2], names):
            place = machine.place(f"{folder}/{path}", machine.root)
            if place.inside and place.reading:
                yield place


def _is_about_some_files(rule: Rule) -> bool:
    """Return whether it forbids, or asks about, reading some files and not others."""
    if rule.verdict == "allow" or rule.pattern == "*":
        return False
    return replace(rule, pattern="*").applies_to(_READ)


def _reason(place: "Place") -> str:
    return f"reads {place.path}: {place.why}" if place.why else f"reads {place.path}"
