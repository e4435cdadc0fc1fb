"""What a known program would do with these words: its class, its paths, and why it has to ask.

The table says which flags are harmless and what the operands are; here that is held against what
was given. A program that only reads stays so only when every word of it is understood.
"""

import re
from collections.abc import Callable
from posixpath import join

from msgspec import Struct

from bridle.command_analysis.argv import Arg, Given, Known, flag_table, operand_kinds, sort_words
from bridle.command_analysis.paths import Reach, note_search, shown
from bridle.policy import Act, Does

_PLAIN = ("", "?", "=", "==")
_NUMBER = re.compile(r"[-+]?\d+(?:[kKMGTbB]|[kKMGT]?i?B)?").fullmatch


class Effect(Struct, gc=False):
    """What a command would do, why it asks, and whether it needs the network."""

    does: Does
    reason: str = ""
    network: bool = False


def effect_of(name: str, known: Known, args: list[Arg], reach: Reach) -> Effect:
    """What a program of the table does with the words after its name."""
    if len(args) == 1 and _says_who_it_is(name, known, args[0].text):
        return Effect("reads")
    if known.flags == "*":
        given = Given([], args)
    else:
        table = flag_table(known.flags)
        given = sort_words(args, table, single=known.single, stop=bool(known.verbs))
    reasons: list[str] = []
    if given.flags or given.strange:
        reach, reasons = _moved(given, reach)
        reasons += [*_strange(name, known, given), *_flag_reasons(given, reach)]
        reasons += _late(name, known, given, reach)
    reasons += _bundled(name, known, args)
    if known.verbs and given.operands:
        inner = _verb(name, known, given.operands, reach)
    else:
        inner = Effect(known.does, known.reason, known.network)
        reasons += _operand_reasons(name, known, given, reach)
        note_search(name, args, reach)
    if known.check is not None:
        reasons += known.check(name, given, reach)
    return _weighed(inner, [reason for reason in reasons if reason])


def _says_who_it_is(name: str, known: Known, word: str) -> bool:
    """`--version` and its like, alone. The help of a git verb is a page, and a pager shows it."""
    if known.alone and word in known.alone.split():
        return True
    plain = known.does == "reads" and not name.startswith("git ")
    return plain and word in ("--help", "--version")


def _weighed(inner: Effect, reasons: list[str]) -> Effect:
    if not reasons:
        return inner
    own = [inner.reason] if inner.reason and inner.does == "changes" else []
    told = list(dict.fromkeys(own + reasons))
    more = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return Effect("changes", "; ".join(told[:2]) + more, inner.network)


def _moved(given: Given, reach: Reach) -> tuple[Reach, list[str]]:
    """`git -C folder`: the paths are meant from there."""
    reasons = []
    for flag in given.flags:
        if flag.kind == "=cd" and flag.value is not None:
            reasons.append(reach.reads(flag.value))
            folder = join(reach.machine.root, reach.place(flag.value.text).path)
            reach = Reach(reach.machine, folder, reach.notes)
    return reach, reasons


def _verb(name: str, known: Known, operands: list[Arg], reach: Reach) -> Effect:
    verb = operands[0].text
    entry = known.verbs.get(verb)
    if entry is None:
        reason = f"{name} {shown(verb)} is not known to be harmless"
        return Effect("changes", reason, known.network)
    return effect_of(f"{name} {verb}", entry, operands[1:], reach)


def _strange(name: str, known: Known, given: Given) -> list[str]:
    if not given.strange or known.does == "changes":
        return []
    return [f"{name} {shown(given.strange)} is not known to be harmless"]


def _late(name: str, known: Known, given: Given, reach: Reach) -> list[str]:
    """Flags behind an operand: who takes none there reads them, and their values, as paths."""
    late = [flag for flag in given.flags if flag.late]
    if not late or known.does != "reads" or name.startswith("git "):
        return []
    if known.single and not known.halts:  # `find`: its words are in order
        return []
    reasons = [reach.reads(f.value) for f in late if f.value is not None and f.kind in _PLAIN]
    if known.halts:
        reasons.append(f"{name} {late[0].name} is not known to be harmless there")
    return reasons


def _bundled(name: str, known: Known, args: list[Arg]) -> list[str]:
    """`tree -Po x y`: two flags and two values, which is read so by nobody else."""
    if not known.apart:
        return []
    table = flag_table(known.flags)
    return [
        f"{name} {shown(arg.text)} is not known to be harmless"
        for arg in args
        if len(arg.text) > 2 and arg.text[0] == "-" and arg.text[1] != "-"
        if any(table.get(f"-{letter}") for letter in arg.text[1:])
    ]


def _flag_reasons(given: Given, reach: Reach) -> list[str]:
    return [
        _path_reason(flag.kind[1:], flag.value, given, reach)
        for flag in given.flags
        if flag.value is not None and flag.kind not in _PLAIN
    ]


def _operand_reasons(name: str, known: Known, given: Given, reach: Reach) -> list[str]:
    first, repeated, last = operand_kinds(known.operands)
    operands = given.operands
    if known.instead and first and given.has(known.instead):
        first = first[1:]
    if known.needs and operands and not given.has(known.needs):
        return [f"{name} {shown(operands[0].text)} is not known to be harmless"]
    kinds = _dealt(len(operands), first, repeated, last)
    if len(kinds) < len(operands) and known.does != "changes":
        return [f"{name} {shown(operands[len(kinds)].text)} is not known to be harmless"]
    return [
        _path_reason(kind, operand, given, reach)
        for kind, operand in zip(kinds, operands, strict=False)
        if kind != "text"
    ]


def _dealt(
    count: int, first: tuple[str, ...], repeated: str, last: tuple[str, ...]
) -> tuple[str, ...]:
    """The kind of each operand."""
    if not repeated:
        return (first + last)[:count]
    spare = max(0, count - len(first) - len(last))
    if count <= len(first):
        return first[:count]
    return (first + (repeated,) * spare + last)[:count]


def _path_reason(kind: str, arg: Arg, given: Given, reach: Reach) -> str:
    """Why a word of that kind has to be asked about."""
    return KINDS[kind](arg, given, reach)


def _out(arg: Arg, given: Given, reach: Reach) -> str:
    """Where a build puts what it makes: its own affair, inside."""
    reach.writes(arg)
    return ""


def _start(arg: Arg, given: Given, reach: Reach) -> str:
    """Where `find` begins to look; the marks of its grammar are no paths."""
    return "" if arg.text in ("(", ")", "!", ",") else reach.reads(arg, inside=False)


def _goto(arg: Arg, given: Given, reach: Reach) -> str:
    if arg.text == "-":
        return "goes back to a folder that is not known"
    if not reach.reads(arg):
        return ""
    if reach.several:
        return "goes outside the workspace if the cd before it fails: join them with &&"
    return "goes outside the workspace"


def _rev(arg: Arg, given: Given, reach: Reach) -> str:
    """A commit or a path, or a path in a commit or in the index: whatever it is, it is read."""
    text = arg.text
    itself = ":" not in text or text.startswith(("/", ".", "~"))
    reasons = [reach.reads(arg)] if itself else []
    top = Reach(reach.machine, reach.machine.root, reach.notes)
    for at in [at for at, letter in enumerate(text) if letter == ":"][:_COLONS]:
        if path := _MAGIC.sub("", text[at + 1 :]):  # a time has colons, too
            reasons.append((reach if path.startswith(".") else top).reads(Arg(path, arg.known)))
    return next(filter(None, reasons), "" if text.count(":") <= _COLONS else "has many colons")


_COLONS = 8
_MAGIC = re.compile(r"\A(?:\([a-z,:]*\)|[/!^]+:?)(?=.)")  # `:(top)name`, `:/name`, `:!name`


def _at(arg: Arg, given: Given, reach: Reach) -> str:
    """`@file` sends a file; anything else is sent as it is."""
    at = arg.text.partition("@")[2] if "@" in arg.text else ""
    return _sent(Arg(at, arg.known), given, reach) if at and at != "-" else ""


def _sent(arg: Arg, given: Given, reach: Reach) -> str:
    place = reach.place(arg.text)
    if place.reading or not (place.inside or place.temporary):
        why = f": {place.why}" if place.why else ""
        reach.notes.forbid(f"sends {shown(place.path)} over the network{why}")
    return reach.reads(arg) or f"sends {shown(place.path)} over the network"


_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/]*@)?([^:/?#]+)", re.IGNORECASE)


def host_of(text: str) -> str:
    """The host that an address names."""
    found = _HOST.match(text)
    return found[1].lower() if found else text


def _host(arg: Arg, given: Given, reach: Reach) -> str:
    host = host_of(arg.text)
    reach.notes.act(Act(("fetch",), host, "changes", minor=True, network=True))
    return f"goes out to {shown(host)} over the network"


def _lookup(arg: Arg, given: Given, reach: Reach) -> str:
    host = host_of(arg.text.lstrip("@+"))
    reach.notes.act(Act(("fetch",), host, "changes", minor=True, network=True))
    return f"asks the network for {shown(host)}: name resolution is output"


def _moved_away(arg: Arg, given: Given, reach: Reach) -> str:
    reach.reads(arg)
    reach.deletes(arg, deep=True)
    return f"moves {shown(arg.text)}"


def _linked(arg: Arg, given: Given, reach: Reach) -> str:
    """What a link leads to. It is meant from where the link is; from here is near enough to ask."""
    return reach.reads(arg) or "makes a link"


def _copied(arg: Arg, given: Given, reach: Reach) -> str:
    """rsync and scp: the last word is written, others are read; with a host, it is sent."""
    if ":" in arg.text.split("/")[0]:
        return _host(arg, given, reach)
    if given.operands and arg is given.operands[-1]:
        return reach.writes(arg)
    return _sent(arg, given, reach) if _is_remote(given) else reach.reads(arg)


def _is_remote(given: Given) -> bool:
    return any(":" in arg.text.split("/")[0] for arg in given.operands)


KINDS: dict[str, Callable[[Arg, Given, Reach], str]] = {
    "text": lambda arg, given, reach: "",
    "n": lambda arg, given, reach: "" if _NUMBER(arg.text) else f"{shown(arg.text)} is no number",
    "look": lambda arg, given, reach: reach.reads(arg, inside=False),
    "read": lambda arg, given, reach: reach.reads(arg),
    "write": lambda arg, given, reach: reach.writes(arg),
    "delete": lambda arg, given, reach: reach.deletes(arg, deep=given.has("-r -R --recursive")),
    "folder": lambda arg, given, reach: reach.deletes(arg, deep=True),
    "run": lambda arg, given, reach: reach.runs(arg),
    "cd": lambda arg, given, reach: "",
    "work": lambda arg, given, reach: reach.reads(arg),
    "config": lambda arg, given, reach: f"sets {shown(arg.text)} for this command",
    "out": _out,
    "start": _start,
    "goto": _goto,
    "rev": _rev,
    "at": _at,
    "sent": _sent,
    "host": _host,
    "lookup": _lookup,
    "moved": _moved_away,
    "linked": _linked,
    "copied": _copied,
}
