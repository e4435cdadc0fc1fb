"""Rule files: the person's own, and that of a folder which they trust. YAML, each rule with a line.

A file that cannot be understood is refused with its line and what was expected: half a policy is
none. Reads rules and their examples; what they come to is decided elsewhere.
"""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.config.marked import (
    composed,
    decoded,
    pairs,
    place_of,
    read_text,
    refuse_dangling,
    says_something,
)
from bridle.config.places import policy_file, state_folder
from bridle.config.trust import POLICY, Trust
from bridle.errors import ConfigError
from bridle.policy import ORDER, Rule, Verdict, read_rule

_EXAMPLE = "For example `rules:`, and below it `- allow: shell(git status)`."
_KEYS = ("in", "reason", "expires", "examples")
_WHAT = "a rule"


class Example(Struct, frozen=True):
    """A call, and what is to become of it: a tool, and a command, a path or a host."""

    expects: Verdict
    tool: str
    subject: str
    origin: str = ""


class RuleFile(Struct, frozen=True):
    """What a file says. Rules whose day is over, or which are for another folder, stand apart."""

    path: Path
    rules: tuple[Rule, ...] = ()
    examples: tuple[Example, ...] = ()
    expired: tuple[Rule, ...] = ()
    elsewhere: tuple[Rule, ...] = ()


class Standing(Struct, frozen=True):
    """The rules that hold in a folder, and what deserves a word to the person, with a hint."""

    rules: tuple[Rule, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def standing_rules(root: str | Path, environ: Mapping[str, str] | None = None) -> Standing:
    """The person's rules, then those of the folder where it is trusted. Raise `ConfigError`."""
    environ = os.environ if environ is None else environ
    rules = read_rules(policy_file(environ), root=root).rules
    theirs = Path(root, POLICY)
    if not os.path.lexists(theirs):
        return Standing(rules)
    trust = Trust(state_folder(environ))
    data = trust.read(root, POLICY)
    if data is None:
        if os.path.realpath(root) in trust.folders():  # the person counts on what it said
            refuse_dangling(theirs, "rules")
        note = "this folder has its own rules, which do not count"
        hint = "`bridle trust` shows them and lets you accept them."
        return Standing(rules, ((note, hint),))
    return Standing(rules + parse_rules(decoded(data, theirs, "rules"), theirs, root=root).rules)


def read_rules(path: Path, *, required: bool = False, root: str | Path = "") -> RuleFile:
    """What a file says in the folder `root`; nothing without one, unless it was asked for."""
    text = read_text(path, "rules")
    if text is None and required:
        raise ConfigError(f"{path}: there is no such file", hint="Name a file with rules.")
    return parse_rules(text or "", path, root=root)


def parse_rules(
    text: str, path: Path, today: date | None = None, root: str | Path = ""
) -> RuleFile:
    """The rules in a text. Raise `ConfigError` with the file, the line and what was expected.

    A rule with an `in` counts in that folder alone; without a `root`, in none.
    """
    if not says_something(text):
        return RuleFile(path)
    here = ("", os.path.realpath(root)) if root else ("",)
    today = today or datetime.now(UTC).date()
    kept: dict[str, list[Rule]] = {"rules": [], "expired": [], "elsewhere": []}
    examples: list[Example] = []
    with composed(text, path) as (loader, root):
        for key, node, place in pairs(root, path, "the file", _EXAMPLE) if root else ():
            if key == "examples":
                examples += _examples(loader, node, path, "shell")
            elif key != "rules":
                hint = "There are `rules` and `examples`."
                raise ConfigError(f"{place}: there is no `{key}` in a file of rules", hint=hint)
            else:
                for rule, ends, shown in _rules(loader, node, path):
                    over = ends is not None and ends < today
                    kind = "expired" if over else "rules" if rule.where in here else "elsewhere"
                    kept[kind].append(rule)
                    examples += shown if kind == "rules" else ()
    rules, expired, elsewhere = map(tuple, kept.values())
    return RuleFile(path, rules, tuple(examples), expired, elsewhere)


_Found = tuple[Rule, date | None, list[Example]]


def _rules(loader: Any, node: Any, path: Path) -> Iterator[_Found]:
    if node.id == "scalar" and not node.value:
        return
    if node.id != "sequence":
        place = place_of(node, path)
        raise ConfigError(f"{place}: `rules` has to be a list", hint=_EXAMPLE)
    for item in node.value:
        if item.id == "scalar":
            yield read_rule(item.value, place_of(item, path)), None, []
        else:
            yield _rule(loader, item, path)


def _rule(loader: Any, node: Any, path: Path) -> _Found:
    """`allow: shell(…)` with what else is said of it."""
    found = {key: (value, place) for key, value, place in pairs(node, path, _WHAT, _EXAMPLE)}
    place = place_of(node, path)
    said = [key for key in found if key in ORDER]
    for key, (_, where) in found.items():
        if key not in ORDER and key not in _KEYS:
            hint = f"A rule has {', '.join(ORDER)}; beside it {', '.join(_KEYS)}."
            raise ConfigError(f"{where}: there is no `{key}` in a rule", hint=hint)
    if len(said) != 1:
        hint = "Write one of allow, ask and deny in each; a `-` begins the next rule."
        raise ConfigError(f"{place}: a rule says one thing, and this one {len(said)}", hint=hint)
    verdict = said[0]
    about, where = found[verdict]
    rule = read_rule(f"{verdict}: {_words(loader, about, where, verdict)}", where)
    if "reason" in found:
        rule = msgspec.structs.replace(rule, reason=_words(loader, *found["reason"], "reason"))
    if "in" in found:
        rule = msgspec.structs.replace(rule, where=_folder(loader, *found["in"]))
    ends = _day(loader, *found["expires"]) if "expires" in found else None
    shown = _examples(loader, found["examples"][0], path, rule.tool) if "examples" in found else []
    return rule, ends, shown


def _words(loader: Any, node: Any, place: str, key: str) -> str:
    value = loader.construct_object(node, deep=True) if node.id == "scalar" else None
    if not isinstance(value, str) or not value.isprintable():
        hint = "Put it in quotes if it begins with a sign, or holds `: ` or ` #`."
        raise ConfigError(f"{place}: `{key}` has to be text on one line", hint=hint)
    return value


def _folder(loader: Any, node: Any, place: str) -> str:
    value = _words(loader, node, place, "in")
    if not value.startswith("/"):
        hint = "Write the folder that is the workspace in full: `in: /home/ada/project`."
        raise ConfigError(f"{place}: `in` has to be a whole path", hint=hint)
    return os.path.normpath(value)


def _day(loader: Any, node: Any, place: str) -> date:
    try:
        value = loader.construct_object(node, deep=True)
    except ValueError:  # the thirteenth month
        value = None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    hint = "Write the last day on which the rule holds: `expires: 2031-12-31`."
    raise ConfigError(f"{place}: `expires` has to be a day", hint=hint)


def _examples(loader: Any, node: Any, path: Path, tool: str) -> list[Example]:
    """`allow: [...]`, `ask: [...]`, `deny: [...]`: commands, or what the rule's tool is about."""
    hint = 'Write what is to become of what: `ask: ["git push origin main"]`.'
    found: list[Example] = []
    for key, value, place in pairs(node, path, "`examples`", hint):
        if key not in ORDER:
            raise ConfigError(f"{place}: an example cannot be expected to `{key}`", hint=hint)
        for item in value.value if value.id == "sequence" else (value,):
            where = place_of(item, path)
            for name, words in _calls(loader, item, path, tool):
                found.append(Example(key, name, words, where))
    return found


def _calls(loader: Any, node: Any, path: Path, tool: str) -> Iterator[tuple[str, str]]:
    """A command or a path for the rule's own tool; or `write: a.sql`, with the tool's name."""
    if node.id != "mapping":
        plain = "shell" if set(tool) & set("*?") else tool
        yield plain, _words(loader, node, place_of(node, path), "examples")
        return
    for name, value, place in pairs(node, path, "an example", "For example `write: a.sql`."):
        yield name, _words(loader, value, place, name)
