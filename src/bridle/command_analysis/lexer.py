"""Cuts a command line into tokens as bash does: words, operators, ends of lines, here-documents.

A word's quotes and escapes are removed and its expansions found. `$'…'` has the escapes of ANSI C,
as bash has them.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from bridle.command_analysis.syntax import Word

# Over one of these limits nothing is parsed at all.
CHARACTERS = 10_000
COMMANDS = 50
DEPTH = 20
TOKENS = 300  # of a plain line; beyond that a second reading takes too long
PIECES = 100  # of one word: quotes, escapes and what lies between

TOO_LONG = f"it is longer than {CHARACTERS:,} characters"
TOO_MANY = f"it holds more than {COMMANDS} commands"
TOO_DEEP = f"it is nested more than {DEPTH} deep"
TOO_BUSY = f"it has more than {TOKENS} words and signs"
TOO_SPLIT = f"it has a word of more than {PIECES} pieces"


class OverLimit(Exception):
    """It is too much; the words say of what."""


class Unclear(Exception):
    """This is not understood with certainty; the words say what."""


_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|"
    r"u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c([A-Za-z])|(.))",
    re.DOTALL,
)
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
NO_TEXT = "it holds an escape, $'\\…', that stands for no plain character"


def unescape(inner: str) -> str:
    """What the quoted characters stand for."""
    return _ESCAPE.sub(_character, inner) if "\\" in inner else inner


def _character(found: re.Match[str]) -> str:
    """The one character, where it is ASCII: beyond that it depends on the language set."""
    letter, octal, short, long, longest, control, other = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if other is not None:
        if other in "xuUc":
            raise Unclear(NO_TEXT)
        return "\\" + other
    if control is not None:
        return chr(ord(control) & 0x1F)
    code = int(octal, 8) if octal is not None else int(short or long or longest, 16)
    if not 0 < code < 0x80:
        raise Unclear(NO_TEXT)
    return chr(code)


BREAKS = frozenset(" \t\n|&;<>()")

_PLAIN = re.compile(r"[A-Za-z0-9_./,+@%^=:\]\x80-\xff-]++")
_PIECE = re.compile(
    r"""
      (?P<plain>  [A-Za-z0-9_./,+@%^=:\]!\#\x80-\xff-]++ )
    | (?P<single> '[^']*+' )
    | (?P<double> "(?: [^"\\$`]++ | \\. | \$(?=["\ |)/]) )*+" )
    | (?P<ansi>   \$'(?: [^'\\]++ | \\. )*+' )
    | (?P<escape> \\[^\n] )
    | (?P<glob>   [*?\[] )
    | (?P<brace>  [{}] )
    | (?P<tilde>  ~ )
    | (?P<dollar> \$(?=[ \t\n;|&]|\Z) )
    """,
    re.VERBOSE | re.DOTALL,
)
_LOOSE_DOUBLE = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(r'\\([$`"\\\n])')
_SPREADS = re.compile(r",|\.\.|\$")
_CLASSES = re.compile(r"(?:[^\[\]\\'\"$]|\[!?(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\])*+")
_QUOTED_PATTERN = re.compile(r"[*?\[\]\\]")
_TAKES_TILDE = frozenset("=:")

SUBSTITUTION = "it holds a substitution, $(…), whose outcome is not known before it runs"
VARIABLE = "it holds a variable, $…, whose value is not known before it runs"
_WHY = (
    ("$((", "it holds arithmetic, $((…)), whose outcome is not known before it runs"),
    ("$[", "it holds arithmetic, $[…], whose outcome is not known before it runs"),
    ("$(", SUBSTITUTION),
    ("`", "it holds a substitution, `…`, whose outcome is not known before it runs"),
    ("${", "it holds an expansion, ${…}, whose outcome is not known before it runs"),
    ('$"', 'it holds text that depends on the language, $"…"'),
    ("$'", "it holds a quote that is not closed"),
    ("$", VARIABLE),
    ("'", "it holds a quote that is not closed"),
    ("\\", "it ends a line with a backslash inside a word"),
)
BRACES = "it holds braces, {…}, that the shell would spread into several words"
PATTERN = "it holds a pattern that is not certain to be understood"
HOME = "it holds a ~ that stands for another folder than the home folder"
ASSIGNED_HOME = "it holds a ~ behind = or :, which the shell may replace"


class Read(NamedTuple):
    """A word, and where it ends in the text."""

    word: Word
    end: int


def view(text: str) -> str:
    """One character for each byte of it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")


def unview(text: str) -> str:
    """The characters that such bytes stand for."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def word_at(text: str, at: int) -> Read:
    """The word that begins there, up to a blank or an operator."""
    plain = _PLAIN.match(text, at)
    if plain and (plain.end() == len(text) or text[plain.end()] in BREAKS):
        return Read(Word(unview(plain.group())), plain.end())
    return _Reading(text, at).read()


def decode(text: str) -> tuple[Word, str]:
    """A word that is the whole text, and what is not known of it: it is then as it is spelled."""
    return _decoded(text) if len(text) <= _SHORT else _decode(text)


def _decode(text: str) -> tuple[Word, str]:
    try:
        word, end = word_at(text, 0)
    except Unclear as unclear:
        return Word(unview(text), known=False), str(unclear)
    if end == len(text):
        return word, ""
    return Word(unview(text), known=False), _reason(text, end)


_SHORT = 64  # characters of a word that may come again: two readings of a line share most of them
_decoded = lru_cache(1024)(_decode)


class _Reading:
    """One word as it is read."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.start, self.at = text, at, at
        self.pieces: list[str] = []
        self.globs = self.quoted_pattern = self.tilde = False
        self.bracket = self.brace = -1

    def read(self) -> Read:
        text = self.text
        while self.at < len(text):
            found = _PIECE.match(text, self.at)
            if found is not None and len(self.pieces) < PIECES:
                self._take(found)
            elif text[self.at] in BREAKS:
                break
            elif found is not None:
                raise OverLimit(TOO_SPLIT)
            else:
                raise Unclear(_reason(text, self.at))
        raw = text[self.start : self.at]
        self._check_braces(raw)
        self._check_pattern(raw)
        word = Word(unview("".join(self.pieces)), self.globs, self.tilde)
        return Read(word, self.at)

    def _take(self, found: re.Match[str]) -> None:
        kind, raw = str(found.lastgroup), found.group()
        if kind == "plain" or kind == "dollar":
            self.pieces.append(raw)
        elif kind == "glob":
            self._glob(raw)
        elif kind == "brace":
            self._brace(raw)
        elif kind == "tilde":
            self._tilde()
        else:
            self._quote(kind, raw)
        self.at = found.end()

    def _quote(self, kind: str, raw: str) -> None:
        if kind == "single":
            inner = raw[1:-1]
        elif kind == "double":
            inner = _ESCAPED.sub(_unescaped, raw[1:-1])
        elif kind == "escape":
            inner = raw[1]
        else:
            inner = unescape(raw[2:-1])
        self.quoted_pattern |= _QUOTED_PATTERN.search(inner) is not None
        self.pieces.append(inner)

    def _glob(self, raw: str) -> None:
        if raw == "[":
            self.bracket = self.at if self.bracket < 0 else self.bracket
        else:
            self.globs = True
        self.pieces.append(raw)

    def _brace(self, raw: str) -> None:
        if raw == "{" and self.brace < 0:
            self.brace = self.at
        self.pieces.append(raw)

    def _tilde(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if self.at == self.start:
            if after and after != "/" and after not in BREAKS:
                raise Unclear(HOME)
            self.tilde = True
        elif self.text[self.at - 1] in _TAKES_TILDE:
            raise Unclear(ASSIGNED_HOME)
        self.pieces.append("~")

    def _check_braces(self, raw: str) -> None:
        if self.brace >= 0 and _SPREADS.search(raw, self.brace - self.start):
            raise Unclear(BRACES)

    def _check_pattern(self, raw: str) -> None:
        """`[` is a pattern only when it is closed; one with quotes inside is left alone."""
        if self.bracket >= 0:
            closed = "]" in raw[self.bracket - self.start :]
            if (closed or self.globs) and not (closed and _CLASSES.fullmatch(raw)):
                raise Unclear(PATTERN)
            self.globs = closed
        if self.globs and self.quoted_pattern:
            raise Unclear(PATTERN)


def _unescaped(found: re.Match[str]) -> str:
    return "" if found.group(1) == "\n" else found.group(1)


def _reason(text: str, at: int) -> str:
    """Why what stands there cannot be known."""
    if text[at] == '"':
        return _reason_inside(text, at)
    for opening, why in _WHY:
        if text.startswith(opening, at):
            return why
    return f"it holds a character, {text[at]!a}, that is not understood"


def _reason_inside(text: str, at: int) -> str:
    """Why a text in double quotes cannot be known: what it holds, or that it has no end."""
    whole = _LOOSE_DOUBLE.match(text, at)
    if whole is None:
        return "it holds a quote that is not closed"
    held = re.search(r"(?<!\\)(?:\\\\)*+([$`])", whole.group())
    return _reason(text, at + held.start(1)) if held is not None else VARIABLE


_GAP = re.compile(r"(?:[ \t]++|(?<=[ \t\n])\\\n(?![ \t]*+(?:\#|\Z)))*+(?:\#[^\n]*+)?")
_OPERATOR = re.compile(r"&>>|&>|&&|&|\|\||\|&|\||;|<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|\(|\)|\n")
_UNSEEN = re.compile(r"[<>]\(|\(\(|;[;&]|\|\|\||&&&")
# Most words, plain or in plain quotes, and most operators, with the gap behind: where nothing else
# has to be looked at.
_USUAL = re.compile(
    r"""(?:([A-Za-z0-9_./,+@%^=:\]\x80-\xff-]++)|'([^'\n]*+)'|"([^"\\$`\n]*+)")"""
    r"(?:[ \t]++(?![\\\#])|(?=[\n|&;()])|\Z)"
    r"|(&&|\|\||>>|[|;&<>])[ \t]++(?![\\\#])"
)
_NUMBER = re.compile(r"[0-9]+")
_MARK = re.compile(r"[A-Za-z0-9_.+-]+")
_LIVE = re.compile(r"[$`\\]")
_NOTHING = Word("")

_SIGN = 4  # the group of an operator
WORD, HANDLE, TEXT = "word", "handle", "text"
_WHY_UNSEEN = {
    "<(": "it holds a substitution, <(…), whose outcome is not known before it runs",
    ">(": "it holds a substitution, >(…), whose outcome is not known before it runs",
    "((": "it holds arithmetic, ((…)), whose outcome is not known before it runs",
}
_NO_COMMAND = "it is no complete command"


class Token(NamedTuple):
    """`kind` is WORD, HANDLE (a number before a redirection), TEXT, or the operator itself.

    The `word` of `<<` is the text that it hands over.
    """

    kind: str
    start: int
    end: int
    word: Word = _NOTHING


class _Mark(NamedTuple):
    """A here-text that was announced: which token, its last line, and how it is read."""

    token: int
    line: str
    quoted: bool
    indented: bool


def tokens_of(text: str) -> list[Token]:
    """All tokens."""
    found: list[Token] = []
    awaited: list[_Mark] = []
    has_texts = "<<" in text
    at = _skip(text, 0)
    while at < len(text):
        if usual := _USUAL.match(text, at):
            found.append(_plain(usual))
            at = usual.end()
        elif operator := _OPERATOR.match(text, at):
            at = _skip(text, _operate(text, operator, found, awaited))
        else:
            token = _worded(text, word_at(text, at), at, bool(awaited))
            found.append(token)
            at = _skip(text, token.end)
        if has_texts and _is_announced(found):
            awaited.append(_announced(text, found))
        if len(found) > TOKENS:
            raise OverLimit(TOO_BUSY)
    if awaited:
        raise Unclear("it holds a here-text that does not end")
    return found


def _plain(usual: re.Match[str]) -> Token:
    """A token that needs no looking into."""
    group = usual.lastindex or 0
    start, end, inner = usual.start(), usual.end(group), usual.group(group)
    if group == _SIGN:
        return Token(inner, start, end)
    return Token(WORD, start, end + (group > 1), Word(unview(inner)))  # the quotes are part of it


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap is not None else at


def _worded(text: str, read: Read, at: int, awaiting: bool) -> Token:
    raw = text[at : read.end]
    if awaiting and "\n" in raw:
        raise Unclear("it holds a quote over several lines beside a here-text")
    if text[read.end : read.end + 1] in ("<", ">"):
        if _NUMBER.fullmatch(raw):
            if len(raw) > 1:
                raise Unclear("it redirects a handle of more than one digit")
            return Token(HANDLE, at, read.end, Word(raw))
        if raw.startswith("{"):
            raise Unclear("it redirects a handle that has a name, {…}>")
    return Token(WORD, at, read.end, read.word)


def _operate(text: str, operator: re.Match[str], found: list[Token], awaited: list[_Mark]) -> int:
    unseen = _UNSEEN.match(text, operator.start())
    if unseen is not None:
        raise Unclear(_WHY_UNSEEN.get(unseen.group(), _NO_COMMAND))
    kind, at = operator.group(), operator.end()
    found.append(Token(kind, operator.start(), at))
    if kind == "\n":
        for mark in awaited:
            at = _here_text(text, at, mark, found)
        awaited.clear()
    return at


def _is_announced(found: list[Token]) -> bool:
    """Is the last token the word behind `<<`?"""
    if len(found) < 2 or found[-2].kind not in ("<<", "<<-"):
        return False
    return found[-1].kind in (WORD, HANDLE)


def _announced(text: str, found: list[Token]) -> _Mark:
    operator, word = found[-2:]
    raw = text[word.start : word.end]
    line = word.word.text
    if not _MARK.fullmatch(line):
        raise Unclear("it holds a here-text with an unusual last line")
    return _Mark(len(found) - 2, line, raw != line, operator.kind == "<<-")


def _here_text(text: str, at: int, mark: _Mark, found: list[Token]) -> int:
    """Read to the line that ends it. The text becomes the word of the operator."""
    lines: list[str] = []
    end = at
    while end < len(text):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        line = text[end:stop].lstrip("\t") if mark.indented else text[end:stop]
        end = min(stop + 1, len(text))
        if line == mark.line:
            found[mark.token] = found[mark.token]._replace(word=_body(lines, mark))
            found.append(Token(TEXT, at, stop))
            return stop
        lines.append(line + "\n")
    raise Unclear("it holds a here-text that does not end")


def _body(lines: list[str], mark: _Mark) -> Word:
    body = "".join(lines)
    if not mark.quoted and _LIVE.search(body):
        raise Unclear("it holds a here-text that the shell would expand")
    return Word(unview(body))
