"""The tokens of a command line, as bash would cut it: words, operators, ends of lines, here-texts.

Knows no grammar. What it is not certain of, it does not read: `Unclear`; of too much, `OverLimit`.
"""

import re
from typing import NamedTuple

from bridle.commands.limits import TOKENS, TOO_BUSY, OverLimit
from bridle.commands.quotes import Unclear
from bridle.commands.shape import Word
from bridle.commands.words import Read, unview, word_at

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
