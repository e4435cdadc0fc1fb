"""A command line, read the way that `bash -c` would read it, or the reason why that is not certain.

Two parsers read it: our own, which knows the plain part of the grammar and nothing else, and
tree-sitter's, which knows all of it but not always as bash does. Only what both read alike is
understood; all else is opaque, with the commands that could be seen in it. Knows no programs.
"""

import re
from functools import lru_cache

from bridle.commands.limits import OverLimit, check, is_tangled
from bridle.commands.loose import commands_of
from bridle.commands.plain import Draft, read_plain
from bridle.commands.quotes import Unclear
from bridle.commands.seen import commands_in
from bridle.commands.shape import Script, Simple
from bridle.commands.tokens import Token, tokens_of
from bridle.commands.tree import agrees, tree_of
from bridle.commands.words import view

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
        drafts = read_plain(viewed, tokens)
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
    text: str, tokens: list[Token], drafts: list[Draft], plain: tuple[Simple, ...]
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
