"""The commands that can be seen in a tree, wherever they stand: for what is not understood.

What is found here is for rules that forbid and for the floor; it allows nothing. So it takes more
for a command than the shell would, rather than less.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bridle.commands.limits import COMMANDS, DEPTH, TOO_DEEP, TOO_MANY, OverLimit
from bridle.commands.plain import KINDS, Follows
from bridle.commands.shape import Redirect, RedirectKind, Simple, Word
from bridle.commands.words import decode, unview

if TYPE_CHECKING:
    from tree_sitter import Node

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


class _Where(NamedTuple):
    scope: tuple[int, ...] = ()
    depth: int = 0
    follows: Follows = ""
    piped: bool = False


class _Place(NamedTuple):
    """A node, and the one it stands in: to ask the tree for that is dear."""

    node: "Node"
    above: "_Place | None"
    where: _Where


def commands_in(root: "Node", text: str) -> tuple[Simple, ...]:
    """Every command that can be seen, in the order in which they stand."""
    found: list[Simple] = []
    scopes = 0
    waiting = [_Place(root, None, _Where())]
    while waiting:
        place = waiting.pop()
        if place.where.depth > DEPTH:
            raise OverLimit(TOO_DEEP)
        children = place.node.children
        found.extend(_commands(place, children, text))
        if len(found) > COMMANDS:
            raise OverLimit(TOO_MANY)
        scopes += 1
        waiting.extend(reversed(list(_inside(place, children, scopes))))
    return tuple(found)


def _inside(place: _Place, children: "list[Node]", number: int) -> Iterator[_Place]:
    """What stands in a node, and where that is."""
    kind, where = place.node.type, place.where
    deeper = where.depth + (kind in _NESTS)
    scope = (*where.scope, number) if kind in _SUBSHELLS else where.scope
    follows = where.follows
    for index, child in enumerate(children):
        if not child.is_named:
            follows = _JOINS.get(child.type, follows)
        elif child.child_count or child.is_error:
            inner = (*scope, number, index) if kind == "pipeline" else scope
            yield _Place(child, place, _Where(inner, deeper, follows, kind == "pipeline"))
            follows = ";"


def _commands(place: _Place, children: "list[Node]", text: str) -> Iterator[Simple]:
    parts = list(_parts(place, children))
    if parts:
        simple = _simple(parts, text, place.where)
        if simple.words or simple.assignments or simple.redirects:
            yield simple


def _parts(place: _Place, children: "list[Node]") -> Iterable["Node"]:
    """What belongs to the command that a node is; nothing where it is none."""
    kind, above = place.node.type, place.above
    around = above.node.type if above is not None else ""
    if kind in _COMMANDS:
        if above is not None and around == "redirected_statement":
            return [*children, *above.node.children[1:]]
        return children
    if kind == "redirected_statement" and children[0].type not in _COMMANDS:
        return [one for one in children if one.type in _REDIRECTS]
    if kind in _REDIRECTS and above is not None and around == "redirected_statement":
        # The tree has `a && b > c` as one statement with a redirection; the shell opens c after a.
        return () if above.node.children[0].type in _COMMANDS else [place.node]
    if kind == "variable_assignment" and around not in _COMMANDS:
        return [place.node]
    return ()


class _Parts:
    """What a command is made of, as it is gathered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.assignments: list[tuple[str, str]] = []
        self.redirects: list[Redirect] = []
        self.why = ""

    def add(self, node: "Node") -> None:
        if node.type in _REDIRECTS:
            self.redirect(node)
        elif node.type == "variable_assignment" and not self.words:
            name, _, value = self.raw(node).partition("=")
            word = self.decoded(value)
            self.assignments.append((unview(name), word.text))
        elif node.type.endswith("_expression") or node.type == "ERROR":
            self.words.extend(map(self.decoded, self.raw(node).split()))
        elif node.type not in _NO_WORDS:
            self.words.append(self.decoded(self.raw(node)))

    def redirect(self, node: "Node") -> None:
        """A redirection. Words that the tree takes for further targets are the command's own."""
        kind: RedirectKind | None = None
        handle, targets = "", list[Word]()
        for child in node.children:
            if child.type in KINDS:
                kind = KINDS[child.type]
            elif child.type == "file_descriptor":
                handle = self.raw(child)
            elif child.type in _REDIRECTS:
                self.redirect(child)
            elif child.type == "heredoc_body":
                targets.insert(0, Word(unview(self.raw(child)), known=False))
            elif child.is_named and child.type not in _NO_WORDS:
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


def _simple(nodes: Iterable["Node"], text: str, where: _Where) -> Simple:
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
