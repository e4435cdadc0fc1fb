"""Cuts a command line into tokens as bash does: words, operators, ends of lines, here-documents.

A word's quotes and escapes are removed and its expansions found. `$'…'` has the escapes of ANSI C,
as bash has them.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from bridle.command_analysis.syntax import Word

# Over one of these limits nothing is parsed at all.
MAX_CHARACTERS = 10_000
MAX_COMMANDS = 50
MAX_DEPTH = 20
MAX_TOKENS = 300  # of a plain line; beyond that a second reading takes too long
MAX_PIECES = 100  # of one word: quotes, escapes and what lies between

TOO_LONG = f"it is longer than {MAX_CHARACTERS:,} characters"
TOO_MANY_COMMANDS = f"it holds more than {MAX_COMMANDS} commands"
TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"
TOO_MANY_TOKENS = f"it has more than {MAX_TOKENS} words and signs"
TOO_MANY_PIECES = f"it has a word of more than {MAX_PIECES} pieces"


class LimitExceeded(Exception):
    """It is too much; the words say of what."""


class UnclearSyntax(Exception):
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
BAD_ESCAPE = "it holds an escape, $'\\…', that stands for no plain character"


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
            raise UnclearSyntax(BAD_ESCAPE)
        return "\\" + other
    if control is not None:
        return chr(ord(control) & 0x1F)
    code = int(octal, 8) if octal is not None else int(short or long or longest, 16)
    if not 0 < code < 0x80:
        raise UnclearSyntax(BAD_ESCAPE)
    return chr(code)


BREAKS = frozenset(" \t\n|&;<>()")

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./,+@%^=:\]\x80-\xff-]++")
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
_DOUBLE_QUOTES = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(r'\\([$`"\\\n])')
_BRACE_LIST = re.compile(r",|\.\.|\$")
_SAFE_CLASSES = re.compile(r"(?:[^\[\]\\'\"$]|\[!?(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\])*+")
_QUOTED_PATTERN = re.compile(r"[*?\[\]\\]")
_TAKES_TILDE = frozenset("=:")

SUBSTITUTION = "it holds a substitution, $(…), whose outcome is not known before it runs"
VARIABLE = "it holds a variable, $…, whose value is not known before it runs"
_EXPANSION_REASONS = (
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


class WordEnd(NamedTuple):
    """A word, and where it ends in the text."""

    word: Word
    end: int


def to_byte_text(text: str) -> str:
    """One character for each byte of it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")


def from_byte_text(text: str) -> str:
    """The characters that such bytes stand for."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def read_word(text: str, at: int) -> WordEnd:
    """The word that begins there, up to a blank or an operator."""
    plain = _PLAIN_WORD.match(text, at)
    if plain and (plain.end() == len(text) or text[plain.end()] in BREAKS):
        return WordEnd(Word(from_byte_text(plain.group())), plain.end())
    return _WordReader(text, at).read()


def decode_word(text: str) -> tuple[Word, str]:
    """A word that is the whole text, and what is not known of it: it is then as it is spelled."""
    return _decode_cached(text) if len(text) <= _SHORT else _decode(text)


def _decode(text: str) -> tuple[Word, str]:
    try:
        word, end = read_word(text, 0)
    except UnclearSyntax as unclear:
        return Word(from_byte_text(text), known=False), str(unclear)
    if end == len(text):
        return word, ""
    return Word(from_byte_text(text), known=False), _reason(text, end)


_SHORT = 64  # characters of a word that may come again: two readings of a line share most of them
_decode_cached = lru_cache(1024)(_decode)


class _WordReader:
    """One word as it is read."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.start, self.at = text, at, at
        self.pieces: list[str] = []
        self.globs = self.quoted_pattern = self.tilde = False
        self.bracket = self.brace = -1

    def read(self) -> WordEnd:
        text = self.text
        while self.at < len(text):
            found = _PIECE.match(text, self.at)
            if found is not None and len(self.pieces) < MAX_PIECES:
                self._add_piece(found)
            elif text[self.at] in BREAKS:
                break
            elif found is not None:
                raise LimitExceeded(TOO_MANY_PIECES)
            else:
                raise UnclearSyntax(_reason(text, self.at))
        raw = text[self.start : self.at]
        self._check_braces(raw)
        self._check_pattern(raw)
        word = Word(from_byte_text("".join(self.pieces)), self.globs, self.tilde)
        return WordEnd(word, self.at)

    def _add_piece(self, found: re.Match[str]) -> None:
        kind, raw = str(found.lastgroup), found.group()
        if kind == "plain" or kind == "dollar":
            self.pieces.append(raw)
        elif kind == "glob":
            self._add_glob(raw)
        elif kind == "brace":
            self._add_brace(raw)
        elif kind == "tilde":
            self._add_tilde()
        else:
            self._add_quotes(kind, raw)
        self.at = found.end()

    def _add_quotes(self, kind: str, raw: str) -> None:
        if kind == "single":
            inner = raw[1:-1]
        elif kind == "double":
            inner = _ESCAPED.sub(_unescape_one, raw[1:-1])
        elif kind == "escape":
            inner = raw[1]
        else:
            inner = unescape(raw[2:-1])
        self.quoted_pattern |= _QUOTED_PATTERN.search(inner) is not None
        self.pieces.append(inner)

    def _add_glob(self, raw: str) -> None:
        if raw == "[":
            self.bracket = self.at if self.bracket < 0 else self.bracket
        else:
            self.globs = True
        self.pieces.append(raw)

    def _add_brace(self, raw: str) -> None:
        if raw == "{" and self.brace < 0:
            self.brace = self.at
        self.pieces.append(raw)

    def _add_tilde(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if self.at == self.start:
            if after and after != "/" and after not in BREAKS:
                raise UnclearSyntax(HOME)
            self.tilde = True
        elif self.text[self.at - 1] in _TAKES_TILDE:
            raise UnclearSyntax(ASSIGNED_HOME)
        self.pieces.append("~")

    def _check_braces(self, raw: str) -> None:
        if self.brace >= 0 and _BRACE_LIST.search(raw, self.brace - self.start):
            raise UnclearSyntax(BRACES)

    def _check_pattern(self, raw: str) -> None:
        """`[` is a pattern only when it is closed; one with quotes inside is left alone."""
        if self.bracket >= 0:
            closed = "]" in raw[self.bracket - self.start :]
            if (closed or self.globs) and not (closed and _SAFE_CLASSES.fullmatch(raw)):
                raise UnclearSyntax(PATTERN)
            self.globs = closed
        if self.globs and self.quoted_pattern:
            raise UnclearSyntax(PATTERN)


def _unescape_one(found: re.Match[str]) -> str:
    return "" if found.group(1) == "\n" else found.group(1)


def _reason(text: str, at: int) -> str:
    """Why what stands there cannot be known."""
    if text[at] == '"':
        return _reason_inside(text, at)
    for opening, why in _EXPANSION_REASONS:
        if text.startswith(opening, at):
            return why
    return f"it holds a character, {text[at]!a}, that is not understood"


def _reason_inside(text: str, at: int) -> str:
    """Why a text in double quotes cannot be known: what it holds, or that it has no end."""
    whole = _DOUBLE_QUOTES.match(text, at)
    if whole is None:
        return "it holds a quote that is not closed"
    held = re.search(r"(?<!\\)(?:\\\\)*+([$`])", whole.group())
    return _reason(text, at + held.start(1)) if held is not None else VARIABLE


_GAP = re.compile(r"(?:[ \t]++|(?<=[ \t\n])\\\n(?![ \t]*+(?:\#|\Z)))*+(?:\#[^\n]*+)?")
_OPERATOR = re.compile(r"&>>|&>|&&|&|\|\||\|&|\||;|<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|\(|\)|\n")
_UNSUPPORTED = re.compile(r"[<>]\(|\(\(|;[;&]|\|\|\||&&&")
# Most words, plain or in plain quotes, and most operators, with the gap behind: where nothing else
# has to be looked at.
_COMMON_TOKEN = re.compile(
    r"""(?:([A-Za-z0-9_./,+@%^=:\]\x80-\xff-]++)|'([^'\n]*+)'|"([^"\\$`\n]*+)")"""
    r"(?:[ \t]++(?![\\\#])|(?=[\n|&;()])|\Z)"
    r"|(&&|\|\||>>|[|;&<>])[ \t]++(?![\\\#])"
)
_NUMBER = re.compile(r"[0-9]+")
_DELIMITER = re.compile(r"[A-Za-z0-9_.+-]+")
_EXPANDS = re.compile(r"[$`\\]")
_NO_WORD = Word("")

_OPERATOR_GROUP = 4  # the group of an operator
WORD, HANDLE, TEXT = "word", "handle", "text"
_UNSUPPORTED_REASONS = {
    "<(": "it holds a substitution, <(…), whose outcome is not known before it runs",
    ">(": "it holds a substitution, >(…), whose outcome is not known before it runs",
    "((": "it holds arithmetic, ((…)), whose outcome is not known before it runs",
}
_INCOMPLETE = "it is no complete command"


class Token(NamedTuple):
    """`kind` is WORD, HANDLE (a number before a redirection), TEXT, or the operator itself.

    The `word` of `<<` is the text that it hands over.
    """

    kind: str
    start: int
    end: int
    word: Word = _NO_WORD


class _HereDocument(NamedTuple):
    """A here-text that was announced: which token, its last line, and how it is read."""

    token: int
    line: str
    quoted: bool
    indented: bool


def tokenize(text: str) -> list[Token]:
    """All tokens."""
    found: list[Token] = []
    here_documents: list[_HereDocument] = []
    has_texts = "<<" in text
    at = _skip_gap(text, 0)
    while at < len(text):
        if common := _COMMON_TOKEN.match(text, at):
            found.append(_common_token(common))
            at = common.end()
        elif operator := _OPERATOR.match(text, at):
            at = _skip_gap(text, _add_operator(text, operator, found, here_documents))
        else:
            token = _word_token(text, read_word(text, at), at, bool(here_documents))
            found.append(token)
            at = _skip_gap(text, token.end)
        if has_texts and _begins_here_document(found):
            here_documents.append(_here_document(text, found))
        if len(found) > MAX_TOKENS:
            raise LimitExceeded(TOO_MANY_TOKENS)
    if here_documents:
        raise UnclearSyntax("it holds a here-text that does not end")
    return found


def _common_token(common: re.Match[str]) -> Token:
    """A token that needs no looking into."""
    group = common.lastindex or 0
    start, end, inner = common.start(), common.end(group), common.group(group)
    if group == _OPERATOR_GROUP:
        return Token(inner, start, end)
    return Token(
        WORD, start, end + (group > 1), Word(from_byte_text(inner))
    )  # the quotes are part of it


def _skip_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap is not None else at


def _word_token(text: str, read: WordEnd, at: int, has_here_document: bool) -> Token:
    raw = text[at : read.end]
    if has_here_document and "\n" in raw:
        raise UnclearSyntax("it holds a quote over several lines beside a here-text")
    if text[read.end : read.end + 1] in ("<", ">"):
        if _NUMBER.fullmatch(raw):
            if len(raw) > 1:
                raise UnclearSyntax("it redirects a handle of more than one digit")
            return Token(HANDLE, at, read.end, Word(raw))
        if raw.startswith("{"):
            raise UnclearSyntax("it redirects a handle that has a name, {…}>")
    return Token(WORD, at, read.end, read.word)


def _add_operator(
    text: str, operator: re.Match[str], found: list[Token], here_documents: list[_HereDocument]
) -> int:
    unseen = _UNSUPPORTED.match(text, operator.start())
    if unseen is not None:
        raise UnclearSyntax(_UNSUPPORTED_REASONS.get(unseen.group(), _INCOMPLETE))
    kind, at = operator.group(), operator.end()
    found.append(Token(kind, operator.start(), at))
    if kind == "\n":
        for mark in here_documents:
            at = _read_here_document(text, at, mark, found)
        here_documents.clear()
    return at


def _begins_here_document(found: list[Token]) -> bool:
    """Is the last token the word behind `<<`?"""
    if len(found) < 2 or found[-2].kind not in ("<<", "<<-"):
        return False
    return found[-1].kind in (WORD, HANDLE)


def _here_document(text: str, found: list[Token]) -> _HereDocument:
    operator, word = found[-2:]
    raw = text[word.start : word.end]
    line = word.word.text
    if not _DELIMITER.fullmatch(line):
        raise UnclearSyntax("it holds a here-text with an unusual last line")
    return _HereDocument(len(found) - 2, line, raw != line, operator.kind == "<<-")


def _read_here_document(text: str, at: int, mark: _HereDocument, found: list[Token]) -> int:
    """Read to the line that ends it. The text becomes the word of the operator."""
    lines: list[str] = []
    end = at
    while end < len(text):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        line = text[end:stop].lstrip("\t") if mark.indented else text[end:stop]
        end = min(stop + 1, len(text))
        if line == mark.line:
            found[mark.token] = found[mark.token]._replace(word=_here_document_body(lines, mark))
            found.append(Token(TEXT, at, stop))
            return stop
        lines.append(line + "\n")
    raise UnclearSyntax("it holds a here-text that does not end")


def _here_document_body(lines: list[str], mark: _HereDocument) -> Word:
    body = "".join(lines)
    if not mark.quoted and _EXPANDS.search(body):
        raise UnclearSyntax("it holds a here-text that the shell would expand")
    return Word(from_byte_text(body))
