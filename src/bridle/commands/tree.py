"""The second reading of a command line: the tree that tree-sitter makes of it.

It serves twice. Where the plain reading is certain, the tree has to cut the text at the same places
(`agrees`); two parsers that differ have not understood it. Where there is no plain reading, the
tree shows every command that can be seen, inside substitutions, functions and loops too
(`commands_in`), so that what is forbidden is seen. Nothing here says that a command is understood.
"""

from functools import cache
from typing import TYPE_CHECKING

from bridle.commands.tokens import TEXT, Token

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
