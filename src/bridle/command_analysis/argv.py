"""Parses the words of a command into flags, their values and operands, as its program would.

`Program` is an entry in the table of known programs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from bridle.policy import Does

if TYPE_CHECKING:
    from bridle.command_analysis.paths import PathAccess

# Looks at what flags and kinds of operands cannot say. Returns reasons to ask.
Check = Callable[[str, "Arguments", "PathAccess"], list[str]]

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\-~^{}]+").fullmatch


def quote(word: str) -> str:
    """Return a word as a person would type it, with quotes only if it needs them."""
    if _PLAIN(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def join_quoted(words: Iterable[str]) -> str:
    """Return the canonical text of a command: its words with one space between them."""
    return " ".join([quote(word) for word in words])


class Program(Struct, frozen=True, gc=False, omit_defaults=True):
    """One program, or one subcommand of it: what it does, and how its words are read.

    With `subcommands` (`git status`), `flags` are those before the subcommand. `flag_table` and
    `operand_kinds` say how `flags` and `operands` are written. Only a program that `reads` runs
    without approval, and only if every word is understood.
    """

    does: Does = "changes"
    flags: str = ""
    operands: str = ""
    reason: str = ""  # why it needs approval
    runs: tuple[str, ...] = ()  # examples that run without approval; a test judges them
    asks: tuple[str, ...] = ()  # examples that need it
    subcommands: dict[str, "Program"] = {}
    operand_flags: str = ""  # they replace the first operand (`grep -e PATTERN`)
    required_flags: str = ""  # without one of these it may have no operand (`git branch --list x`)
    check: Check | None = None
    single_dash: bool = False  # its long flags have one dash (`go test -run x`)
    flags_first: bool = False  # it takes no flags after the first operand: one there is unusual
    no_bundles: bool = False  # a flag that takes a value is not bundled (`tree -L 2`)
    harmless_alone: str = ""  # words that are harmless if they are the only one (`--version`)
    network: bool = False  # it needs the network


@lru_cache(maxsize=1024)
def flag_table(spec: str) -> dict[str, str]:
    """Return the flags of an entry, each with what it takes.

    `""` is nothing, `"?"` an optional value, `"="` any value, `"=="` two values, and `"=read"` a
    value of the kind `read` (`effects.OPERAND_KINDS`).
    """
    table = {}
    for token in spec.split():
        marks = [index for index in (token.find("="), token.find("?")) if index > 0]
        end = min(marks, default=len(token))
        table[token[:end]] = token[end:]
    return table


@lru_cache(maxsize=1024)
def operand_kinds(spec: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the kinds of the first operands, of those that repeat, and of the last ones.

    `"text read*"` is one text and then any number of files that are read.
    """
    kinds = spec.split()
    index = next((i for i, kind in enumerate(kinds) if kind.endswith("*")), len(kinds))
    repeated = kinds[index][:-1] if index < len(kinds) else ""
    return tuple(kinds[:index]), repeated, tuple(kinds[index + 1 :])


class Arg(Struct, frozen=True, gc=False, omit_defaults=True):
    """A word that the program would get.

    `pattern` is the glob pattern that it comes from. If it is not `known`, it has an expansion in
    it, and `text` is the source text of that.
    """

    text: str
    known: bool = True
    pattern: str = ""


def command_text(args: Iterable[Arg]) -> str:
    """Return the canonical text of a command. Words that are not known keep their source text."""
    return " ".join([quote(arg.text) if arg.known else arg.text for arg in args])


class Flag(Struct, frozen=True, gc=False):
    """A flag, what it takes (`=read`), and its value.

    `late`: it comes after an operand. Some programs, and some systems, then take it for an operand.
    """

    name: str
    kind: str
    value: Arg | None = None
    late: bool = False


class Arguments(Struct, gc=False):
    """The parsed words of a command. `unknown_flag` is the first flag that is not in the table."""

    flags: list[Flag]
    operands: list[Arg]
    unknown_flag: str = ""

    def has(self, names: str) -> bool:
        """Whether one of these flags is there."""
        flag_names = names.split()
        return any(flag.name in flag_names for flag in self.flags)

    def add_flag(self, name: str, kind: str, value: Arg | None = None) -> None:
        self.flags.append(Flag(name, kind, value, bool(self.operands)))

    def values(self, *names: str) -> list[str]:
        """Return the values of these flags."""
        return [flag.value.text for flag in self.flags if flag.name in names and flag.value]


def parse_arguments(
    args: Sequence[Arg], table: dict[str, str], *, single_dash: bool = False, stop: bool = False
) -> Arguments:
    """Parse the words after a program's name.

    With `stop`, every word after the first operand is an operand, too.
    """
    arguments = Arguments([], [])
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        text = arg.text
        if len(text) < 2 or text[0] != "-":
            arguments.operands.append(arg)
            if stop:
                break
        elif text == "--" and not single_dash:
            break
        elif single_dash or text[1] == "-":
            index += _parse_long_flag(arg, args[index : index + 2], table, arguments)
        else:
            index += _parse_short_flags(arg, args[index : index + 1], table, arguments)
    arguments.operands.extend(args[index:])
    return arguments


def _parse_long_flag(
    arg: Arg, rest: Sequence[Arg], table: dict[str, str], arguments: Arguments
) -> int:
    """Parse a long flag. Return how many of the words after it are its values."""
    name, equals, value = arg.text.partition("=")
    kind = table.get(name)
    if kind is None and name[1:].isdigit() and not equals and "-#" in table:
        kind = ""
    if kind is None or (equals and not kind):
        arguments.unknown_flag = arguments.unknown_flag or arg.text
        return 0
    if equals:
        arguments.add_flag(name, kind, Arg(value, arg.known))
        return 0
    if not kind.startswith("="):
        arguments.add_flag(name, kind)
        return 0
    count = 2 if kind == "==" else 1
    if len(rest) < count:
        arguments.unknown_flag = arguments.unknown_flag or arg.text
        return 0
    arguments.add_flag(name, kind, rest[count - 1])
    return count


def _parse_short_flags(
    arg: Arg, rest: Sequence[Arg], table: dict[str, str], arguments: Arguments
) -> int:
    """Parse a bundle of short flags. Return how many of the words after it are its values.

    A flag that takes a value takes the rest of the bundle, or the next word.
    """
    text = arg.text
    for index in range(1, len(text)):
        name = "-" + text[index]
        kind = table.get(name)
        left = text[index + 1 :]
        if kind is None:
            if not (text[index:].isdigit() and "-#" in table):
                arguments.unknown_flag = arguments.unknown_flag or (
                    name if index == 1 and not left else text
                )
            return 0
        if not kind:
            arguments.add_flag(name, kind)
        elif kind == "?" or left:
            arguments.add_flag(name, kind, Arg(left, arg.known) if left else None)
            return 0
        elif rest:
            arguments.add_flag(name, kind, rest[0])
            return 1
        else:
            arguments.unknown_flag = arguments.unknown_flag or name
    return 0
