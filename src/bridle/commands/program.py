"""What is known of a program: the shape of an entry in the table. Values, no more.

An entry is data. `flags` lists the flags that are known to be harmless, with what they take:

    -l          nothing            -n=         a value, in the same word or the next
    --color?    a value or not     -f=read     a value that is a path to read (write, delete, cd …)
    --arg==     two values         -#          a number, as in `head -5`

`*` stands for all of them: the program has no flags that do anything (`echo`). A flag that is not
listed asks. `operands` says what the other words are, in order; one kind may
be repeated: `text read*` (grep), `read* write` (cp), and nothing at all means that there are none.
"""

from functools import lru_cache

from msgspec import Struct

from bridle.policy import Does


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
    check: str = ""
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
