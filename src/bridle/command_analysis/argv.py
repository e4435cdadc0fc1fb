"""Sorts the words of a command into flags, their values and operands, by what is known of it.

`Known` is the shape of an entry in the table of known programs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from bridle.policy import Does

if TYPE_CHECKING:
    from bridle.command_analysis.paths import Reach

# Looks at what flags and kinds of operands cannot say. Returns reasons to ask.
Check = Callable[[str, "Given", "Reach"], list[str]]

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\-~^{}]+").fullmatch


def quoted(word: str) -> str:
    """A word as a person would type it: quoted only where it must be."""
    if _PLAIN(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def spelled(words: Iterable[str]) -> str:
    """The canonical text of a command: its words, quoted where needed, one space between."""
    return " ".join([quoted(word) for word in words])


class Known(Struct, frozen=True, gc=False, omit_defaults=True):
    """One program, or one verb of it.

    `verbs` are commands of their own (`git status`); `flags` then are those before the verb.
    `instead` are flags which take the place of the first operand (`grep -e`), `needs` flags
    without which there may be no operand (`git branch --list x`), `check` names what else looks
    at it, and `single` is for programs whose long flags have one dash (`go test -run x`). `halts`:
    it takes no flags after its first operand, so that a word that looks like one there is strange.
    `apart`: a flag with a value is not bundled with others (`tree -L 2`). `alone` are words that
    are harmless when nothing else is there (`cargo --version`). `network`: it needs the network.
    Lines in `runs` run unasked, lines in `asks` do not: a test holds the table to them.
    """

    does: Does = "changes"
    flags: str = ""
    operands: str = ""
    reason: str = ""
    runs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    verbs: dict[str, "Known"] = {}
    instead: str = ""
    needs: str = ""
    check: Check | None = None
    single: bool = False
    halts: bool = False
    apart: bool = False
    alone: str = ""
    network: bool = False


@lru_cache(maxsize=1024)
def flag_table(spec: str) -> dict[str, str]:
    """The flags of an entry: each with what it takes ("" nothing, "?", "=", "=read", "==")."""
    table = {}
    for token in spec.split():
        cut = min((at for at in (token.find("="), token.find("?")) if at > 0), default=len(token))
        table[token[:cut]] = token[cut:]
    return table


@lru_cache(maxsize=1024)
def operand_kinds(spec: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Kinds before the one that repeats, the one that repeats, and those after it."""
    kinds = spec.split()
    at = next((i for i, kind in enumerate(kinds) if kind.endswith("*")), len(kinds))
    repeated = kinds[at][:-1] if at < len(kinds) else ""
    return tuple(kinds[:at]), repeated, tuple(kinds[at + 1 :])


class Arg(Struct, frozen=True, gc=False, omit_defaults=True):
    """A word that the program would get.

    `pattern`: it came of a pattern, which was spelled so. Not `known`: it has an expansion in it,
    and `text` is how that is spelled.
    """

    text: str
    known: bool = True
    pattern: str = ""


def retold(args: Iterable[Arg]) -> str:
    """The canonical text of a command; what is not known stays as it is spelled."""
    return " ".join([quoted(arg.text) if arg.known else arg.text for arg in args])


class Flag(Struct, frozen=True, gc=False):
    """A flag that was given, what it takes (`=read`), and the value.

    `late`: it stands behind an operand. Some programs, and some systems, take it for one as well.
    """

    name: str
    kind: str
    value: Arg | None = None
    late: bool = False


class Given(Struct, gc=False):
    """The words of a command, sorted. `strange` is the first flag that no table names."""

    flags: list[Flag]
    operands: list[Arg]
    strange: str = ""

    def has(self, names: str) -> bool:
        """Was one of these flags given?"""
        wanted = names.split()
        return any(flag.name in wanted for flag in self.flags)

    def take(self, name: str, kind: str, value: Arg | None = None) -> None:
        """A flag was given."""
        self.flags.append(Flag(name, kind, value, bool(self.operands)))

    def values(self, *names: str) -> list[str]:
        """The values of these flags."""
        return [flag.value.text for flag in self.flags if flag.name in names and flag.value]


def sort_words(
    args: Sequence[Arg], table: dict[str, str], *, single: bool = False, stop: bool = False
) -> Given:
    """Sort the words after a program's name; with `stop`, all after the first operand are too."""
    given = Given([], [])
    at = 0
    while at < len(args):
        arg = args[at]
        at += 1
        text = arg.text
        if len(text) < 2 or text[0] != "-":
            given.operands.append(arg)
            if stop:
                break
        elif text == "--" and not single:
            break
        elif single or text[1] == "-":
            at += _long(arg, args[at : at + 2], table, given)
        else:
            at += _short(arg, args[at : at + 1], table, given)
    given.operands.extend(args[at:])
    return given


def _long(arg: Arg, rest: Sequence[Arg], table: dict[str, str], given: Given) -> int:
    """One long flag; how many of the words after it are its values."""
    name, equals, value = arg.text.partition("=")
    kind = table.get(name)
    if kind is None and name[1:].isdigit() and not equals and "-#" in table:
        kind = ""
    if kind is None or (equals and not kind):
        given.strange = given.strange or arg.text
        return 0
    if equals:
        given.take(name, kind, Arg(value, arg.known))
        return 0
    if not kind.startswith("="):
        given.take(name, kind)
        return 0
    count = 2 if kind == "==" else 1
    if len(rest) < count:
        given.strange = given.strange or arg.text
        return 0
    given.take(name, kind, rest[count - 1])
    return count


def _short(arg: Arg, rest: Sequence[Arg], table: dict[str, str], given: Given) -> int:
    """A bundle of short flags, the last of which may take what is left, or the next word."""
    text = arg.text
    for at in range(1, len(text)):
        name = "-" + text[at]
        kind = table.get(name)
        left = text[at + 1 :]
        if kind is None:
            if not (text[at:].isdigit() and "-#" in table):
                given.strange = given.strange or (name if at == 1 and not left else text)
            return 0
        if not kind:
            given.take(name, kind)
        elif kind == "?" or left:
            given.take(name, kind, Arg(left, arg.known) if left else None)
            return 0
        elif rest:
            given.take(name, kind, rest[0])
            return 1
        else:
            given.strange = given.strange or name
    return 0
