"""Splits a command line into tokens as bash does: words, operators, line ends, here-documents.

Quotes and escapes of words are decoded, also those of `$'…'`. A word with an expansion is not
known before the command runs.
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
TOO_MANY_COMMANDS = f"it contains more than {MAX_COMMANDS} commands"
TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"
TOO_MANY_TOKENS = f"it has more than {MAX_TOKENS} words and signs"
TOO_MANY_PIECES = f"it has a word of more than {MAX_PIECES} pieces"


class LimitExceeded(Exception):
    """The text is over a limit, which the message names."""


class UnclearSyntax(Exception):
    """The text is not understood with certainty. The message says what."""


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
BAD_ESCAPE = "it contains an escape, $'\\…', that is not a plain character"


def unescape(inner: str) -> str:
    """Return the text that `$'…'` with this inside stands for."""
    return _ESCAPE.sub(_character, inner) if "\\" in inner else inner


def _character(match: re.Match[str]) -> str:
    """Return the character of an escape if it is ASCII; others depend on the locale."""
    letter, octal, short, long, longest, control, other = match.groups()
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

SUBSTITUTION = "it contains a substitution, $(…), whose output is not known before it runs"
VARIABLE = "it contains a variable, $…, whose value is not known before it runs"
_EXPANSION_REASONS = (
    ("$((", "it contains arithmetic, $((…)), whose value is not known before it runs"),
    ("$[", "it contains arithmetic, $[…], whose value is not known before it runs"),
    ("$(", SUBSTITUTION),
    ("`", "it contains a substitution, `…`, whose output is not known before it runs"),
    ("${", "it contains an expansion, ${…}, whose value is not known before it runs"),
    ('$"', 'it contains text that depends on the language, $"…"'),
    ("$'", "it contains a quote that is not closed"),
    ("$", VARIABLE),
    ("'", "it contains a quote that is not closed"),
    ("\\", "it ends a line with a backslash inside a word"),
)
BRACES = "it contains braces, {…}, that the shell would expand to several words"
PATTERN = "it contains a pattern that shells may read differently"
HOME = "it contains a ~ that stands for another folder than the home folder"
ASSIGNED_HOME = "it contains a ~ after = or :, which the shell may replace"


class WordEnd(NamedTuple):
    """A word, and where it ends in the text."""

    word: Word
    end: int


def to_byte_text(text: str) -> str:
    """Return a text with one character for each byte of this one in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("latin-1")


def from_byte_text(text: str) -> str:
    """Return the text whose bytes these characters are."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def read_word(text: str, index: int) -> WordEnd:
    """Return the word that begins there. It ends at a blank or an operator."""
    plain = _PLAIN_WORD.match(text, index)
    if plain and (plain.end() == len(text) or text[plain.end()] in BREAKS):
        return WordEnd(Word(from_byte_text(plain.group())), plain.end())
    return _WordReader(text, index).read()


def decode_word(text: str) -> tuple[Word, str]:
    """Decode a text that is one word. Return also why it is not known, if it is not.

    A word that is not known keeps its source text.
    """
    return _decode_cached(text) if len(text) <= _SHORT else _decode(text)


def _decode(text: str) -> tuple[Word, str]:
    try:
        word, end = read_word(text, 0)
    except UnclearSyntax as unclear:
        return Word(from_byte_text(text), known=False), str(unclear)
    if end == len(text):
        return word, ""
    return Word(from_byte_text(text), known=False), _reason(text, end)


_SHORT = 64  # characters of a word that is cached: the parsers share most words of a line
_decode_cached = lru_cache(1024)(_decode)


class _WordReader:
    """Reads one word. `bracket` and `brace` are where the first ones are, -1 without one."""

    def __init__(self, text: str, index: int) -> None:
        self.text, self.start, self.index = text, index, index
        self.pieces: list[str] = []
        self.globs = self.quoted_pattern = self.tilde = False
        self.bracket = self.brace = -1

    def read(self) -> WordEnd:
        text = self.text
        while self.index < len(text):
            match = _PIECE.match(text, self.index)
            if match is not None and len(self.pieces) < MAX_PIECES:
                self._add_piece(match)
            elif text[self.index] in BREAKS:
                break
            elif match is not None:
                raise LimitExceeded(TOO_MANY_PIECES)
            else:
                raise UnclearSyntax(_reason(text, self.index))
        source = text[self.start : self.index]
        self._check_braces(source)
        self._check_pattern(source)
        word = Word(from_byte_text("".join(self.pieces)), self.globs, self.tilde)
        return WordEnd(word, self.index)

    def _add_piece(self, match: re.Match[str]) -> None:
        kind, source = str(match.lastgroup), match.group()
        if kind == "plain" or kind == "dollar":
            self.pieces.append(source)
        elif kind == "glob":
            self._add_glob(source)
        elif kind == "brace":
            self._add_brace(source)
        elif kind == "tilde":
            self._add_tilde()
        else:
            self._add_quotes(kind, source)
        self.index = match.end()

    def _add_quotes(self, kind: str, source: str) -> None:
        if kind == "single":
            inner = source[1:-1]
        elif kind == "double":
            inner = _ESCAPED.sub(_unescape_one, source[1:-1])
        elif kind == "escape":
            inner = source[1]
        else:
            inner = unescape(source[2:-1])
        self.quoted_pattern |= _QUOTED_PATTERN.search(inner) is not None
        self.pieces.append(inner)

    def _add_glob(self, source: str) -> None:
        if source == "[":
            self.bracket = self.index if self.bracket < 0 else self.bracket
        else:
            self.globs = True
        self.pieces.append(source)

    def _add_brace(self, source: str) -> None:
        if source == "{" and self.brace < 0:
            self.brace = self.index
        self.pieces.append(source)

    def _add_tilde(self) -> None:
        after = self.text[self.index + 1 : self.index + 2]
        if self.index == self.start:
            if after and after != "/" and after not in BREAKS:
                raise UnclearSyntax(HOME)
            self.tilde = True
        elif self.text[self.index - 1] in _TAKES_TILDE:
            raise UnclearSyntax(ASSIGNED_HOME)
        self.pieces.append("~")

    def _check_braces(self, source: str) -> None:
        if self.brace >= 0 and _BRACE_LIST.search(source, self.brace - self.start):
            raise UnclearSyntax(BRACES)

    def _check_pattern(self, source: str) -> None:
        """Note a pattern in brackets if it is closed. One with quotes inside is unclear."""
        if self.bracket >= 0:
            closed = "]" in source[self.bracket - self.start :]
            if (closed or self.globs) and not (closed and _SAFE_CLASSES.fullmatch(source)):
                raise UnclearSyntax(PATTERN)
            self.globs = closed
        if self.globs and self.quoted_pattern:
            raise UnclearSyntax(PATTERN)


def _unescape_one(match: re.Match[str]) -> str:
    return "" if match.group(1) == "\n" else match.group(1)


def _reason(text: str, index: int) -> str:
    """Say why what is there cannot be known."""
    if text[index] == '"':
        return _reason_inside(text, index)
    for opening, reason in _EXPANSION_REASONS:
        if text.startswith(opening, index):
            return reason
    return f"it contains a character, {text[index]!a}, that is not understood"


def _reason_inside(text: str, index: int) -> str:
    """Say why a text in double quotes cannot be known: what it contains, or that it has no end."""
    quotes = _DOUBLE_QUOTES.match(text, index)
    if quotes is None:
        return "it contains a quote that is not closed"
    expansion = re.search(r"(?<!\\)(?:\\\\)*+([$`])", quotes.group())
    return _reason(text, index + expansion.start(1)) if expansion is not None else VARIABLE


_GAP = re.compile(r"(?:[ \t]++|(?<=[ \t\n])\\\n(?![ \t]*+(?:\#|\Z)))*+(?:\#[^\n]*+)?")
_OPERATOR = re.compile(r"&>>|&>|&&|&|\|\||\|&|\||;|<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|\(|\)|\n")
_UNSUPPORTED = re.compile(r"[<>]\(|\(\(|;[;&]|\|\|\||&&&")
# Most words, plain or in plain quotes, and most operators, with the gap after them. For these, one
# match is enough.
_COMMON_TOKEN = re.compile(
    r"""(?:([A-Za-z0-9_./,+@%^=:\]\x80-\xff-]++)|'([^'\n]*+)'|"([^"\\$`\n]*+)")"""
    r"(?:[ \t]++(?![\\\#])|(?=[\n|&;()])|\Z)"
    r"|(&&|\|\||>>|[|;&<>])[ \t]++(?![\\\#])"
)
_NUMBER = re.compile(r"[0-9]+")
_DELIMITER = re.compile(r"[A-Za-z0-9_.+-]+")
_EXPANDS = re.compile(r"[$`\\]")
_EMPTY_WORD = Word("")

_OPERATOR_GROUP = 4  # of `_COMMON_TOKEN`
WORD, HANDLE, TEXT = "word", "handle", "text"
_UNSUPPORTED_REASONS = {
    "<(": "it contains a substitution, <(…), whose output is not known before it runs",
    ">(": "it contains a substitution, >(…), whose output is not known before it runs",
    "((": "it contains arithmetic, ((…)), whose value is not known before it runs",
}
_INCOMPLETE = "it is not a complete command"


class Token(NamedTuple):
    """A part of a command line, from `start` to `end`.

    `kind` is WORD, HANDLE (a number before a redirection), TEXT (a here-document), or the operator
    itself. The `word` of `<<` is the text of its here-document.
    """

    kind: str
    start: int
    end: int
    word: Word = _EMPTY_WORD


class _HereDocument(NamedTuple):
    """A here-document that is still to come: the index of its `<<`, and how it ends and is read."""

    token: int
    delimiter: str
    quoted: bool
    indented: bool


def tokenize(text: str) -> list[Token]:
    """Return all tokens of a text. Raise `UnclearSyntax` or `LimitExceeded`."""
    tokens: list[Token] = []
    here_documents: list[_HereDocument] = []
    has_here_documents = "<<" in text
    index = _skip_gap(text, 0)
    while index < len(text):
        if common := _COMMON_TOKEN.match(text, index):
            tokens.append(_common_token(common))
            index = common.end()
        elif operator := _OPERATOR.match(text, index):
            index = _skip_gap(text, _add_operator(text, operator, tokens, here_documents))
        else:
            token = _word_token(text, read_word(text, index), index, bool(here_documents))
            tokens.append(token)
            index = _skip_gap(text, token.end)
        if has_here_documents and _begins_here_document(tokens):
            here_documents.append(_here_document(text, tokens))
        if len(tokens) > MAX_TOKENS:
            raise LimitExceeded(TOO_MANY_TOKENS)
    if here_documents:
        raise UnclearSyntax("it contains a here-document that does not end")
    return tokens


def _common_token(common: re.Match[str]) -> Token:
    """Return a token that is matched as a whole."""
    group = common.lastindex or 0
    start, end, inner = common.start(), common.end(group), common.group(group)
    if group == _OPERATOR_GROUP:
        return Token(inner, start, end)
    end += group > 1  # the quotes are part of it
    return Token(WORD, start, end, Word(from_byte_text(inner)))


def _skip_gap(text: str, index: int) -> int:
    gap = _GAP.match(text, index)
    return gap.end() if gap is not None else index


def _word_token(text: str, parsed: WordEnd, index: int, has_here_document: bool) -> Token:
    source = text[index : parsed.end]
    if has_here_document and "\n" in source:
        raise UnclearSyntax("it contains a quote over several lines next to a here-document")
    if text[parsed.end : parsed.end + 1] in ("<", ">"):
        if _NUMBER.fullmatch(source):
            if len(source) > 1:
                raise UnclearSyntax("it redirects a handle of more than one digit")
            return Token(HANDLE, index, parsed.end, Word(source))
        if source.startswith("{"):
            raise UnclearSyntax("it redirects a handle that has a name, {…}>")
    return Token(WORD, index, parsed.end, parsed.word)


def _add_operator(
    text: str, operator: re.Match[str], tokens: list[Token], here_documents: list[_HereDocument]
) -> int:
    unsupported = _UNSUPPORTED.match(text, operator.start())
    if unsupported is not None:
        raise UnclearSyntax(_UNSUPPORTED_REASONS.get(unsupported.group(), _INCOMPLETE))
    kind, index = operator.group(), operator.end()
    tokens.append(Token(kind, operator.start(), index))
    if kind == "\n":
        for document in here_documents:
            index = _read_here_document(text, index, document, tokens)
        here_documents.clear()
    return index


def _begins_here_document(tokens: list[Token]) -> bool:
    """Return whether the last token is the word after `<<`."""
    if len(tokens) < 2 or tokens[-2].kind not in ("<<", "<<-"):
        return False
    return tokens[-1].kind in (WORD, HANDLE)


def _here_document(text: str, tokens: list[Token]) -> _HereDocument:
    operator, word = tokens[-2:]
    source = text[word.start : word.end]
    delimiter = word.word.text
    if not _DELIMITER.fullmatch(delimiter):
        raise UnclearSyntax("it contains a here-document with an unusual delimiter")
    return _HereDocument(len(tokens) - 2, delimiter, source != delimiter, operator.kind == "<<-")


def _read_here_document(text: str, index: int, document: _HereDocument, tokens: list[Token]) -> int:
    """Read a here-document up to its delimiter. The text becomes the word of its operator."""
    lines: list[str] = []
    end = index
    while end < len(text):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        line = text[end:stop].lstrip("\t") if document.indented else text[end:stop]
        end = min(stop + 1, len(text))
        if line == document.delimiter:
            tokens[document.token] = tokens[document.token]._replace(
                word=_here_document_body(lines, document)
            )
            tokens.append(Token(TEXT, index, stop))
            return stop
        lines.append(line + "\n")
    raise UnclearSyntax("it contains a here-document that does not end")


def _here_document_body(lines: list[str], document: _HereDocument) -> Word:
    body = "".join(lines)
    if not document.quoted and _EXPANDS.search(body):
        raise UnclearSyntax("it contains a here-document that the shell would expand")
    return Word(from_byte_text(body))
