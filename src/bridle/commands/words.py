"""One word of a command line: its quotes and escapes taken off, its expansions found.

The text is read as one character for each byte (`view`), so that places in it are the places that
a tree of the same bytes has. Only what is certain is decoded. What the shell would make of a word
at the time it runs (variables, substitutions, braces) is never guessed at: it has a reason instead.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from bridle.commands.limits import PIECES, TOO_SPLIT, OverLimit
from bridle.commands.quotes import Unclear, unescape
from bridle.commands.shape import Word

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
