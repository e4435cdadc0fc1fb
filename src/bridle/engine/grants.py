"""What a yes covers beyond its one call, how long, and how that is known again. Pure.

A yes for once grants nothing. A yes for the session grants the same tool with the same arguments
in the same folder and the same sandbox, as long as it would do the same; to a test or a build it
grants all tests and builds (`builds`) in that folder. A yes as a rule grants what the rule says.
Every grant ends.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from bridle.engine.fingerprint import fingerprint
from bridle.errors import ConfigError
from bridle.events import ApprovalAnswered, ApprovalAsked, Grant
from bridle.messages import ToolCall
from bridle.policy import CLASSES, Rule, read_rule

_LONGEST = 200  # characters of what a grant is about


def grant_of(call: ToolCall, cwd: str, sandbox: str = "", *does: str) -> str:
    """What "for this session" covers: the same call in the same folder, which does the same."""
    return fingerprint(ToolCall("", call.name, call.arguments), cwd, sandbox, *does)


def class_of(covers: str, cwd: str, sandbox: str = "") -> str:
    """What a yes for the session to a call of a class covers: every such call in the folder."""
    return fingerprint(ToolCall("", "", {"covers": covers}), cwd, sandbox)


def confinement(sandbox: str, *, network: bool) -> str:
    """The sandbox that a call would run in: with the network it is another one."""
    return f"{sandbox} with the network" if network else sandbox


def given(asked: ApprovalAsked, said: ApprovalAnswered, since: str) -> Iterator[Grant]:
    """The grant that a yes gives; none if it is for once, or if nobody may allow more than that."""
    if asked.lasting or said.allowed is not True:
        return
    about = (since, said.until, said.by, asked.cwd)
    sandbox = confinement(asked.sandbox, network=asked.network)
    # logs of earlier versions have an end in a yes for once, too: there it granted the class
    if asked.covers and said.until and said.scope in ("once", "session"):
        name = class_of(asked.covers, asked.cwd, sandbox)
        yield Grant(name, f"{CLASSES.get(asked.covers, asked.covers)} in {asked.cwd}", *about)
    elif said.scope in ("session", "rule"):
        name = grant_of(asked.call, asked.cwd, sandbox, *asked.commands, *asked.paths)
        yield Grant(name, said.rule or _words(asked), *about, said.rule)


def likeness(asked: ApprovalAsked) -> str:
    """What calls have in common that are alike: the tool, and all that it is about."""
    words = f"{asked.call.name} {_subject(asked)}".rstrip()
    if len(words) <= _LONGEST:
        return words
    return f"{words[:_LONGEST]} {fingerprint(ToolCall('', '', {}), words)}"


def _subject(asked: ApprovalAsked) -> str:
    if found := (*asked.commands, *asked.paths):
        return "; ".join(found)
    arguments = asked.call.arguments
    return str(arguments.get("command") or arguments.get("path") or "")


def _words(asked: ApprovalAsked) -> str:
    """What was allowed, for a list of grants."""
    about = "; ".join(asked.commands) or ", ".join(asked.paths) or _subject(asked)
    if not about and asked.call.arguments:
        about = str(asked.call.arguments)
    return f"{asked.call.name}({about[:_LONGEST]})" if about else asked.call.name


def is_over(grant: Grant, seconds: float) -> bool:
    """Has its time passed? One without an end lasts so long from when it was given."""
    return time.time() >= _end(grant, seconds)


def lasting(grant: Grant, seconds: float) -> Grant:
    """The grant with its end, also where none was recorded."""
    return grant if grant.until else replace(grant, until=stamp(_end(grant, seconds)))


def _end(grant: Grant, seconds: float) -> float:
    if (until := seconds_at(grant.until)) is not None:
        return until
    return (seconds_at(grant.since) or 0.0) + seconds


def rules_of(grants: Mapping[str, Grant], root: str, seconds: float) -> tuple[Rule, ...]:
    """The rules among them that hold now, for this workspace."""
    found = _within((one for one in grants.values() if one.rule), root)
    rules = (_read(one, root) for one in found if not is_over(one, seconds))
    return tuple(rule for rule in rules if rule is not None and rule.verdict == "allow")


def _within(grants: Iterable[Grant], root: str) -> Iterator[Grant]:
    return (one for one in grants if one.cwd == root or one.cwd.startswith(f"{root.rstrip('/')}/"))


def _read(grant: Grant, root: str) -> Rule | None:
    try:
        return replace(read_rule(grant.rule, "this session"), where=root)
    except ConfigError:
        return None  # from a strange log: no rule, no more


def seconds_at(when: str) -> float | None:
    """A recorded time, in seconds since 1970; None for what is none."""
    try:
        found = datetime.fromisoformat(when)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def stamp(when: float) -> str:
    """That time; nothing where it never comes."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(when)))
    except (OverflowError, ValueError):
        return ""
