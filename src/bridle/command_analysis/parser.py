"""Reads a command line as `bash -c` would, or says why that is not certain.

Two readings have to agree: our own grammar, and the tree that tree-sitter makes. Of a line that is
too tangled for both, whatever may be a command is taken for one: for rules that forbid, and for the
floor.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from bridle.command_analysis.lexer import (
    CHARACTERS,
    COMMANDS,
    DEPTH,
    HANDLE,
    TEXT,
    TOKENS,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    WORD,
    OverLimit,
    Token,
    Unclear,
    decode,
    tokens_of,
    unview,
    view,
)
from bridle.command_analysis.syntax import Redirect, RedirectKind, Script, Simple, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

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
        drafts = _read_plain(viewed, tokens)
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
    text: str, tokens: list[Token], drafts: "list[_Draft]", plain: tuple[Simple, ...]
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


# The plain reading: lists, pipes, subshells and groups of simple commands.
#
# Everything that it returns is certain. Whatever needs more of the shell's grammar (control flow,
# functions, arithmetic, a coprocess) is `Unclear`, and is left to whoever reads the tree.

Follows = Literal["", ";", "&&", "||", "|", "&"]
_RESERVED_WORDS = frozenset(
    (
        *("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "in"),
        *("while", "until", "for", "select", "function", "time", "coproc", "[[", "]]"),
        *("!", "}"),
    )
)
_DIGITS = re.compile(r"[0-9]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\+?=|\[)")
_REDIRECT_KINDS: dict[str, RedirectKind] = {
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
class _Draft:
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


def _read_plain(text: str, tokens: list[Token]) -> list[_Draft]:
    """Every simple command, in order. Raises `Unclear` and `OverLimit`."""
    reading = _Reading(text, [token for token in tokens if token.kind != TEXT])
    reading.commands_until("")
    return reading.drafts


class _Reading:
    """Where the reading stands: the next token, the subshell, and how the next command follows."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0
        self.kinds = [*(token.kind for token in tokens), ""]  # looked at several times each
        self.drafts: list[_Draft] = []
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
        around = _Draft(outer, follows)
        while self.redirect(around):
            pass
        if around.redirects:
            self.drafts[first].follows = ";"
            self.drafts.insert(first, around)

    def simple(self) -> None:
        """Assignments, words and redirections, in whatever order they stand."""
        draft = _Draft(self.scope, self.follows)
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

    def words(self, draft: _Draft) -> bool:
        """Words of the command, and assignments before its first; are there any?"""
        first = self.at
        while self.kinds[self.at] == WORD:
            token = self.tokens[self.at]
            if draft.head < 0 and not self.assigned(draft, raw := self.raw(), token):
                if raw in _RESERVED_WORDS or raw == "{":
                    raise Unclear(
                        f"it holds a part of the shell's grammar, {raw}, that is not judged"
                    )
                draft.head = token.start
            if draft.head >= 0:
                draft.words.append(token.word)
            self.at += 1
        return self.at != first

    def assigned(self, draft: _Draft, raw: str, token: Token) -> bool:
        """Is this an assignment? Then it is kept as one."""
        found = _ASSIGNMENT.match(raw)
        if found is None:
            return False
        if found.group(1) != "=":
            raise Unclear("it holds an assignment to a list, or one that adds to a variable")
        name, _, value = token.word.text.partition("=")
        draft.assignments.append((name, value))
        return True

    def redirect(self, draft: _Draft) -> bool:
        """A redirection; is there one?"""
        handle = int(self.raw()) if self.kinds[self.at] == HANDLE else None
        self.at += handle is not None
        operator = self.kinds[self.at]
        kind = _REDIRECT_KINDS.get(operator)
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
    elif kind == "copy" and target.text != "-" and not _DIGITS.fullmatch(target.text):
        odd = not target.text or target.text[0].isdigit() or target.text[-1] == "-"
        if operator == "<&" or handle is not None or odd:
            raise Unclear("it copies a handle that is not a number")
        kind = "write"
    return Redirect(kind, target, (0 if operator[0] == "<" else 1) if handle is None else handle)


# The second reading of a command line: the syntax tree that tree-sitter makes of it.
#
# Of a line that is not understood, it gives the commands that can be seen anywhere in the tree.

_UNDERSTOOD = frozenset(
    (
        *("program", "list", "pipeline", "command", "command_name", "word", "string"),
        *("string_content", "raw_string", "ansi_c_string", "concatenation", "number"),
        *("variable_name", "variable_assignment", "variable_assignments"),
        *("redirected_statement", "file_redirect", "file_descriptor"),
        *("herestring_redirect", "heredoc_redirect", "heredoc_start", "heredoc_body"),
        *("heredoc_content", "heredoc_end", "subshell", "compound_statement", "comment"),
        *("declaration_command", "unset_command", "test_command", "unary_expression"),
        *("binary_expression", "test_operator"),
    )
)
_HEADS = frozenset(("command_name", "declaration_command", "unset_command", "test_command"))


@cache
def _parser() -> "Parser":
    """One for all; the import is the dear part, so it waits until a command is judged."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def tree_of(text: str) -> "Node":
    """The root of the tree of a text (`words.view` of it).

    The grammar reads memory that is not its own when it meets characters beyond 255, and then the
    whole process ends. To the shell they are letters of a word, so it gets another such instead.
    """
    return _parser().parse(text.encode("latin-1").translate(_ASCII)).root_node


_ASCII = bytes(range(128)) + b"%" * 128


def agrees(root: "Node", tokens: list[Token], heads: list[int]) -> bool:
    """Does the tree cut the text into the same tokens, and begin commands at the same words?"""
    if root.has_error:
        return False
    starts, ends, found = set(), set(), set()
    waiting = [root]
    for node in waiting:
        kind = node.type
        if kind not in _UNDERSTOOD and node.is_named:
            return False
        if kind in _HEADS:
            found.add(node.start_byte)
        if node.child_count:
            waiting += node.children  # which is quicker than a cursor
        else:
            starts.add(node.start_byte)
            ends.add(node.end_byte)
    # Ends of lines are nothing to the tree, and an empty here-text begins nothing.
    cut = [token for token in tokens if token.kind != "\n"]
    if found != set(heads) or not ends.issuperset([token.end for token in cut]):
        return False
    return starts.issuperset([token.start for token in cut if token.kind != TEXT])


_COMMANDS = frozenset(("command", "declaration_command", "unset_command", "test_command", "ERROR"))
_REDIRECTS = frozenset(("file_redirect", "herestring_redirect", "heredoc_redirect"))
_SUBSHELLS = frozenset(("subshell", "command_substitution", "process_substitution"))
_NESTS = _SUBSHELLS | frozenset(
    (
        *("compound_statement", "if_statement", "while_statement", "for_statement"),
        *("c_style_for_statement", "case_statement", "function_definition", "expansion"),
        *("arithmetic_expansion", "array", "subscript", "parenthesized_expression"),
        *("negated_command",),
    )
)
_JOINS: dict[str, Follows] = {"&&": "&&", "||": "||", "|": "|", "|&": "|", "&": "&"}
_PREFIXES = frozenset(("time", "coproc", "!"))
_NO_WORDS = frozenset(("comment", "heredoc_body", "heredoc_start", "heredoc_end", "\n", ";", "&"))


_MAKES = _COMMANDS | _REDIRECTS | frozenset(("redirected_statement", "variable_assignment"))


class _Place(NamedTuple):
    """A node, where it stands, and in which other: to ask the tree for any of it is dear."""

    node: "Node"
    kind: str
    children: "list[Node]"
    above: "_Place | None" = None
    scope: tuple[int, ...] = ()
    depth: int = 0
    follows: Follows = ""
    piped: bool = False


def commands_in(root: "Node", text: str) -> tuple[Simple, ...]:
    """Every command that can be seen, in the order in which they stand."""
    found: list[Simple] = []
    scopes = 0
    waiting = [_Place(root, root.type, root.children)]
    while waiting:
        place = waiting.pop()
        if place.depth > DEPTH:
            raise OverLimit(TOO_DEEP)
        if place.kind in _MAKES and (parts := _parts(place)):
            simple = _simple_of_nodes(parts, text, place)
            if simple.words or simple.assignments or simple.redirects:
                found.append(simple)
                if len(found) > COMMANDS:
                    raise OverLimit(TOO_MANY)
        scopes += 1
        waiting += _inside(place, scopes)[::-1]
    return tuple(found)


def _inside(place: _Place, number: int) -> list[_Place]:
    """What stands in a node, and where that is."""
    kind, scope, follows = place.kind, place.scope, place.follows
    deeper = place.depth + (kind in _NESTS)
    piped = kind == "pipeline"
    if kind in _SUBSHELLS:
        scope = (*scope, number)
    found = []
    for index, child in enumerate(place.children):
        if not child.is_named:
            follows = _JOINS.get(child.type, follows)
        elif child.child_count or child.is_error:
            inner = (*scope, number, index) if piped else scope
            inside = child.children
            found.append(_Place(child, child.type, inside, place, inner, deeper, follows, piped))
            follows = ";"
    return found


def _parts(place: _Place) -> "Sequence[Node]":
    """What belongs to the command that a node is; nothing where it is none."""
    kind, above, children = place.kind, place.above, place.children
    redirected = above if above is not None and above.kind == "redirected_statement" else None
    if kind in _COMMANDS:
        return children if redirected is None else [*children, *redirected.children[1:]]
    if kind == "redirected_statement":
        if children[0].type in _COMMANDS:
            return ()
        return [one for one in children if one.type in _REDIRECTS]
    if kind == "variable_assignment":
        return () if above is not None and above.kind in _COMMANDS else [place.node]
    # The tree has `a && b > c` as one statement with a redirection; the shell opens c after a.
    if redirected is None or redirected.children[0].type in _COMMANDS:
        return ()
    return [place.node]


class _Parts:
    """What a command is made of, as it is gathered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.assignments: list[tuple[str, str]] = []
        self.redirects: list[Redirect] = []
        self.why = ""

    def add(self, node: "Node") -> None:
        kind = node.type
        if kind in _REDIRECTS:
            self.redirect(node)
        elif kind == "variable_assignment" and not self.words:
            name, _, value = self.raw(node).partition("=")
            word = self.decoded(value)
            self.assignments.append((unview(name), word.text))
        elif kind == "ERROR" or kind.endswith("_expression"):
            self.words.extend(map(self.decoded, self.raw(node).split()))
        elif kind not in _NO_WORDS:
            self.words.append(self.decoded(self.raw(node)))

    def redirect(self, node: "Node") -> None:
        """A redirection. Words that the tree takes for further targets are the command's own."""
        kind: RedirectKind | None = None
        handle, targets = "", list[Word]()
        for child in node.children:
            sort = child.type
            if sort in _REDIRECT_KINDS:
                kind = _REDIRECT_KINDS[sort]
            elif sort == "file_descriptor":
                handle = self.raw(child)
            elif sort in _REDIRECTS:
                self.redirect(child)
            elif sort == "heredoc_body":
                targets.insert(0, Word(unview(self.raw(child)), known=False))
            elif child.is_named and sort not in _NO_WORDS:
                targets.append(self.decoded(self.raw(child)))
        if kind is not None and targets:
            number = int(handle) if handle.isdigit() else int(kind not in ("read", "text"))
            self.redirects.append(Redirect(kind, targets[0], number))
            self.words.extend(targets[1:])

    def raw(self, node: "Node") -> str:
        return self.text[node.start_byte : node.end_byte]

    def decoded(self, raw: str) -> Word:
        word, why = decode(raw)
        self.why = self.why or why
        return word


def _simple_of_nodes(nodes: "Sequence[Node]", text: str, where: _Place) -> Simple:
    parts = _Parts(text)
    for node in nodes:
        parts.add(node)
    words = parts.words
    while words and words[0].text in _PREFIXES:
        words = words[1:]
    return Simple(
        tuple(words),
        tuple(parts.assignments),
        tuple(parts.redirects),
        where.follows,
        parts.why,
        where.scope,
        where.piped,
    )


# Of a line that is too tangled for both readings, whatever may be a command is taken for one.

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
_PLAIN_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
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
        elif words or (raw not in _RESERVED_WORDS and not _PLAIN_ASSIGNMENT.match(raw)):
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
                Redirect(_REDIRECT_KINDS[operator], _word(raw, number))
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
