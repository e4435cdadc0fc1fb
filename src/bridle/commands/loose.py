"""A last reading, for what is too tangled for a tree: whatever may be a command is taken for one.

What it finds is for rules that forbid and for the floor. It knows quotes and operators and nothing
of the grammar, looks inside of double quotes too, and takes time in proportion to the text.
"""

import re

from bridle.commands.limits import COMMANDS, TOKENS, TOO_MANY, OverLimit
from bridle.commands.plain import FLOW, KINDS, Follows
from bridle.commands.shape import Redirect, Simple, Word
from bridle.commands.words import decode, unview

_PIECE = re.compile(
    r"""
      (?P<gap>    [ \t]++ | \\\n )
    | (?P<end>    [;&|\n()`]++ | \$\( | [{}](?=[ \t\n;]) )
    | (?P<redirect> &>>? | >> | >\| | >& | <& | <<<? | [<>] )
    | (?P<word>   (?: '[^']*+' | "(?: [^"\\`$]++ | \\. | \$(?!\() )*+" | \\.
                    | [^ \t\n;&|()`<>\\] )++ )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_QUOTES = str.maketrans("", "", "\"'\\")
WHY = "it is too tangled to be read with certainty"


def commands_of(text: str) -> tuple[Simple, ...]:
    """Whatever may be a command in it, in order."""
    found: list[Simple] = []
    pieces: list[tuple[str, str]] = []
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "end":
            if pieces:
                _close(pieces, found)
                pieces = []
        elif kind != "gap":
            pieces.append((str(kind), piece.group()))
    _close(pieces, found)
    return tuple(found)


def _close(pieces: list[tuple[str, str]], found: list[Simple]) -> None:
    """Make a command of what stands between two ends. What stands there often is taken once."""
    words: list[str] = []
    redirects: dict[tuple[str, str], None] = {}
    operator = ""
    for kind, raw in pieces:
        if kind == "redirect":
            operator = raw
        elif operator:
            redirects[operator, raw] = None
            operator = ""
        elif words or (raw not in FLOW and not _ASSIGNS.match(raw)):
            words.append(raw)
    if words or redirects:
        found.append(_simple(words, list(redirects), ";" if found else ""))
    if len(found) > COMMANDS:
        raise OverLimit(TOO_MANY)


def _simple(words: list[str], redirects: list[tuple[str, str]], follows: Follows) -> Simple:
    kept = words if len(words) <= TOKENS else [words[0], *dict.fromkeys(words[1:])]
    return Simple(
        tuple([_word(raw, number) for number, raw in enumerate(kept)]),
        redirects=tuple(
            [
                Redirect(KINDS[operator], _word(raw, number))
                for number, (operator, raw) in enumerate(redirects)
            ]
        ),
        follows=follows,
        opaque=WHY,
    )


def _word(raw: str, count: int) -> Word:
    """A word; after many of them only its quotes are taken off, which is quick."""
    if count < TOKENS:
        return decode(raw)[0]
    return Word(unview(raw.translate(_QUOTES)), known=False)
