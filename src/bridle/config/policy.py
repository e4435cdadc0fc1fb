"""Files of rules, in YAML: read them, and add a rule that a person made of an answer.

A file that cannot be understood is refused with its line and what was expected: half a policy is
none. What the rules decide is not known here. A rule that is added leaves every other line of the
person's file as it is, and the result is read back before it is written; if that does not work, the
file stays as it is and the person is told to edit it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bridle.config.yaml_file import has_content, items_of, location_of, open_yaml, read_text
from bridle.errors import ConfigError
from bridle.policy import ORDER, Rule, Verdict, parse_rule
from bridle.workspace.fs import replace_file

_EXAMPLE = "For example `rules:`, and below it `- allow: shell(git status)`."
_KEYS = ("in", "reason", "expires", "examples")
_LONGEST = 200  # characters of a comment


class Example(Struct, frozen=True):
    """A call and the verdict that is expected: a tool, and a command, a path or a host."""

    expects: Verdict
    tool: str
    subject: str
    origin: str = ""


class RuleFile(Struct, frozen=True):
    """The content of a file. Rules that have expired, or are for another folder, are separate."""

    path: Path
    rules: tuple[Rule, ...] = ()
    examples: tuple[Example, ...] = ()
    expired: tuple[Rule, ...] = ()
    elsewhere: tuple[Rule, ...] = ()


# --- read --------------------------------------------------------------------------------------


def read_rules(path: Path, *, required: bool = False, root: str | Path = "") -> RuleFile:
    """Read the rules of a file that apply in the folder `root`; none if there is no file.

    Raise `ConfigError` if the file is `required` and does not exist.
    """
    text = read_text(path, "rules")
    if text is None and required:
        raise ConfigError(f"{path}: there is no such file", hint="Name a file with rules.")
    return parse_rules(text or "", path, root=root)


def parse_rules(
    text: str, path: Path, today: date | None = None, root: str | Path = ""
) -> RuleFile:
    """Parse rules. Raise `ConfigError` with the file, the line and what was expected.

    A rule with an `in` applies in that folder only; without a `root`, in none.
    """
    if not has_content(text):
        return RuleFile(path)
    here = ("", os.path.realpath(root)) if root else ("",)
    today = today or datetime.now(UTC).date()
    sorted_rules: dict[str, list[Rule]] = {"rules": [], "expired": [], "elsewhere": []}
    examples: list[Example] = []
    with open_yaml(text, path) as (loader, top):
        for key, node, location in items_of(top, path, "the file", _EXAMPLE) if top else ():
            if key == "examples":
                examples += _examples(loader, node, path, "shell")
            elif key != "rules":
                hint = "There are `rules` and `examples`."
                raise ConfigError(f"{location}: there is no `{key}` in a file of rules", hint=hint)
            else:
                for rule, last_day, own_examples in _rules(loader, node, path):
                    is_expired = last_day is not None and last_day < today
                    applies = "rules" if rule.where in here else "elsewhere"
                    kind = "expired" if is_expired else applies
                    sorted_rules[kind].append(rule)
                    examples += own_examples if kind == "rules" else ()
    return RuleFile(
        path=path,
        rules=tuple(sorted_rules["rules"]),
        examples=tuple(examples),
        expired=tuple(sorted_rules["expired"]),
        elsewhere=tuple(sorted_rules["elsewhere"]),
    )


_Entry = tuple[Rule, date | None, list[Example]]  # a rule, its last day, its examples


def _rules(loader: Any, node: Any, path: Path) -> Iterator[_Entry]:
    if node.id == "scalar" and not node.value:
        return
    if node.id != "sequence":
        raise ConfigError(f"{location_of(node, path)}: `rules` has to be a list", hint=_EXAMPLE)
    for item in node.value:
        if item.id == "scalar":
            yield parse_rule(item.value, location_of(item, path)), None, []
        else:
            yield _rule(loader, item, path)


def _rule(loader: Any, node: Any, path: Path) -> _Entry:
    """`allow: shell(…)` with the other keys beside it."""
    fields = {
        key: (value, location) for key, value, location in items_of(node, path, "a rule", _EXAMPLE)
    }
    verdicts = [key for key in fields if key in ORDER]
    for key, (_, location) in fields.items():
        if key not in ORDER and key not in _KEYS:
            hint = f"A rule has {', '.join(ORDER)}; beside it {', '.join(_KEYS)}."
            raise ConfigError(f"{location}: there is no `{key}` in a rule", hint=hint)
    if len(verdicts) != 1:
        hint = "Write one of allow, ask and deny in each; a `-` begins the next rule."
        raise ConfigError(
            f"{location_of(node, path)}: a rule says one thing, and this one {len(verdicts)}",
            hint=hint,
        )
    verdict = verdicts[0]
    subject, location = fields[verdict]
    rule = parse_rule(f"{verdict}: {_text(loader, subject, location, verdict)}", location)
    if "reason" in fields:
        rule = replace(rule, reason=_text(loader, *fields["reason"], "reason"))
    if "in" in fields:
        rule = replace(rule, where=_folder(loader, *fields["in"]))
    last_day = _day(loader, *fields["expires"]) if "expires" in fields else None
    examples = (
        _examples(loader, fields["examples"][0], path, rule.tool) if "examples" in fields else []
    )
    return rule, last_day, examples


def _text(loader: Any, node: Any, location: str, key: str) -> str:
    value = loader.construct_object(node, deep=True) if node.id == "scalar" else None
    if not isinstance(value, str) or not value.isprintable():
        hint = "Put it in quotes if it begins with a sign, or holds `: ` or ` #`."
        raise ConfigError(f"{location}: `{key}` has to be text on one line", hint=hint)
    return value


def _folder(loader: Any, node: Any, location: str) -> str:
    value = _text(loader, node, location, "in")
    if not value.startswith("/"):
        hint = "Write the folder that is the workspace in full: `in: /home/ada/project`."
        raise ConfigError(f"{location}: `in` has to be an absolute path", hint=hint)
    return os.path.normpath(value)


def _day(loader: Any, node: Any, location: str) -> date:
    try:
        value = loader.construct_object(node, deep=True)
    except ValueError:  # the thirteenth month
        value = None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    hint = "Write the last day on which the rule holds: `expires: 2031-12-31`."
    raise ConfigError(f"{location}: `expires` has to be a day", hint=hint)


def _examples(loader: Any, node: Any, path: Path, tool: str) -> list[Example]:
    """`allow: [...]`, `ask: [...]`, `deny: [...]`: commands, or subjects of the rule's tool."""
    hint = 'Write which call gets which verdict: `ask: ["git push origin main"]`.'
    examples: list[Example] = []
    for key, value, location in items_of(node, path, "`examples`", hint):
        if key not in ORDER:
            raise ConfigError(f"{location}: an example cannot be expected to `{key}`", hint=hint)
        for item in value.value if value.id == "sequence" else (value,):
            for name, subject in _calls(loader, item, path, tool):
                examples.append(Example(key, name, subject, location_of(item, path)))
    return examples


def _calls(loader: Any, node: Any, path: Path, tool: str) -> Iterator[tuple[str, str]]:
    """A command or a path for the rule's own tool; or `write: a.sql`, with the tool's name."""
    if node.id != "mapping":
        plain = "shell" if set(tool) & set("*?") else tool
        yield plain, _text(loader, node, location_of(node, path), "examples")
        return
    for name, value, location in items_of(node, path, "an example", "For example `write: a.sql`."):
        yield name, _text(loader, value, location, name)


# --- add ---------------------------------------------------------------------------------------


def add_rule(path: Path, words: str, note: str = "", where: str = "") -> Rule:
    """Put a rule into that file, before the others. Raise `ConfigError`; then nothing changed.

    `note` becomes a comment; `where` is the root of the workspace that the rule is for.
    """
    try:
        with _locked(path):
            if (text := with_rule(path, words, note, where)) is not None:
                replace_file(path, text.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: the rule cannot be written: {error.strerror}",
            hint="Check that you may write there.",
        ) from error
    return replace(parse_rule(words), where=where)


def with_rule(path: Path, words: str, note: str = "", where: str = "") -> str | None:
    """The text of the file with that rule; None if it has it already. Raise `ConfigError`."""
    rule = replace(parse_rule(words), where=where)
    text = read_text(path, "rules") or ""
    before = _all_rules(text, path)
    if {(str(rule), where), (str(rule), "")} & set(before):
        return None
    after = _insert(text, rule, path, note)
    try:
        now = _all_rules(after, path)
    except ConfigError:
        now = []
    if sorted(now) != sorted([(str(rule), where), *before]):
        hint = f"Write it there yourself: - {rule}"
        raise ConfigError(f"{path}: there is no place for another rule in it", hint=hint)
    return after


def _all_rules(text: str, path: Path) -> list[tuple[str, str]]:
    """Return every rule in words, and the folder that it is for."""
    file = parse_rules(text, path)
    return [(str(rule), rule.where) for rule in (*file.rules, *file.elsewhere)]


def _insert(text: str, rule: Rule, path: Path, note: str) -> str:
    """Return the text with the rule as the first of its list."""
    subject = str(rule).partition(": ")[2].replace("'", "''")
    item = [f"- {rule.verdict}: '{subject}'"]
    if note := "".join(char for char in note if char.isprintable())[:_LONGEST]:
        item[0] += f"  # {note}"
    if rule.where:
        where = rule.where.replace("'", "''")
        item.append(f"  in: '{where}'")
    if not has_content(text):
        return f"{text.rstrip()}\n\nrules:\n{_indented(item, 2)}\n".lstrip("\n")
    with open_yaml(text, path) as (_, root):
        rules = next((value for name, value in root.value if name.value == "rules"), None)
        line, indent = _first_item(rules) if rules is not None else (-1, 0)
    if line < 0:
        return f"{text.rstrip()}\n\nrules:\n{_indented(item, 2)}\n"
    lines = text.rstrip("\n").split("\n")
    return "\n".join((*lines[:line], _indented(item, indent), *lines[line:])) + "\n"


def _indented(lines: list[str], indent: int) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _first_item(node: Any) -> tuple[int, int]:
    """Return the line and the indent of the first item of a list."""
    if node.id == "sequence" and not node.flow_style:
        return node.start_mark.line, node.start_mark.column
    return node.end_mark.line + 1, 2  # `rules:` without a value


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time change the file, so that no rule is lost."""
    folder = Path(os.path.realpath(path)).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
