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
    HANDLE,
    MAX_CHARACTERS,
    MAX_COMMANDS,
    MAX_DEPTH,
    MAX_TOKENS,
    TEXT,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY_COMMANDS,
    WORD,
    LimitExceeded,
    Token,
    UnclearSyntax,
    decode_word,
    from_byte_text,
    to_byte_text,
    tokenize,
)
from bridle.command_analysis.syntax import Redirect, RedirectKind, Script, SimpleCommand, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_WITHOUT_BREAKS = str.maketrans("", "", "\n\t")
_BLANK_LETTERS = re.compile("[\u115f\u1160\u2800\u3164\uffa0]")  # printable, and nothing is seen
INVISIBLE = "it holds a character that cannot be seen, or that only looks like a blank"
READINGS_DIFFER = "two ways of reading it do not agree"
CHANGES_PARSING = "it changes how the shell reads what follows"
CHANGES_HOME = "it may change the folder that ~ stands for"
_PARSING_COMMANDS = frozenset(("alias", "unalias", "shopt", "enable", "set"))
_HARMLESS_OPTION = re.compile(r"-[eux]+|-[eux]*o|pipefail|errexit|nounset|xtrace")


def parse(text: str) -> Script:
    """Every simple command in it. Never raises; what is over a limit is refused, unread."""
    try:
        _check_limits(text)
    except LimitExceeded as limit:
        return Script(over_limit=str(limit))
    return _parse_cached(text)


@lru_cache(maxsize=256)
def _parse_cached(text: str) -> Script:
    """The same line is judged, asked about and explained: it is read once."""
    try:
        return _parse(text, to_byte_text(text))
    except LimitExceeded as limit:
        return Script(over_limit=str(limit))


def _parse(text: str, viewed: str) -> Script:
    unknown_flag = not text.translate(_WITHOUT_BREAKS).isprintable() or bool(
        _BLANK_LETTERS.search(text)
    )
    try:
        tokens = tokenize(viewed)
        drafts = _parse_plain(viewed, tokens)
    except UnclearSyntax as unclear:
        return Script(_visible_commands(viewed), INVISIBLE if unknown_flag else str(unclear))
    plain = tuple(draft.to_command() for draft in drafts)
    if unknown_flag or (changed := _context_change(plain)):
        return Script(plain, INVISIBLE if unknown_flag else changed)
    return _compare_with_tree(viewed, tokens, drafts, plain)


def _context_change(commands: tuple[SimpleCommand, ...]) -> str:
    """Why later words may mean something else than they do now: options, aliases, another home."""
    if len(commands) > 1 and any(map(_changes_parsing, commands)):
        return CHANGES_PARSING
    if not any(map(_has_tilde, commands)):
        return ""
    names = {name for command in commands for name, _ in command.assignments}
    if "HOME" in names or any("HOME" in word.text for one in commands for word in one.words):
        return CHANGES_HOME
    return ""


def _has_tilde(command: SimpleCommand) -> bool:
    for word in command.words:
        if word.tilde:
            return True
    return any(redirect.target.tilde for redirect in command.redirects)


def _changes_parsing(command: SimpleCommand) -> bool:
    if not command.words or command.words[0].text not in _PARSING_COMMANDS:
        return False
    argv = command.argv
    return argv[0] != "set" or not all(map(_HARMLESS_OPTION.fullmatch, argv[1:]))


def _visible_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Every command that can be seen in what is not plain, also once its lines are joined."""
    seen = _commands_in_text(text)
    joined = text.replace("\\\n", "")  # as the shell does, but for quotes and comments
    return seen if joined == text else _add_new(seen, _commands_in_text(joined))


def _commands_in_text(text: str) -> tuple[SimpleCommand, ...]:
    if _is_tangled(text):
        return _lenient_commands(text)
    root = _parse_tree(text)
    seen = _tree_commands(root, text)
    if not root.has_error:
        return seen
    return _add_new(seen, _lenient_commands(text))


def _compare_with_tree(
    text: str, tokens: list[Token], drafts: "list[_Draft]", plain: tuple[SimpleCommand, ...]
) -> Script:
    """The plain reading, if the tree's is the same; else what either of them sees."""
    root = _parse_tree(text)
    if _tree_agrees(root, tokens, [draft.head for draft in drafts if draft.head >= 0]):
        return Script(plain)
    return Script(_add_new(plain, _tree_commands(root, text)), READINGS_DIFFER)


def _add_new(
    seen: tuple[SimpleCommand, ...], others: tuple[SimpleCommand, ...]
) -> tuple[SimpleCommand, ...]:
    """All of the first, and of the others those whose words are not among them."""
    known = {command.argv for command in seen if not command.redirects}
    return (*seen, *(one for one in others if one.argv not in known))


# Text that would take too long to parse, recognised without parsing it.

_MAX_COSTLY = 100
_MAX_HERE_DOCUMENTS = 10
_MAX_SIGNS = 500  # of another line: blanks and signs, but for those in here-texts
_HERE_DOCUMENT = re.compile(
    r"<<-?[ \t]*(['\"\\]?)([A-Za-z0-9_]+)\1[^\n]*\n(.*?\n)??\t*\2(?=\n|\Z)", re.S
)
_SIGN = re.compile(r"[ \t\n]+|[^\w \t\n]")
_EXPANDS = re.compile(r"[$`]|<<")
_COSTLY = re.compile(r"\$\[|<<|`")  # a tree takes the square of their number
_NOT_BRACKETS = re.compile(r"[^(){}]+")
_STEPS = {"(": 1, "{": 1, ")": -1, "}": -1}


def _check_limits(text: str) -> None:
    """Refuse what is too long, or opens brackets too deep, quoted or not."""
    if len(text) > MAX_CHARACTERS:
        raise LimitExceeded(TOO_LONG)
    if text.count("(") + text.count("{") <= MAX_DEPTH:
        return
    brackets = _NOT_BRACKETS.sub("", text)
    if max(accumulate(map(_STEPS.__getitem__, brackets))) > MAX_DEPTH:
        raise LimitExceeded(TOO_DEEP)


def _is_tangled(text: str) -> bool:
    """Would a tree of this take too long? Here-texts count only for what the shell expands."""
    if len(text) <= _MAX_SIGNS:
        return False
    if text.count("<<") <= _MAX_HERE_DOCUMENTS:  # each of them is a search through the whole text
        text = _HERE_DOCUMENT.sub(lambda found: " ".join(_EXPANDS.findall(found.group())), text)
    return _has_more_than(_SIGN, text, _MAX_SIGNS) or _has_more_than(_COSTLY, text, _MAX_COSTLY)


def _has_more_than(pattern: re.Pattern[str], text: str, most: int) -> bool:
    return next(islice(pattern.finditer(text), most, None), None) is not None


# The plain reading: lists, pipes, subshells and groups of simple commands.
#
# Everything that it returns is certain. Whatever needs more of the shell's grammar (control flow,
# functions, arithmetic, a coprocess) is `UnclearSyntax`, and is left to whoever reads the tree.

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
_LIST_ENDS = frozenset((";", "&", "\n"))
_INCOMPLETE = "it is no complete command"


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

    def to_command(self) -> SimpleCommand:
        """As a value."""
        return SimpleCommand(
            tuple(self.words),
            tuple(self.assignments),
            tuple(self.redirects),
            self.follows,
            scope=self.scope,
            piped=self.piped,
        )


def _parse_plain(text: str, tokens: list[Token]) -> list[_Draft]:
    """Every simple command, in order. Raises `UnclearSyntax` and `LimitExceeded`."""
    reading = _PlainParser(text, [token for token in tokens if token.kind != TEXT])
    reading.parse_list("")
    return reading.drafts


class _PlainParser:
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

    def is_closed_by(self, closer: str) -> bool:
        """Does the next token end what this closer ends?"""
        if closer == "}":
            return self.kind() == WORD and self.raw() == "}"
        return self.kind() == closer

    def parse_list(self, closer: str) -> None:
        """A list of commands, up to what closes it."""
        self.skip_newlines()
        while not self.is_closed_by(closer):
            self.parse_and_or()
            if self.kind() in _LIST_ENDS:
                self.follows = "&" if self.kind() == "&" else ";"
                self.at += 1
                self.skip_newlines()
            elif not self.is_closed_by(closer) or closer == "}":
                raise UnclearSyntax(_INCOMPLETE)

    def skip_newlines(self) -> None:
        """Ends of lines that end nothing."""
        while self.kind() == "\n":
            self.at += 1

    def parse_and_or(self) -> None:
        """Pipes joined by `&&` and `||`. With `&` behind it, it runs in a subshell of its own."""
        first = len(self.drafts)
        self.parse_pipeline()
        while self.kind() in ("&&", "||"):
            self.follows = "&&" if self.kind() == "&&" else "||"
            self.at += 1
            self.skip_newlines()
            self.parse_pipeline()
        if self.kind() == "&":
            self.enter_subshell(first)

    def parse_pipeline(self) -> None:
        """Commands joined by `|`, each in a subshell of its own."""
        first = len(self.drafts)
        direct = self.command()
        piped = False
        while self.kind() in ("|", "|&"):
            if not piped:
                self.add_pipe_part(first, direct)
            piped, self.follows = True, "|"
            self.at += 1
            self.skip_newlines()
            first = len(self.drafts)
            self.add_pipe_part(first, self.command())

    def add_pipe_part(self, first: int, direct: bool) -> None:
        """What was read since is one part of a pipe. `direct`: it is a single simple command."""
        self.enter_subshell(first)
        if direct:
            self.drafts[first].piped = True

    def enter_subshell(self, first: int) -> None:
        """What was read since runs in a subshell."""
        self.scopes += 1
        at = len(self.scope)
        for draft in self.drafts[first:]:
            draft.scope = (*draft.scope[:at], self.scopes, *draft.scope[at:])

    def command(self) -> bool:
        """One command; is it a simple one?"""
        kind = self.kinds[self.at]
        if kind == "(":
            self.parse_group(")")
            return False
        if kind == WORD and self.raw() == "{":
            self.parse_group("}")
            return False
        self.simple()
        return True

    def parse_group(self, closer: str) -> None:
        """A subshell or a group. Its redirections are a command without words, before it."""
        outer, first = self.scope, len(self.drafts)
        follows = self.follows
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitExceeded(TOO_DEEP)
        if closer == ")":
            self.scopes += 1
            self.scope = (*outer, self.scopes)
        self.at += 1
        self.parse_list(closer)
        if len(self.drafts) == first:
            raise UnclearSyntax(_INCOMPLETE)
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
            raise UnclearSyntax(_INCOMPLETE)
        if self.kind() == "(":
            raise UnclearSyntax("it defines a function, or holds a bracket that is not understood")
        self.drafts.append(draft)
        if len(self.drafts) > MAX_COMMANDS:
            raise LimitExceeded(TOO_MANY_COMMANDS)

    def words(self, draft: _Draft) -> bool:
        """Words of the command, and assignments before its first; are there any?"""
        first = self.at
        while self.kinds[self.at] == WORD:
            token = self.tokens[self.at]
            if draft.head < 0 and not self.parse_assignment(draft, raw := self.raw(), token):
                if raw in _RESERVED_WORDS or raw == "{":
                    raise UnclearSyntax(
                        f"it holds a part of the shell's grammar, {raw}, that is not judged"
                    )
                draft.head = token.start
            if draft.head >= 0:
                draft.words.append(token.word)
            self.at += 1
        return self.at != first

    def parse_assignment(self, draft: _Draft, raw: str, token: Token) -> bool:
        """Is this an assignment? Then it is kept as one."""
        found = _ASSIGNMENT.match(raw)
        if found is None:
            return False
        if found.group(1) != "=":
            raise UnclearSyntax("it holds an assignment to a list, or one that adds to a variable")
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
            raise UnclearSyntax(_INCOMPLETE)
        target = self.tokens[self.at].word if operator not in ("<<", "<<-") else token.word
        draft.redirects.append(_to_redirect(operator, kind, target, handle))
        self.at += 1
        return True


def _to_redirect(operator: str, kind: RedirectKind, target: Word, handle: int | None) -> Redirect:
    """The redirection with its handle, where what it does is certain."""
    if kind == "text":
        if operator == "<<<":
            if target.globs or target.tilde:
                raise UnclearSyntax("it hands over text that the shell may expand")
            target = Word(target.text + "\n")
    elif target.globs:
        raise UnclearSyntax("it redirects to a pattern")
    elif kind == "copy" and target.text != "-" and not _DIGITS.fullmatch(target.text):
        odd = not target.text or target.text[0].isdigit() or target.text[-1] == "-"
        if operator == "<&" or handle is not None or odd:
            raise UnclearSyntax("it copies a handle that is not a number")
        kind = "write"
    return Redirect(kind, target, (0 if operator[0] == "<" else 1) if handle is None else handle)


# The second reading of a command line: the syntax tree that tree-sitter makes of it.
#
# Of a line that is not understood, it gives the commands that can be seen anywhere in the tree.

_KNOWN_NODES = frozenset(
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
_HEAD_NODES = frozenset(("command_name", "declaration_command", "unset_command", "test_command"))


@cache
def _parser() -> "Parser":
    """One for all; the import is the dear part, so it waits until a command is judged."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _parse_tree(text: str) -> "Node":
    """The root of the tree of a text (`words.view` of it).

    The grammar reads memory that is not its own when it meets characters beyond 255, and then the
    whole process ends. To the shell they are letters of a word, so it gets another such instead.
    """
    return _parser().parse(text.encode("latin-1").translate(_TO_ASCII)).root_node


_TO_ASCII = bytes(range(128)) + b"%" * 128


def _tree_agrees(root: "Node", tokens: list[Token], heads: list[int]) -> bool:
    """Does the tree cut the text into the same tokens, and begin commands at the same words?"""
    if root.has_error:
        return False
    starts, ends, found = set(), set(), set()
    waiting = [root]
    for node in waiting:
        kind = node.type
        if kind not in _KNOWN_NODES and node.is_named:
            return False
        if kind in _HEAD_NODES:
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


_COMMAND_NODES = frozenset(
    ("command", "declaration_command", "unset_command", "test_command", "ERROR")
)
_REDIRECT_NODES = frozenset(("file_redirect", "herestring_redirect", "heredoc_redirect"))
_SUBSHELL_NODES = frozenset(("subshell", "command_substitution", "process_substitution"))
_NESTED_NODES = _SUBSHELL_NODES | frozenset(
    (
        *("compound_statement", "if_statement", "while_statement", "for_statement"),
        *("c_style_for_statement", "case_statement", "function_definition", "expansion"),
        *("arithmetic_expansion", "array", "subscript", "parenthesized_expression"),
        *("negated_command",),
    )
)
_LIST_OPERATORS: dict[str, Follows] = {"&&": "&&", "||": "||", "|": "|", "|&": "|", "&": "&"}
_PREFIXES = frozenset(("time", "coproc", "!"))
_NOT_WORDS = frozenset(("comment", "heredoc_body", "heredoc_start", "heredoc_end", "\n", ";", "&"))


_NODES_OF_COMMANDS = (
    _COMMAND_NODES | _REDIRECT_NODES | frozenset(("redirected_statement", "variable_assignment"))
)


class _NodePosition(NamedTuple):
    """A node, where it stands, and in which other: to ask the tree for any of it is dear."""

    node: "Node"
    kind: str
    children: "list[Node]"
    above: "_NodePosition | None" = None
    scope: tuple[int, ...] = ()
    depth: int = 0
    follows: Follows = ""
    piped: bool = False


def _tree_commands(root: "Node", text: str) -> tuple[SimpleCommand, ...]:
    """Every command that can be seen, in the order in which they stand."""
    found: list[SimpleCommand] = []
    scopes = 0
    waiting = [_NodePosition(root, root.type, root.children)]
    while waiting:
        position = waiting.pop()
        if position.depth > MAX_DEPTH:
            raise LimitExceeded(TOO_DEEP)
        if position.kind in _NODES_OF_COMMANDS and (parts := _command_nodes(position)):
            simple = _tree_command(parts, text, position)
            if simple.words or simple.assignments or simple.redirects:
                found.append(simple)
                if len(found) > MAX_COMMANDS:
                    raise LimitExceeded(TOO_MANY_COMMANDS)
        scopes += 1
        waiting += _child_positions(position, scopes)[::-1]
    return tuple(found)


def _child_positions(position: _NodePosition, number: int) -> list[_NodePosition]:
    """What stands in a node, and where that is."""
    kind, scope, follows = position.kind, position.scope, position.follows
    deeper = position.depth + (kind in _NESTED_NODES)
    piped = kind == "pipeline"
    if kind in _SUBSHELL_NODES:
        scope = (*scope, number)
    found = []
    for index, child in enumerate(position.children):
        if not child.is_named:
            follows = _LIST_OPERATORS.get(child.type, follows)
        elif child.child_count or child.is_error:
            inner = (*scope, number, index) if piped else scope
            inside = child.children
            found.append(
                _NodePosition(child, child.type, inside, position, inner, deeper, follows, piped)
            )
            follows = ";"
    return found


def _command_nodes(position: _NodePosition) -> "Sequence[Node]":
    """What belongs to the command that a node is; nothing where it is none."""
    kind, above, children = position.kind, position.above, position.children
    redirected = above if above is not None and above.kind == "redirected_statement" else None
    if kind in _COMMAND_NODES:
        return children if redirected is None else [*children, *redirected.children[1:]]
    if kind == "redirected_statement":
        if children[0].type in _COMMAND_NODES:
            return ()
        return [one for one in children if one.type in _REDIRECT_NODES]
    if kind == "variable_assignment":
        return () if above is not None and above.kind in _COMMAND_NODES else [position.node]
    # The tree has `a && b > c` as one statement with a redirection; the shell opens c after a.
    if redirected is None or redirected.children[0].type in _COMMAND_NODES:
        return ()
    return [position.node]


class _CommandParts:
    """What a command is made of, as it is gathered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.assignments: list[tuple[str, str]] = []
        self.redirects: list[Redirect] = []
        self.why = ""

    def add(self, node: "Node") -> None:
        kind = node.type
        if kind in _REDIRECT_NODES:
            self.redirect(node)
        elif kind == "variable_assignment" and not self.words:
            name, _, value = self.raw(node).partition("=")
            word = self.decode_word_of(value)
            self.assignments.append((from_byte_text(name), word.text))
        elif kind == "ERROR" or kind.endswith("_expression"):
            self.words.extend(map(self.decode_word_of, self.raw(node).split()))
        elif kind not in _NOT_WORDS:
            self.words.append(self.decode_word_of(self.raw(node)))

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
            elif sort in _REDIRECT_NODES:
                self.redirect(child)
            elif sort == "heredoc_body":
                targets.insert(0, Word(from_byte_text(self.raw(child)), known=False))
            elif child.is_named and sort not in _NOT_WORDS:
                targets.append(self.decode_word_of(self.raw(child)))
        if kind is not None and targets:
            number = int(handle) if handle.isdigit() else int(kind not in ("read", "text"))
            self.redirects.append(Redirect(kind, targets[0], number))
            self.words.extend(targets[1:])

    def raw(self, node: "Node") -> str:
        return self.text[node.start_byte : node.end_byte]

    def decode_word_of(self, raw: str) -> Word:
        word, why = decode_word(raw)
        self.why = self.why or why
        return word


def _tree_command(nodes: "Sequence[Node]", text: str, position: _NodePosition) -> SimpleCommand:
    parts = _CommandParts(text)
    for node in nodes:
        parts.add(node)
    words = parts.words
    while words and words[0].text in _PREFIXES:
        words = words[1:]
    return SimpleCommand(
        tuple(words),
        tuple(parts.assignments),
        tuple(parts.redirects),
        position.follows,
        parts.why,
        position.scope,
        position.piped,
    )


# Of a line that is too tangled for both readings, whatever may be a command is taken for one.

_LENIENT_PIECE = re.compile(
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
TANGLED = "it is too tangled to be read with certainty"


def _lenient_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Whatever may be a command in it, in order."""
    found: list[SimpleCommand] = []
    pieces: list[tuple[str, str]] = []
    for piece in _LENIENT_PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "end":
            if pieces:
                _add_lenient_command(pieces, found)
                pieces = []
        elif kind != "gap":
            pieces.append((str(kind), piece.group()))
    _add_lenient_command(pieces, found)
    return tuple(found)


def _add_lenient_command(pieces: list[tuple[str, str]], found: list[SimpleCommand]) -> None:
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
        found.append(_lenient_command(words, list(redirects), ";" if found else ""))
    if len(found) > MAX_COMMANDS:
        raise LimitExceeded(TOO_MANY_COMMANDS)


def _lenient_command(
    words: list[str], redirects: list[tuple[str, str]], follows: Follows
) -> SimpleCommand:
    kept = words if len(words) <= MAX_TOKENS else [words[0], *dict.fromkeys(words[1:])]
    return SimpleCommand(
        tuple([_lenient_word(raw, number) for number, raw in enumerate(kept)]),
        redirects=tuple(
            [
                Redirect(_REDIRECT_KINDS[operator], _lenient_word(raw, number))
                for number, (operator, raw) in enumerate(redirects)
            ]
        ),
        follows=follows,
        opaque=TANGLED,
    )


def _lenient_word(raw: str, count: int) -> Word:
    """A word; after many of them only its quotes are taken off, which is quick."""
    if count < MAX_TOKENS:
        return decode_word(raw)[0]
    return Word(from_byte_text(raw.translate(_QUOTES)), known=False)
