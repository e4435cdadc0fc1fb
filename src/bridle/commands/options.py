"""Which words of a command are flags, which are their values, and which are operands.

Only flags that a table names are understood; a shortened long flag is a strange one. Knows nothing
of what a flag does.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from bridle.commands.notes import quoted


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
