"""What is known of a call before anybody decides: what it would do, and what care that takes.

A command is understood by `commands`, a path by the ground it stands on; both are asked, and
neither is asked for a tool that has neither. Decides nothing, and runs nothing.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from bridle.errors import ToolError
from bridle.policy import Act, Does, Facts, Rule, ToolPolicy

if TYPE_CHECKING:
    from bridle.messages import ToolCall
    from bridle.promises.ground import Ground, Place
    from bridle.promises.tool import Tool

_FETCH = "web_fetch"
_UNEXPANDED = ("~", "$HOME", "${HOME}")  # whoever means a folder of that name writes ./~
_UNSANDBOXED = "it would run outside the sandbox"
NOBODYS = "it is a tool of the agent's own, and nothing is known here of what it does"
_GROUNDLESS = "nothing is known of the folder that it would run in"


class Confining(Protocol):
    """A sandbox, as far as it matters here. Looking for its level may take a while."""

    @property
    def level(self) -> str: ...


def facts_of(
    call: "ToolCall",
    tool: "Tool",
    ground: "Ground | None" = None,
    *,
    cwd: str = "",
    sandboxed: "bool | str | Confining" = False,
) -> Facts:
    """What is known of a call. `cwd` is where its words are read (default: the root).

    `sandboxed` may be the level of a sandbox, or what has one; it is looked at for commands alone.
    """
    policy = tool.policy
    if policy.runs:
        return _command(call, policy, ground, cwd, sandboxed)
    if policy.files:
        return _files(call, tool, ground, cwd)
    if call.name == _FETCH:
        return Facts(policy, acts=(_fetched(call, tool),))
    if (told := getattr(tool, "facts", None)) is not None:  # one that knows more of its calls
        return _own_word(told, call, policy)
    return Facts(policy, subject_of(call.arguments))


def vouched(facts: Facts, rules: "Sequence[Rule]") -> Facts:
    """Of a tool that is nobody's: is there a rule that allows it by its name? Then that will do."""
    if facts.opaque != NOBODYS:
        return facts
    named = [one for one in rules if one.verdict == "allow" and one.tool.strip("*?")]
    if not all(any(one.speaks_of(act) for one in named) for act in facts.acts):
        return facts
    return replace(facts, opaque="")


def _own_word(
    told: "Callable[[dict[str, Any]], Facts]", call: "ToolCall", policy: ToolPolicy
) -> Facts:
    """What a tool says of a call itself; where it cannot, nothing was understood."""
    try:
        return told(call.arguments)
    except (ToolError, KeyError, TypeError, ValueError, AttributeError):
        return Facts(policy, opaque="what it would do cannot be told")


def subject_of(arguments: dict[str, Any]) -> str:
    """What a rule's pattern is held against, of a tool of which nothing more is known."""
    subject = arguments.get("command") or arguments.get("path") or ""
    return subject if isinstance(subject, str) else str(subject)


def _command(
    call: "ToolCall",
    policy: ToolPolicy,
    ground: "Ground | None",
    cwd: str,
    sandbox: "bool | str | Confining",
) -> Facts:
    """A command line: as it was understood, and whether it asks to leave the sandbox."""
    text = call.arguments.get(policy.runs)
    leaves = call.arguments.get("sandbox") is False
    guard = _UNSANDBOXED if leaves else ""
    level = "none" if leaves else _level(sandbox)
    sandboxed = level != "none"
    if not isinstance(text, str):
        return Facts(policy, guard=guard, opaque="there is no command in it", sandbox=level)
    if ground is None:
        return Facts(policy, text, "", (), guard, _GROUNDLESS, sandboxed, level)
    from bridle.commands.judge import judge  # its grammar is loaded for the first command

    found = judge(text, cwd or ground.root, ground)
    acts = found.acts or (Act((call.name,), text),)
    guards = "; ".join(filter(None, (guard, found.guard)))
    return Facts(policy, text, found.floor, acts, guards, found.opaque, sandboxed, level)


def _level(sandbox: "bool | str | Confining") -> str:
    if isinstance(sandbox, bool):
        return "active" if sandbox else "none"
    return (sandbox if isinstance(sandbox, str) else sandbox.level) or "none"


def _files(call: "ToolCall", tool: "Tool", ground: "Ground | None", cwd: str) -> Facts:
    """A tool for files: one act for each path, and the strictest care that any of them takes."""
    policy = tool.policy
    try:
        paths = _paths(call, tool)
    except ToolError as error:  # the tool would refuse it as well, in the same words
        return Facts(policy, floor=error.message)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Facts(policy, opaque="which files it touches cannot be told")
    if ground is None:
        return Facts(policy, acts=tuple(_act(call.name, policy, path) for path in paths))
    found = [(path, ground.place(path, cwd or ground.root)) for path in paths]
    acts = tuple(_act(call.name, policy, place.path, path) for path, place in found)
    cares = {"": "", "ask": "", "deny": ""}
    for path, place in reversed(found):
        cares[_care(place, policy.read_only)] = place.why or f"{path} leads out of the workspace"
    return Facts(policy, floor=cares["deny"], acts=acts, guard=cares["ask"])


def _paths(call: "ToolCall", tool: "Tool") -> tuple[str, ...]:
    """The paths that a call touches, as it spells them. Raise `ToolError`, `TypeError` …"""
    touched = getattr(tool, "touched", None)
    paths = touched(call.arguments) if touched else (call.arguments.get("path", "."),)
    if not paths or not all(isinstance(path, str) for path in paths):
        raise TypeError("no paths")
    for path in paths:
        if (head := path.partition("/")[0]) in _UNEXPANDED:
            raise ToolError(f"{head} is not expanded here: name the path from the workspace")
    return tuple(paths)


def _act(name: str, policy: ToolPolicy, subject: str, spelled: str = "") -> Act:
    """One path. As it is spelled, it can be forbidden; what is allowed is where it leads."""
    does: Does = "reads" if policy.read_only else "edits" if policy.edits else "changes"
    kind = "read" if policy.read_only else "write"
    names = (name,) if name == kind else (name, kind)
    other = (spelled,) if spelled and spelled != subject else ()
    return Act(names, subject, does, also=other, is_path=True)


def _care(place: "Place", reading: bool) -> str:
    """What care the path takes. Who changes a file also sees what was in it."""
    cares = {place.reading} if reading else {place.reading, place.writing}
    if not place.inside or "deny" in cares:
        return "deny"
    return "ask" if "ask" in cares else ""


def _fetched(call: "ToolCall", tool: "Tool") -> Act:
    """A page from elsewhere: the host is what matters, as the tool itself reads it.

    It can also be forbidden by the host without its port, and by the whole address.
    """
    plain = _told(_host_of, call)
    host = _told(getattr(tool, "host_of", _host_of), call)
    url = call.arguments.get("url")
    also = [one for one in (plain, url) if isinstance(one, str) and one not in ("", host)]
    does: Does = "reads" if tool.policy.read_only else "changes"
    return Act((_FETCH, "fetch"), host, does, also=tuple(also))


def _told(host_of: Callable[[dict[str, Any]], str], call: "ToolCall") -> str:
    try:
        return host_of(call.arguments)
    except (ToolError, KeyError, TypeError, ValueError, AttributeError):
        return ""


def _host_of(arguments: dict[str, Any]) -> str:
    from urllib.parse import urlsplit

    return urlsplit(arguments["url"]).hostname or ""
