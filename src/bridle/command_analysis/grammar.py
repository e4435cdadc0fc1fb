"""The plain reading of a command line: lists, pipes, subshells and groups of simple commands.

Everything that it returns is certain. Whatever needs more of the shell's grammar (control flow,
functions, arithmetic, a coprocess) is `Unclear`, and is left to whoever reads the tree.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from bridle.command_analysis.lexer import (
    COMMANDS,
    DEPTH,
    HANDLE,
    TEXT,
    TOO_DEEP,
    TOO_MANY,
    WORD,
    OverLimit,
    Token,
    Unclear,
)
from bridle.command_analysis.syntax import Redirect, RedirectKind, Simple, Word

Follows = Literal["", ";", "&&", "||", "|", "&"]
FLOW = frozenset(
    (
        *("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "in"),
        *("while", "until", "for", "select", "function", "time", "coproc", "[[", "]]"),
        *("!", "}"),
    )
)
_NUMBER = re.compile(r"[0-9]+")
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\+?=|\[)")
KINDS: dict[str, RedirectKind] = {
    "<": "read",
    ">": "write",
    ">|": "write",
    "<>": "write",
    "&>": "write",
    ">>": "append",
    "&>>": "append",
    "<<": "text",
    "<<-": "text",
    "<<<": "text",
    ">&": "copy",
    "<&": "copy",
}
_ENDS = frozenset((";", "&", "\n"))
_BROKEN = "it is no complete command"


@dataclass(slots=True)
class Draft:
    """A simple command that is being read, and where its first word begins."""

    scope: tuple[int, ...]
    follows: Follows
    head: int = -1
    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    piped: bool = False

    def finished(self) -> Simple:
        """As a value."""
        return Simple(
            tuple(self.words),
            tuple(self.assignments),
            tuple(self.redirects),
            self.follows,
            scope=self.scope,
            piped=self.piped,
        )


def read_plain(text: str, tokens: list[Token]) -> list[Draft]:
    """Every simple command, in order. Raises `Unclear` and `OverLimit`."""
    reading = _Reading(text, [token for token in tokens if token.kind != TEXT])
    reading.commands_until("")
    return reading.drafts


class _Reading:
    """Where the reading stands: the next token, the subshell, and how the next command follows."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0
        self.kinds = [*(token.kind for token in tokens), ""]  # looked at several times each
        self.drafts: list[Draft] = []
        self.scope: tuple[int, ...] = ()
        self.scopes = self.depth = 0
        self.follows: Follows = ""

    def kind(self) -> str:
        """The kind of the next token; nothing at the end."""
        return self.kinds[self.at]

    def raw(self) -> str:
        """The next token as it is spelled."""
        token = self.tokens[self.at]
        return self.text[token.start : token.end]

    def closes(self, closer: str) -> bool:
        """Does the next token end what this closer ends?"""
        if closer == "}":
            return self.kind() == WORD and self.raw() == "}"
        return self.kind() == closer

    def commands_until(self, closer: str) -> None:
        """A list of commands, up to what closes it."""
        self.skip_lines()
        while not self.closes(closer):
            self.and_or()
            if self.kind() in _ENDS:
                self.follows = "&" if self.kind() == "&" else ";"
                self.at += 1
                self.skip_lines()
            elif not self.closes(closer) or closer == "}":
                raise Unclear(_BROKEN)

    def skip_lines(self) -> None:
        """Ends of lines that end nothing."""
        while self.kind() == "\n":
            self.at += 1

    def and_or(self) -> None:
        """Pipes joined by `&&` and `||`. With `&` behind it, it runs in a subshell of its own."""
        first = len(self.drafts)
        self.pipe()
        while self.kind() in ("&&", "||"):
            self.follows = "&&" if self.kind() == "&&" else "||"
            self.at += 1
            self.skip_lines()
            self.pipe()
        if self.kind() == "&":
            self.enclose(first)

    def pipe(self) -> None:
        """Commands joined by `|`, each in a subshell of its own."""
        first = len(self.drafts)
        direct = self.command()
        piped = False
        while self.kind() in ("|", "|&"):
            if not piped:
                self.pipe_in(first, direct)
            piped, self.follows = True, "|"
            self.at += 1
            self.skip_lines()
            first = len(self.drafts)
            self.pipe_in(first, self.command())

    def pipe_in(self, first: int, direct: bool) -> None:
        """What was read since is one part of a pipe. `direct`: it is a single simple command."""
        self.enclose(first)
        if direct:
            self.drafts[first].piped = True

    def enclose(self, first: int) -> None:
        """What was read since runs in a subshell."""
        self.scopes += 1
        at = len(self.scope)
        for draft in self.drafts[first:]:
            draft.scope = (*draft.scope[:at], self.scopes, *draft.scope[at:])

    def command(self) -> bool:
        """One command; is it a simple one?"""
        kind = self.kinds[self.at]
        if kind == "(":
            self.bracketed(")")
            return False
        if kind == WORD and self.raw() == "{":
            self.bracketed("}")
            return False
        self.simple()
        return True

    def bracketed(self, closer: str) -> None:
        """A subshell or a group. Its redirections are a command without words, before it."""
        outer, first = self.scope, len(self.drafts)
        follows = self.follows
        self.depth += 1
        if self.depth > DEPTH:
            raise OverLimit(TOO_DEEP)
        if closer == ")":
            self.scopes += 1
            self.scope = (*outer, self.scopes)
        self.at += 1
        self.commands_until(closer)
        if len(self.drafts) == first:
            raise Unclear(_BROKEN)
        self.at += 1
        self.depth -= 1
        self.scope = outer
        around = Draft(outer, follows)
        while self.redirect(around):
            pass
        if around.redirects:
            self.drafts[first].follows = ";"
            self.drafts.insert(first, around)

    def simple(self) -> None:
        """Assignments, words and redirections, in whatever order they stand."""
        draft = Draft(self.scope, self.follows)
        first = self.at
        while self.words(draft) or self.redirect(draft):
            pass
        if self.at == first:
            raise Unclear(_BROKEN)
        if self.kind() == "(":
            raise Unclear("it defines a function, or holds a bracket that is not understood")
        self.drafts.append(draft)
        if len(self.drafts) > COMMANDS:
            raise OverLimit(TOO_MANY)

    def words(self, draft: Draft) -> bool:
        """Words of the command, and assignments before its first; are there any?"""
        first = self.at
        while self.kinds[self.at] == WORD:
            token = self.tokens[self.at]
            if draft.head < 0 and not self.assigned(draft, raw := self.raw(), token):
                if raw in FLOW or raw == "{":
                    raise Unclear(
                        f"it holds a part of the shell's grammar, {raw}, that is not judged"
                    )
                draft.head = token.start
            if draft.head >= 0:
                draft.words.append(token.word)
            self.at += 1
        return self.at != first

    def assigned(self, draft: Draft, raw: str, token: Token) -> bool:
        """Is this an assignment? Then it is kept as one."""
        found = _ASSIGNS.match(raw)
        if found is None:
            return False
        if found.group(1) != "=":
            raise Unclear("it holds an assignment to a list, or one that adds to a variable")
        name, _, value = token.word.text.partition("=")
        draft.assignments.append((name, value))
        return True

    def redirect(self, draft: Draft) -> bool:
        """A redirection; is there one?"""
        handle = int(self.raw()) if self.kinds[self.at] == HANDLE else None
        self.at += handle is not None
        operator = self.kinds[self.at]
        kind = KINDS.get(operator)
        if kind is None:
            return False
        token = self.tokens[self.at]
        self.at += 1
        if self.kind() != WORD:
            raise Unclear(_BROKEN)
        target = self.tokens[self.at].word if operator not in ("<<", "<<-") else token.word
        draft.redirects.append(_redirect(operator, kind, target, handle))
        self.at += 1
        return True


def _redirect(operator: str, kind: RedirectKind, target: Word, handle: int | None) -> Redirect:
    """The redirection with its handle, where what it does is certain."""
    if kind == "text":
        if operator == "<<<":
            if target.globs or target.tilde:
                raise Unclear("it hands over text that the shell may expand")
            target = Word(target.text + "\n")
    elif target.globs:
        raise Unclear("it redirects to a pattern")
    elif kind == "copy" and target.text != "-" and not _NUMBER.fullmatch(target.text):
        odd = not target.text or target.text[0].isdigit() or target.text[-1] == "-"
        if operator == "<&" or handle is not None or odd:
            raise Unclear("it copies a handle that is not a number")
        kind = "write"
    return Redirect(kind, target, (0 if operator[0] == "<" else 1) if handle is None else handle)
