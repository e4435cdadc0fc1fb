"""Reads a command line as `bash -c` would, or says why that is not certain.

Two readings have to agree: our own grammar, and the tree that tree-sitter makes. Of a line that is
too tangled for both, whatever may be a command is taken for one: for rules that forbid, and for the
floor.
"""

import re
from functools import lru_cache
from itertools import accumulate, islice

from bridle.command_analysis.grammar import FLOW, KINDS, Draft, Follows, read_plain
from bridle.command_analysis.lexer import (
    CHARACTERS,
    COMMANDS,
    DEPTH,
    TOKENS,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    OverLimit,
    Token,
    Unclear,
    decode,
    tokens_of,
    unview,
    view,
)
from bridle.command_analysis.syntax import Redirect, Script, Simple, Word
from bridle.command_analysis.syntax_tree import agrees, commands_in, tree_of

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


_UNPRINTED = str.maketrans("", "", "\n\t")
_EMPTY_LETTERS = re.compile("[\u115f\u1160\u2800\u3164\uffa0]")  # printable, and nothing is seen
STRANGE = "it holds a character that cannot be seen, or that only looks like a blank"
DIFFERS = "two ways of reading it do not agree"
REREADS = "it changes how the shell reads what follows"
REHOMES = "it may change the folder that ~ stands for"
_REREADS = frozenset(("alias", "unalias", "shopt", "enable", "set"))
_HARMLESS = re.compile(r"-[eux]+|-[eux]*o|pipefail|errexit|nounset|xtrace")


def parse(text: str) -> Script:
    """Every simple command in it. Never raises; what is over a limit is refused, unread."""
    try:
        check(text)
    except OverLimit as limit:
        return Script(refused=str(limit))
    return _parsed(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Script:
    """The same line is judged, asked about and explained: it is read once."""
    try:
        return _read(text, view(text))
    except OverLimit as limit:
        return Script(refused=str(limit))


def _read(text: str, viewed: str) -> Script:
    strange = not text.translate(_UNPRINTED).isprintable() or bool(_EMPTY_LETTERS.search(text))
    try:
        tokens = tokens_of(viewed)
        drafts = read_plain(viewed, tokens)
    except Unclear as unclear:
        return Script(_visible(viewed), STRANGE if strange else str(unclear))
    plain = tuple(draft.finished() for draft in drafts)
    if strange or (changed := _changes_reading(plain)):
        return Script(plain, STRANGE if strange else changed)
    return _compared(viewed, tokens, drafts, plain)


def _changes_reading(commands: tuple[Simple, ...]) -> str:
    """Why later words may mean something else than they do now: options, aliases, another home."""
    if len(commands) > 1 and any(map(_rereads, commands)):
        return REREADS
    if not any(map(_has_tilde, commands)):
        return ""
    names = {name for command in commands for name, _ in command.assignments}
    if "HOME" in names or any("HOME" in word.text for one in commands for word in one.words):
        return REHOMES
    return ""


def _has_tilde(command: Simple) -> bool:
    for word in command.words:
        if word.tilde:
            return True
    return any(redirect.target.tilde for redirect in command.redirects)


def _rereads(command: Simple) -> bool:
    if not command.words or command.words[0].text not in _REREADS:
        return False
    argv = command.argv
    return argv[0] != "set" or not all(map(_HARMLESS.fullmatch, argv[1:]))


def _visible(text: str) -> tuple[Simple, ...]:
    """Every command that can be seen in what is not plain, also once its lines are joined."""
    seen = _seen(text)
    joined = text.replace("\\\n", "")  # as the shell does, but for quotes and comments
    return seen if joined == text else _with_new(seen, _seen(joined))


def _seen(text: str) -> tuple[Simple, ...]:
    if is_tangled(text):
        return commands_of(text)
    root = tree_of(text)
    seen = commands_in(root, text)
    if not root.has_error:
        return seen
    return _with_new(seen, commands_of(text))


def _compared(
    text: str, tokens: list[Token], drafts: list[Draft], plain: tuple[Simple, ...]
) -> Script:
    """The plain reading, if the tree's is the same; else what either of them sees."""
    root = tree_of(text)
    if agrees(root, tokens, [draft.head for draft in drafts if draft.head >= 0]):
        return Script(plain)
    return Script(_with_new(plain, commands_in(root, text)), DIFFERS)


def _with_new(seen: tuple[Simple, ...], others: tuple[Simple, ...]) -> tuple[Simple, ...]:
    """All of the first, and of the others those whose words are not among them."""
    known = {command.argv for command in seen if not command.redirects}
    return (*seen, *(one for one in others if one.argv not in known))


# Text that would take too long to parse, recognised without parsing it.

_COSTLY_ONES = 100
_HERE_TEXTS = 10
_MARKS = 500  # of another line: blanks and signs, but for those in here-texts
_HERE_TEXT = re.compile(
    r"<<-?[ \t]*(['\"\\]?)([A-Za-z0-9_]+)\1[^\n]*\n(.*?\n)??\t*\2(?=\n|\Z)", re.S
)
_MARK = re.compile(r"[ \t\n]+|[^\w \t\n]")
_LIVE = re.compile(r"[$`]|<<")
_COSTLY = re.compile(r"\$\[|<<|`")  # a tree takes the square of their number
_NOT_BRACKETS = re.compile(r"[^(){}]+")
_STEPS = {"(": 1, "{": 1, ")": -1, "}": -1}


def check(text: str) -> None:
    """Refuse what is too long, or opens brackets too deep, quoted or not."""
    if len(text) > CHARACTERS:
        raise OverLimit(TOO_LONG)
    if text.count("(") + text.count("{") <= DEPTH:
        return
    brackets = _NOT_BRACKETS.sub("", text)
    if max(accumulate(map(_STEPS.__getitem__, brackets))) > DEPTH:
        raise OverLimit(TOO_DEEP)


def is_tangled(text: str) -> bool:
    """Would a tree of this take too long? Here-texts count only for what the shell expands."""
    if len(text) <= _MARKS:
        return False
    if text.count("<<") <= _HERE_TEXTS:  # each of them is a search through the whole text
        text = _HERE_TEXT.sub(lambda found: " ".join(_LIVE.findall(found.group())), text)
    return _has_more(_MARK, text, _MARKS) or _has_more(_COSTLY, text, _COSTLY_ONES)


def _has_more(pattern: re.Pattern[str], text: str, most: int) -> bool:
    return next(islice(pattern.finditer(text), most, None), None) is not None
