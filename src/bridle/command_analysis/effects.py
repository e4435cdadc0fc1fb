"""What a program of the table would do with its words: its class, its paths, and why it asks.

The table says which flags are harmless and what the operands are. A program that only reads is
harmless only if every word is understood.
"""

import re
from collections.abc import Callable
from posixpath import join

from msgspec import Struct

from bridle.command_analysis.argv import (
    Arg,
    Arguments,
    Program,
    flag_table,
    operand_kinds,
    parse_arguments,
)
from bridle.command_analysis.paths import PathAccess, note_search, shorten
from bridle.policy import Act, Does

_TEXT_KINDS = ("", "?", "=", "==")
_NUMBER = re.compile(r"[-+]?\d+(?:[kKMGTbB]|[kKMGT]?i?B)?").fullmatch


class Effect(Struct, gc=False):
    """What a command would do, why it asks, and whether it needs the network."""

    does: Does
    reason: str = ""
    network: bool = False


def effect_of(name: str, program: Program, args: list[Arg], access: PathAccess) -> Effect:
    """Return what a program of the table does with the words after its name."""
    if len(args) == 1 and _is_version_or_help(name, program, args[0].text):
        return Effect("reads")
    if program.flags == "*":
        arguments = Arguments([], args)
    else:
        table = flag_table(program.flags)
        arguments = parse_arguments(
            args, table, single_dash=program.single_dash, stop=bool(program.subcommands)
        )
    reasons: list[str] = []
    if arguments.flags or arguments.unknown_flag:
        access, reasons = _change_folder(arguments, access)
        reasons += [
            *_unknown_flag_reasons(name, program, arguments),
            *_flag_reasons(arguments, access),
        ]
        reasons += _late_flag_reasons(name, program, arguments, access)
    reasons += _bundle_reasons(name, program, args)
    if program.subcommands and arguments.operands:
        effect = _subcommand_effect(name, program, arguments.operands, access)
    else:
        effect = Effect(program.does, program.reason, program.network)
        reasons += _operand_reasons(name, program, arguments, access)
        note_search(name, args, access)
    if program.check is not None:
        reasons += program.check(name, arguments, access)
    return _with_reasons(effect, [reason for reason in reasons if reason])


def _is_version_or_help(name: str, program: Program, word: str) -> bool:
    """Whether the only word is `--version` or alike; git shows the help of a command in a pager."""
    if program.harmless_alone and word in program.harmless_alone.split():
        return True
    has_plain_help = program.does == "reads" and not name.startswith("git ")
    return has_plain_help and word in ("--help", "--version")


def _with_reasons(effect: Effect, reasons: list[str]) -> Effect:
    """Return the effect, or one that asks for these reasons."""
    if not reasons:
        return effect
    own = [effect.reason] if effect.reason and effect.does == "changes" else []
    different = list(dict.fromkeys(own + reasons))
    more = f" and {len(different) - 2} more" if len(different) > 2 else ""
    return Effect("changes", "; ".join(different[:2]) + more, effect.network)


def _change_folder(arguments: Arguments, access: PathAccess) -> tuple[PathAccess, list[str]]:
    """Follow flags that change the folder, such as `git -C folder`. Return reasons to ask, too."""
    reasons = []
    for flag in arguments.flags:
        if flag.kind == "=cd" and flag.value is not None:
            reasons.append(access.add_read(flag.value))
            folder = join(access.machine.root, access.place(flag.value.text).path)
            access = PathAccess(access.machine, folder, access.findings)
    return access, reasons


def _subcommand_effect(
    name: str, program: Program, operands: list[Arg], access: PathAccess
) -> Effect:
    subcommand = operands[0].text
    entry = program.subcommands.get(subcommand)
    if entry is None:
        reason = f"{name} {shorten(subcommand)} is not known to be harmless"
        return Effect("changes", reason, program.network)
    return effect_of(f"{name} {subcommand}", entry, operands[1:], access)


def _unknown_flag_reasons(name: str, program: Program, arguments: Arguments) -> list[str]:
    if not arguments.unknown_flag or program.does == "changes":
        return []
    return [f"{name} {shorten(arguments.unknown_flag)} is not known to be harmless"]


def _late_flag_reasons(
    name: str, program: Program, arguments: Arguments, access: PathAccess
) -> list[str]:
    """Check flags after an operand: a program that takes none there reads them as paths."""
    late = [flag for flag in arguments.flags if flag.late]
    if not late or program.does != "reads" or name.startswith("git "):
        return []
    if program.single_dash and not program.flags_first:  # `find`, whose flags come last
        return []
    reasons = [
        access.add_read(f.value) for f in late if f.value is not None and f.kind in _TEXT_KINDS
    ]
    if program.flags_first:
        reasons.append(f"{name} {late[0].name} is not known to be harmless there")
    return reasons


def _bundle_reasons(name: str, program: Program, args: list[Arg]) -> list[str]:
    """Check bundles of flags that take values, as in `tree -Po x y`, which only `tree` reads so."""
    if not program.no_bundles:
        return []
    table = flag_table(program.flags)
    return [
        f"{name} {shorten(arg.text)} is not known to be harmless"
        for arg in args
        if len(arg.text) > 2 and arg.text[0] == "-" and arg.text[1] != "-"
        if any(table.get(f"-{letter}") for letter in arg.text[1:])
    ]


def _flag_reasons(arguments: Arguments, access: PathAccess) -> list[str]:
    return [
        OPERAND_KINDS[flag.kind[1:]](flag.value, arguments, access)
        for flag in arguments.flags
        if flag.value is not None and flag.kind not in _TEXT_KINDS
    ]


def _operand_reasons(
    name: str, program: Program, arguments: Arguments, access: PathAccess
) -> list[str]:
    first, repeated, last = operand_kinds(program.operands)
    operands = arguments.operands
    if program.operand_flags and first and arguments.has(program.operand_flags):
        first = first[1:]
    if program.required_flags and operands and not arguments.has(program.required_flags):
        return [f"{name} {shorten(operands[0].text)} is not known to be harmless"]
    kinds = _assign_kinds(len(operands), first, repeated, last)
    if len(kinds) < len(operands) and program.does != "changes":
        return [f"{name} {shorten(operands[len(kinds)].text)} is not known to be harmless"]
    return [
        OPERAND_KINDS[kind](operand, arguments, access)
        for kind, operand in zip(kinds, operands, strict=False)
        if kind != "text"
    ]


def _assign_kinds(
    count: int, first: tuple[str, ...], repeated: str, last: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the kind of each operand."""
    if not repeated:
        return (first + last)[:count]
    spare = max(0, count - len(first) - len(last))
    if count <= len(first):
        return first[:count]
    return (first + (repeated,) * spare + last)[:count]


# What each kind of operand and flag value means: these note what is done with it, and return why
# it asks, if it does.


def _build_output(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """Where a build writes. Inside of the workspace that needs no reason."""
    access.add_write(arg)
    return ""


def _search_start(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """Where `find` starts to search; brackets and operators are not paths."""
    return "" if arg.text in ("(", ")", "!", ",") else access.add_read(arg, inside=False)


def _goto(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    if arg.text == "-":
        return "goes back to a folder that is not known"
    if not access.add_read(arg):
        return ""
    if access.several:
        return "goes outside the workspace if the cd before it fails: join them with &&"
    return "goes outside the workspace"


def _revision(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """A commit, a path, or a path in a commit or in the index. Each path in it is read."""
    text = arg.text
    is_path = ":" not in text or text.startswith(("/", ".", "~"))
    reasons = [access.add_read(arg)] if is_path else []
    from_root = PathAccess(access.machine, access.machine.root, access.findings)
    colons = [index for index, letter in enumerate(text) if letter == ":"]
    for index in colons[:_MAX_COLONS]:
        if path := _PATHSPEC_MAGIC.sub("", text[index + 1 :]):  # a time has colons, too
            base = access if path.startswith(".") else from_root
            reasons.append(base.add_read(Arg(path, arg.known)))
    return next(filter(None, reasons), "" if len(colons) <= _MAX_COLONS else "has many colons")


_MAX_COLONS = 8
# What comes after the colon in `:(top)name`, `:/name` and `:!name`.
_PATHSPEC_MAGIC = re.compile(r"\A(?:\([a-z,:]*\)|[/!^]+:?)(?=.)")


def _file_after_at(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """`@file` sends a file; anything else is the data itself."""
    path = arg.text.partition("@")[2]
    return _upload(Arg(path, arg.known), arguments, access) if path and path != "-" else ""


def _upload(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    place = access.place(arg.text)
    if place.reading or not (place.inside or place.temporary):
        why = f": {place.why}" if place.why else ""
        access.findings.forbid(f"sends {shorten(place.path)} over the network{why}")
    return access.add_read(arg) or f"sends {shorten(place.path)} over the network"


_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/]*@)?([^:/?#]+)", re.IGNORECASE)


def _host_of(address: str) -> str:
    match = _HOST.match(address)
    return match[1].lower() if match else address


def _host(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    host = _host_of(arg.text)
    access.findings.add_act(Act(("fetch",), host, "changes", minor=True, network=True))
    return f"goes out to {shorten(host)} over the network"


def _lookup(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    host = _host_of(arg.text.lstrip("@+"))
    access.findings.add_act(Act(("fetch",), host, "changes", minor=True, network=True))
    return f"looks up {shorten(host)}, which sends the name over the network"


def _move(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    access.add_read(arg)
    access.add_delete(arg, deep=True)
    return f"moves {shorten(arg.text)}"


def _link_target(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """The target of a link.

    It is relative to the link's folder, and is looked up in the current one: it asks anyway.
    """
    return access.add_read(arg) or "makes a link"


def _remote_copy(arg: Arg, arguments: Arguments, access: PathAccess) -> str:
    """rsync and scp: the last operand is written; the others are read, or sent to a host."""
    if ":" in arg.text.split("/")[0]:
        return _host(arg, arguments, access)
    if arguments.operands and arg is arguments.operands[-1]:
        return access.add_write(arg)
    return _upload(arg, arguments, access) if _is_remote(arguments) else access.add_read(arg)


def _is_remote(arguments: Arguments) -> bool:
    return any(":" in arg.text.split("/")[0] for arg in arguments.operands)


OPERAND_KINDS: dict[str, Callable[[Arg, Arguments, PathAccess], str]] = {
    "text": lambda arg, arguments, access: "",  # any text
    "n": lambda arg, arguments, access: (  # a number, perhaps with a unit
        "" if _NUMBER(arg.text) else f"{shorten(arg.text)} is not a number"
    ),
    "look": lambda arg, arguments, access: access.add_read(arg, inside=False),  # is it there?
    "read": lambda arg, arguments, access: access.add_read(arg),
    "write": lambda arg, arguments, access: access.add_write(arg),
    "delete": lambda arg, arguments, access: access.add_delete(
        arg, deep=arguments.has("-r -R --recursive")
    ),
    "folder": lambda arg, arguments, access: access.add_delete(arg, deep=True),  # all of it
    "run": lambda arg, arguments, access: access.add_script(arg),
    "cd": lambda arg, arguments, access: "",  # `_change_folder` follows it
    "work": lambda arg, arguments, access: access.add_read(arg),  # what a build works on
    "config": lambda arg, arguments, access: f"sets {shorten(arg.text)} for this command",
    "out": _build_output,
    "start": _search_start,
    "goto": _goto,
    "rev": _revision,
    "at": _file_after_at,
    "sent": _upload,
    "host": _host,
    "lookup": _lookup,
    "moved": _move,
    "linked": _link_target,
    "copied": _remote_copy,
}
