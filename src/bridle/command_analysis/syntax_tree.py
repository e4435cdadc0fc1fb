"""The second reading of a command line: the syntax tree that tree-sitter makes of it.

Of a line that is not understood, it gives the commands that can be seen anywhere in the tree.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from bridle.command_analysis.grammar import KINDS, Follows
from bridle.command_analysis.lexer import (
    COMMANDS,
    DEPTH,
    TEXT,
    TOO_DEEP,
    TOO_MANY,
    OverLimit,
    Token,
    decode,
    unview,
)
from bridle.command_analysis.syntax import Redirect, RedirectKind, Simple, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

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
            simple = _simple(parts, text, place)
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
            if sort in KINDS:
                kind = KINDS[sort]
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


def _simple(nodes: "Sequence[Node]", text: str, where: _Place) -> Simple:
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
