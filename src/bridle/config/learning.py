"""A rule that a person made of an answer, written into their own file of rules.

The file is theirs: every other line stays as it is, and what comes out is read back before it is
kept. Where that does not work, nothing is changed, and they are told to write it themselves.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bridle.config.marked import composed, read_text, says_something
from bridle.config.policy import parse_rules
from bridle.errors import ConfigError
from bridle.policy import Rule, read_rule
from bridle.workspace.replacing import replace_file

_LONGEST = 200  # characters of a comment


def add_rule(path: Path, words: str, note: str = "", where: str = "") -> Rule:
    """Put a rule into that file, before the others. Raise `ConfigError`; then nothing changed.

    `note` says where it came from, in a comment; `where` is the root of the workspace it is for.
    """
    try:
        with _alone(path):
            if (after := with_rule(path, words, note, where)) is not None:
                replace_file(path, after.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: the rule cannot be written: {error.strerror}",
            hint="Check that you may write there.",
        ) from error
    return replace(read_rule(words), where=where)


def with_rule(path: Path, words: str, note: str = "", where: str = "") -> str | None:
    """What the file would say with that rule; None: it does already. Raise `ConfigError`."""
    rule = replace(read_rule(words), where=where)
    text = read_text(path, "rules") or ""
    before = _told(text, path)
    if {(str(rule), where), (str(rule), "")} & set(before):
        return None
    after = _with(text, rule, path, note)
    try:
        now = _told(after, path)
    except ConfigError:
        now = []
    if sorted(now) != sorted([(str(rule), where), *before]):
        hint = f"Write it there yourself: - {rule}"
        raise ConfigError(f"{path}: there is no place for another rule in it", hint=hint)
    return after


def _told(text: str, path: Path) -> list[tuple[str, str]]:
    """What a text says, for every folder: each rule in its words, and where it counts."""
    file = parse_rules(text, path)
    return [(str(one), one.where) for one in (*file.rules, *file.elsewhere)]


def _with(text: str, rule: Rule, path: Path, note: str) -> str:
    """The text with the rule as the first of its list."""
    about = str(rule).partition(": ")[2].replace("'", "''")
    item = [f"- {rule.verdict}: '{about}'"]
    if note := "".join(char for char in note if char.isprintable())[:_LONGEST]:
        item[0] += f"  # {note}"
    if rule.where:
        where = rule.where.replace("'", "''")
        item.append(f"  in: '{where}'")
    if not says_something(text):
        return f"{text.rstrip()}\n\nrules:\n{_indented(item, 2)}\n".lstrip("\n")
    with composed(text, path) as (_, root):
        at = next((value for name, value in root.value if name.value == "rules"), None)
        line, indent = _spot(at) if at is not None else (-1, 0)
    if line < 0:
        return f"{text.rstrip()}\n\nrules:\n{_indented(item, 2)}\n"
    lines = text.rstrip("\n").split("\n")
    return "\n".join((*lines[:line], _indented(item, indent), *lines[line:])) + "\n"


def _indented(lines: list[str], indent: int) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _spot(node: Any) -> tuple[int, int]:
    """Where the first item of a list would stand: its line and how far it is indented."""
    if node.id == "sequence" and not node.flow_style:
        return node.start_mark.line, node.start_mark.column
    return node.end_mark.line + 1, 2  # `rules:` with nothing behind it


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One at a time: of two answers in the same moment neither loses the other's rule."""
    import fcntl

    folder = Path(os.path.realpath(path)).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
