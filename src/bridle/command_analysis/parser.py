"""Parses a command line as `bash -c` would, or says why that is not certain.

Two parsers have to agree: our own and tree-sitter. If they do not, or a line is too tangled for
both, everything in it that may be a command is returned as one, so that it can still be forbidden.
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
_BLANK_LETTERS = re.compile("[\u115f\u1160\u2800\u3164\uffa0]")  # printable but invisible
INVISIBLE = "it contains a character that cannot be seen, or that only looks like a blank"
READINGS_DIFFER = "two parsers read it differently"
CHANGES_PARSING = "it changes how the shell reads what follows"
CHANGES_HOME = "it may change the folder that ~ stands for"
_PARSING_COMMANDS = frozenset(("alias", "unalias", "shopt", "enable", "set"))
_HARMLESS_OPTION = re.compile(r"-[eux]+|-[eux]*o|pipefail|errexit|nounset|xtrace")


def parse(text: str) -> Script:
    """Return the simple commands of a line. Never raises. A line over a limit is not parsed."""
    try:
        _check_limits(text)
    except LimitExceeded as limit:
        return Script(over_limit=str(limit))
    return _parse_cached(text)


@lru_cache(maxsize=256)
def _parse_cached(text: str) -> Script:
    """Parse a line once, although it is judged, asked about and explained."""
    try:
        return _parse(text, to_byte_text(text))
    except LimitExceeded as limit:
        return Script(over_limit=str(limit))


def _parse(text: str, byte_text: str) -> Script:
    is_printable = text.translate(_WITHOUT_BREAKS).isprintable()
    is_invisible = not is_printable or _BLANK_LETTERS.search(text) is not None
    try:
        tokens = tokenize(byte_text)
        drafts = _parse_plain(byte_text, tokens)
    except UnclearSyntax as unclear:
        return Script(_visible_commands(byte_text), INVISIBLE if is_invisible else str(unclear))
    plain = tuple(draft.to_command() for draft in drafts)
    if is_invisible or (changed := _context_change(plain)):
        return Script(plain, INVISIBLE if is_invisible else changed)
    return _compare_with_tree(byte_text, tokens, drafts, plain)


def _context_change(commands: tuple[SimpleCommand, ...]) -> str:
    """Say why later words may mean something else: options, aliases, or another home folder."""
    if len(commands) > 1 and any(map(_changes_parsing, commands)):
        return CHANGES_PARSING
    if not any(map(_has_tilde, commands)):
        return ""
    names = {name for command in commands for name, _ in command.assignments}
    if "HOME" in names or any(
        "HOME" in word.text for command in commands for word in command.words
    ):
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
    """Return every command that can be seen in a text, with lines continued by `\\` and without."""
    commands = _commands_in_text(text)
    joined = text.replace("\\\n", "")  # as the shell does except in quotes and comments
    return commands if joined == text else _add_new(commands, _commands_in_text(joined))


def _commands_in_text(text: str) -> tuple[SimpleCommand, ...]:
    if _is_tangled(text):
        return _lenient_commands(text)
    root = _parse_tree(text)
    commands = _tree_commands(root, text)
    if not root.has_error:
        return commands
    return _add_new(commands, _lenient_commands(text))


def _compare_with_tree(
    text: str, tokens: list[Token], drafts: "list[_Draft]", plain: tuple[SimpleCommand, ...]
) -> Script:
    """Return the plain commands if the tree has the same; else those that either of them has."""
    root = _parse_tree(text)
    if _tree_agrees(root, tokens, [draft.head for draft in drafts if draft.head >= 0]):
        return Script(plain)
    return Script(_add_new(plain, _tree_commands(root, text)), READINGS_DIFFER)


def _add_new(
    commands: tuple[SimpleCommand, ...], others: tuple[SimpleCommand, ...]
) -> tuple[SimpleCommand, ...]:
    """Return the commands, and of the others those that have other words."""
    known = {command.argv for command in commands if not command.redirects}
    return (*commands, *(command for command in others if command.argv not in known))


# Limits: text that would take too long to parse is recognised without parsing it.

_MAX_COSTLY = 100
_MAX_HERE_DOCUMENTS = 10
_MAX_SIGNS = 500  # blanks and signs outside of here-documents
_HERE_DOCUMENT = re.compile(
    r"<<-?[ \t]*(['\"\\]?)([A-Za-z0-9_]+)\1[^\n]*\n(.*?\n)??\t*\2(?=\n|\Z)", re.S
)
_SIGN = re.compile(r"[ \t\n]+|[^\w \t\n]")
_EXPANDS = re.compile(r"[$`]|<<")
_COSTLY = re.compile(r"\$\[|<<|`")  # tree-sitter takes time with the square of their number
_NOT_BRACKETS = re.compile(r"[^(){}]+")
_STEPS = {"(": 1, "{": 1, ")": -1, "}": -1}


def _check_limits(text: str) -> None:
    """Raise `LimitExceeded` if a text is too long, or has brackets nested too deeply."""
    if len(text) > MAX_CHARACTERS:
        raise LimitExceeded(TOO_LONG)
    if text.count("(") + text.count("{") <= MAX_DEPTH:
        return
    brackets = _NOT_BRACKETS.sub("", text)
    if max(accumulate(map(_STEPS.__getitem__, brackets))) > MAX_DEPTH:
        raise LimitExceeded(TOO_DEEP)


def _is_tangled(text: str) -> bool:
    """Return whether tree-sitter would take too long.

    Of here-documents only what the shell expands counts.
    """
    if len(text) <= _MAX_SIGNS:
        return False
    if text.count("<<") <= _MAX_HERE_DOCUMENTS:  # for each one the whole text is searched
        text = _HERE_DOCUMENT.sub(lambda match: " ".join(_EXPANDS.findall(match.group())), text)
    return _has_more_than(_SIGN, text, _MAX_SIGNS) or _has_more_than(_COSTLY, text, _MAX_COSTLY)


def _has_more_than(pattern: re.Pattern[str], text: str, limit: int) -> bool:
    return next(islice(pattern.finditer(text), limit, None), None) is not None


# Our own parser: lists, pipes, subshells and groups of simple commands.
#
# Everything that it returns is certain. For the rest of the shell's grammar (control flow,
# functions, arithmetic, coprocesses) it raises `UnclearSyntax`.

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
_INCOMPLETE = "it is not a complete command"


@dataclass(slots=True)
class _Draft:
    """A simple command that is being parsed. `head` is where its first word begins."""

    scope: tuple[int, ...]
    follows: Follows
    head: int = -1
    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    piped: bool = False

    def to_command(self) -> SimpleCommand:
        return SimpleCommand(
            tuple(self.words),
            tuple(self.assignments),
            tuple(self.redirects),
            self.follows,
            scope=self.scope,
            piped=self.piped,
        )


def _parse_plain(text: str, tokens: list[Token]) -> list[_Draft]:
    """Return every simple command. Raise `UnclearSyntax` or `LimitExceeded`."""
    parser = _PlainParser(text, [token for token in tokens if token.kind != TEXT])
    parser.parse_list("")
    return parser.drafts


class _PlainParser:
    """Its state: the next token, the current subshell, and the operator before the next command."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.index = text, tokens, 0
        self.kinds = [*(token.kind for token in tokens), ""]  # each is needed several times
        self.drafts: list[_Draft] = []
        self.scope: tuple[int, ...] = ()
        self.scopes = self.depth = 0
        self.follows: Follows = ""

    def kind(self) -> str:
        """Return the kind of the next token, nothing at the end."""
        return self.kinds[self.index]

    def source(self) -> str:
        """Return the source text of the next token."""
        token = self.tokens[self.index]
        return self.text[token.start : token.end]

    def is_closed_by(self, closer: str) -> bool:
        """Return whether the next token is this closing bracket, or the end."""
        if closer == "}":
            return self.kind() == WORD and self.source() == "}"
        return self.kind() == closer

    def parse_list(self, closer: str) -> None:
        """Parse a list of commands up to its closing bracket, or to the end."""
        self.skip_newlines()
        while not self.is_closed_by(closer):
            self.parse_and_or()
            if self.kind() in _LIST_ENDS:
                self.follows = "&" if self.kind() == "&" else ";"
                self.index += 1
                self.skip_newlines()
            elif not self.is_closed_by(closer) or closer == "}":
                raise UnclearSyntax(_INCOMPLETE)

    def skip_newlines(self) -> None:
        """Skip empty lines."""
        while self.kind() == "\n":
            self.index += 1

    def parse_and_or(self) -> None:
        """Parse pipelines joined by `&&` and `||`. Before `&`, they run in a subshell."""
        first = len(self.drafts)
        self.parse_pipeline()
        while self.kind() in ("&&", "||"):
            self.follows = "&&" if self.kind() == "&&" else "||"
            self.index += 1
            self.skip_newlines()
            self.parse_pipeline()
        if self.kind() == "&":
            self.enter_subshell(first)

    def parse_pipeline(self) -> None:
        """Parse commands joined by `|`. Each of them runs in a subshell of its own."""
        first = len(self.drafts)
        is_simple = self.parse_command()
        piped = False
        while self.kind() in ("|", "|&"):
            if not piped:
                self.add_pipe_part(first, is_simple=is_simple)
            piped, self.follows = True, "|"
            self.index += 1
            self.skip_newlines()
            first = len(self.drafts)
            self.add_pipe_part(first, is_simple=self.parse_command())

    def add_pipe_part(self, first: int, *, is_simple: bool) -> None:
        """Make the commands from number `first` on one part of a pipe."""
        self.enter_subshell(first)
        if is_simple:
            self.drafts[first].piped = True

    def enter_subshell(self, first: int) -> None:
        """Put the commands from number `first` on into a subshell of their own."""
        self.scopes += 1
        depth = len(self.scope)
        for draft in self.drafts[first:]:
            draft.scope = (*draft.scope[:depth], self.scopes, *draft.scope[depth:])

    def parse_command(self) -> bool:
        """Parse a command. Return whether it is a simple one."""
        kind = self.kinds[self.index]
        if kind == "(":
            self.parse_group(")")
            return False
        if kind == WORD and self.source() == "{":
            self.parse_group("}")
            return False
        self.parse_simple()
        return True

    def parse_group(self, closer: str) -> None:
        """Parse a subshell or a group; its redirections become a command before it."""
        outer, first = self.scope, len(self.drafts)
        follows = self.follows
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitExceeded(TOO_DEEP)
        if closer == ")":
            self.scopes += 1
            self.scope = (*outer, self.scopes)
        self.index += 1
        self.parse_list(closer)
        if len(self.drafts) == first:
            raise UnclearSyntax(_INCOMPLETE)
        self.index += 1
        self.depth -= 1
        self.scope = outer
        redirections = _Draft(outer, follows)
        while self.parse_redirect(redirections):
            pass
        if redirections.redirects:
            self.drafts[first].follows = ";"
            self.drafts.insert(first, redirections)

    def parse_simple(self) -> None:
        """Parse a simple command: assignments, words and redirections in any order."""
        draft = _Draft(self.scope, self.follows)
        first = self.index
        while self.parse_words(draft) or self.parse_redirect(draft):
            pass
        if self.index == first:
            raise UnclearSyntax(_INCOMPLETE)
        if self.kind() == "(":
            raise UnclearSyntax(
                "it defines a function, or contains a bracket that is not understood"
            )
        self.drafts.append(draft)
        if len(self.drafts) > MAX_COMMANDS:
            raise LimitExceeded(TOO_MANY_COMMANDS)

    def parse_words(self, draft: _Draft) -> bool:
        """Parse words, and assignments before the first one. Return whether there are any."""
        first = self.index
        while self.kinds[self.index] == WORD:
            token = self.tokens[self.index]
            if draft.head < 0 and not self.parse_assignment(draft, source := self.source(), token):
                if source in _RESERVED_WORDS or source == "{":
                    raise UnclearSyntax(
                        f"it contains a part of the shell's grammar, {source}, that is not judged"
                    )
                draft.head = token.start
            if draft.head >= 0:
                draft.words.append(token.word)
            self.index += 1
        return self.index != first

    def parse_assignment(self, draft: _Draft, source: str, token: Token) -> bool:
        """Add a word to the assignments if it is one. Return whether it is."""
        match = _ASSIGNMENT.match(source)
        if match is None:
            return False
        if match[1] != "=":
            raise UnclearSyntax(
                "it contains an assignment to a list, or one that adds to a variable"
            )
        name, _, value = token.word.text.partition("=")
        draft.assignments.append((name, value))
        return True

    def parse_redirect(self, draft: _Draft) -> bool:
        """Parse a redirection. Return whether there is one."""
        handle = int(self.source()) if self.kinds[self.index] == HANDLE else None
        self.index += handle is not None
        operator = self.kinds[self.index]
        kind = _REDIRECT_KINDS.get(operator)
        if kind is None:
            return False
        token = self.tokens[self.index]
        self.index += 1
        if self.kind() != WORD:
            raise UnclearSyntax(_INCOMPLETE)
        target = self.tokens[self.index].word if operator not in ("<<", "<<-") else token.word
        draft.redirects.append(_to_redirect(operator, kind, target, handle))
        self.index += 1
        return True


def _to_redirect(operator: str, kind: RedirectKind, target: Word, handle: int | None) -> Redirect:
    """Return the redirection with its handle. Raise `UnclearSyntax` if its effect is uncertain."""
    if kind == "text":
        if operator == "<<<":
            if target.globs or target.tilde:
                raise UnclearSyntax("it contains a here-string that the shell may expand")
            target = Word(target.text + "\n")
    elif target.globs:
        raise UnclearSyntax("it redirects to a pattern")
    elif kind == "copy" and target.text != "-" and not _DIGITS.fullmatch(target.text):
        is_odd = not target.text or target.text[0].isdigit() or target.text[-1] == "-"
        if operator == "<&" or handle is not None or is_odd:
            raise UnclearSyntax("it copies a handle that is not a number")
        kind = "write"
    return Redirect(kind, target, (0 if operator[0] == "<" else 1) if handle is None else handle)


# tree-sitter: its syntax tree has to agree with our own parser. For a line that is not understood,
# the commands anywhere in the tree are returned.

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
    """Return the parser. Its import is slow, so it waits until a command is judged."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _parse_tree(text: str) -> "Node":
    """Return the root of the tree of a text as `to_byte_text` returns it.

    tree-sitter's grammar for bash can crash the process on characters beyond 255. For the shell
    they are letters of a word, so `%`, which is one as well, is parsed in their place.
    """
    return _parser().parse(text.encode("latin-1").translate(_TO_ASCII)).root_node


_TO_ASCII = bytes(range(128)) + b"%" * 128


def _tree_agrees(root: "Node", tokens: list[Token], heads: list[int]) -> bool:
    """Return whether the tree has the same tokens, and begins commands at the same words."""
    if root.has_error:
        return False
    starts, ends, tree_heads = set(), set(), set()
    waiting = [root]
    for node in waiting:
        kind = node.type
        if kind not in _KNOWN_NODES and node.is_named:
            return False
        if kind in _HEAD_NODES:
            tree_heads.add(node.start_byte)
        if node.child_count:
            waiting += node.children  # which is quicker than a cursor
        else:
            starts.add(node.start_byte)
            ends.add(node.end_byte)
    # The tree has no nodes for ends of lines, and none that begins with an empty here-document.
    visible = [token for token in tokens if token.kind != "\n"]
    if tree_heads != set(heads) or not ends.issuperset([token.end for token in visible]):
        return False
    return starts.issuperset([token.start for token in visible if token.kind != TEXT])


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
    """A node, and where in the script it is.

    Kind, children and parent are kept here because it is slow to get them from tree-sitter.
    """

    node: "Node"
    kind: str
    children: "list[Node]"
    parent: "_NodePosition | None" = None
    scope: tuple[int, ...] = ()
    depth: int = 0
    follows: Follows = ""
    piped: bool = False


def _tree_commands(root: "Node", text: str) -> tuple[SimpleCommand, ...]:
    """Return every command in the tree, in order."""
    commands: list[SimpleCommand] = []
    scopes = 0
    waiting = [_NodePosition(root, root.type, root.children)]
    while waiting:
        position = waiting.pop()
        if position.depth > MAX_DEPTH:
            raise LimitExceeded(TOO_DEEP)
        if position.kind in _NODES_OF_COMMANDS and (parts := _command_nodes(position)):
            simple = _tree_command(parts, text, position)
            if simple.words or simple.assignments or simple.redirects:
                commands.append(simple)
                if len(commands) > MAX_COMMANDS:
                    raise LimitExceeded(TOO_MANY_COMMANDS)
        scopes += 1
        waiting += _child_positions(position, scopes)[::-1]
    return tuple(commands)


def _child_positions(position: _NodePosition, number: int) -> list[_NodePosition]:
    """Return the children of a node. `number` is for the subshell, if the node is one."""
    kind, scope, follows = position.kind, position.scope, position.follows
    deeper = position.depth + (kind in _NESTED_NODES)
    piped = kind == "pipeline"
    if kind in _SUBSHELL_NODES:
        scope = (*scope, number)
    positions = []
    for index, child in enumerate(position.children):
        if not child.is_named:
            follows = _LIST_OPERATORS.get(child.type, follows)
        elif child.child_count or child.is_error:
            inner = (*scope, number, index) if piped else scope
            children = child.children
            positions.append(
                _NodePosition(child, child.type, children, position, inner, deeper, follows, piped)
            )
            follows = ";"
    return positions


def _command_nodes(position: _NodePosition) -> "Sequence[Node]":
    """Return the nodes that make up a command. Empty if the position is not that of a command."""
    kind, parent, children = position.kind, position.parent, position.children
    redirected = parent if parent is not None and parent.kind == "redirected_statement" else None
    if kind in _COMMAND_NODES:
        return children if redirected is None else [*children, *redirected.children[1:]]
    if kind == "redirected_statement":
        if children[0].type in _COMMAND_NODES:
            return ()
        return [child for child in children if child.type in _REDIRECT_NODES]
    if kind == "variable_assignment":
        return () if parent is not None and parent.kind in _COMMAND_NODES else [position.node]
    # The tree has `a && b > c` as one statement with a redirection; the shell opens c after a.
    if redirected is None or redirected.children[0].type in _COMMAND_NODES:
        return ()
    return [position.node]


class _CommandParts:
    """Collects the parts of a command."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.assignments: list[tuple[str, str]] = []
        self.redirects: list[Redirect] = []
        self.opaque = ""

    def add(self, node: "Node") -> None:
        kind = node.type
        if kind in _REDIRECT_NODES:
            self.add_redirect(node)
        elif kind == "variable_assignment" and not self.words:
            name, _, value = self.source(node).partition("=")
            word = self.word(value)
            self.assignments.append((from_byte_text(name), word.text))
        elif kind == "ERROR" or kind.endswith("_expression"):
            self.words.extend(map(self.word, self.source(node).split()))
        elif kind not in _NOT_WORDS:
            self.words.append(self.word(self.source(node)))

    def add_redirect(self, node: "Node") -> None:
        """Add a redirection. Of several targets only the first is one; the others are words."""
        kind: RedirectKind | None = None
        handle, targets = "", list[Word]()
        for child in node.children:
            node_type = child.type
            if node_type in _REDIRECT_KINDS:
                kind = _REDIRECT_KINDS[node_type]
            elif node_type == "file_descriptor":
                handle = self.source(child)
            elif node_type in _REDIRECT_NODES:
                self.add_redirect(child)
            elif node_type == "heredoc_body":
                targets.insert(0, Word(from_byte_text(self.source(child)), known=False))
            elif child.is_named and node_type not in _NOT_WORDS:
                targets.append(self.word(self.source(child)))
        if kind is not None and targets:
            number = int(handle) if handle.isdigit() else int(kind not in ("read", "text"))
            self.redirects.append(Redirect(kind, targets[0], number))
            self.words.extend(targets[1:])

    def source(self, node: "Node") -> str:
        return self.text[node.start_byte : node.end_byte]

    def word(self, source: str) -> Word:
        word, opaque = decode_word(source)
        self.opaque = self.opaque or opaque
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
        parts.opaque,
        position.scope,
        position.piped,
    )


# The lenient parser: in a line that is too tangled for both others, it finds whatever may be a
# command.

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
TANGLED = "it is too complex to be read with certainty"


def _lenient_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return everything in a text that may be a command, in order."""
    commands: list[SimpleCommand] = []
    pieces: list[tuple[str, str]] = []
    for piece in _LENIENT_PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "end":
            if pieces:
                _add_lenient_command(pieces, commands)
                pieces = []
        elif kind != "gap":
            pieces.append((str(kind), piece.group()))
    _add_lenient_command(pieces, commands)
    return tuple(commands)


def _add_lenient_command(pieces: list[tuple[str, str]], commands: list[SimpleCommand]) -> None:
    """Add a command made of these pieces. Redirections that are repeated are added once."""
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
        commands.append(_lenient_command(words, list(redirects), ";" if commands else ""))
    if len(commands) > MAX_COMMANDS:
        raise LimitExceeded(TOO_MANY_COMMANDS)


def _lenient_command(
    words: list[str], redirects: list[tuple[str, str]], follows: Follows
) -> SimpleCommand:
    if len(words) > MAX_TOKENS:
        words = [words[0], *dict.fromkeys(words[1:])]
    return SimpleCommand(
        tuple([_lenient_word(raw, number) for number, raw in enumerate(words)]),
        redirects=tuple(
            [
                Redirect(_REDIRECT_KINDS[operator], _lenient_word(raw, number))
                for number, (operator, raw) in enumerate(redirects)
            ]
        ),
        follows=follows,
        opaque=TANGLED,
    )


def _lenient_word(source: str, number: int) -> Word:
    """Return a word. After many of them only the quotes are removed, which is fast."""
    if number < MAX_TOKENS:
        return decode_word(source)[0]
    return Word(from_byte_text(source.translate(_QUOTES)), known=False)
