"""What `bridle policy check` and `bridle policy explain` print: decisions of a dry run."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec
from msgspec import Struct

from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config.paths import state_folder
from bridle.config.policy import RuleFile
from bridle.config.trust import POLICY, Trust
from bridle.engine.gate import JudgedCall
from bridle.errors import AgentError
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Facts, Mode, Rule, parse_rule
from bridle.runtime.dry_run import DryRun
from bridle.workspace.text import quantity

_LONGEST = 32_000_000  # bytes of a line
_SAID = {"allow": "runs unasked", "ask": "asks", "deny": "is denied"}
_DOES = {
    "reads": "only reads",
    "edits": "changes files of the workspace",
    "builds": "builds or tests",
    "changes": "may change things",
}
_SIGNS = {"read": "<", "write": ">", "append": ">>", "text": "<<"}


class Line(Struct):
    """One question, as a program puts it."""

    command: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    mode: Mode | None = None
    rules: tuple[str, ...] = ()
    cwd: str = ""


_read = msgspec.json.Decoder(Line).decode
_write = msgspec.json.Encoder().encode


def answer_lines(dry_run: DryRun, lines: BinaryIO, out: BinaryIO, mode: Mode) -> int:
    """A decision for each line, as it comes. A line that cannot be read is denied, and said so."""
    while line := lines.readline(_LONGEST):
        if len(line) == _LONGEST and not line.endswith(b"\n"):
            _skip(lines)
            out.write(_wrong(f"the line is longer than {_LONGEST:,} bytes"))
        else:
            out.write(_answer(dry_run, line, mode))
        out.flush()
    return 0


def _skip(lines: BinaryIO) -> None:
    while (rest := lines.readline(_LONGEST)) and not rest.endswith(b"\n"):
        pass


def _answer(dry_run: DryRun, line: bytes, mode: Mode) -> bytes:
    try:
        asked = _read(line)
        rules = _rules(asked.rules)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _wrong(f"this is no question: {error}")
    except AgentError as error:
        return _wrong(error.message)
    if asked.command is None and asked.tool is None:
        return _wrong('a line holds {"command": …} or {"tool": …, "arguments": …}')
    if "\0" in asked.cwd:
        return _wrong("`cwd` is no folder")
    call = ToolCall("", asked.tool or "shell", asked.arguments or {})
    if asked.command is not None:
        call = ToolCall("", call.name, {**call.arguments, "command": asked.command})
    found = dry_run.judge(call, asked.mode or mode, rules, asked.cwd)
    return _told(found.decision)


@lru_cache(maxsize=256)
def _rules(texts: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, "rules") for text in texts)


def json_call(dry_run: DryRun, call: ToolCall, mode: Mode) -> bytes:
    """One decision, as a line."""
    return _told(dry_run.judge(call, mode).decision)


def _told(decision: Decision) -> bytes:
    said = {"decision": decision.verdict, "reason": decision.reason, "rule": decision.rule}
    return _encoded(said)


def _wrong(problem: str) -> bytes:
    return _encoded({"decision": "deny", "reason": problem, "rule": "", "error": problem})


def _encoded(value: dict[str, str]) -> bytes:
    try:
        return _write(value) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        sound = {key: text.encode("utf-8", "replace").decode() for key, text in value.items()}
        return _write(sound) + b"\n"


def explain_call(dry_run: DryRun, call: ToolCall, mode: Mode) -> int:
    """Show it to a person."""
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    found = dry_run.judge(call, mode)
    for line in explained(dry_run, call, found, paint, width):
        click.echo(line)
    level = dry_run.sandbox.level
    count = quantity(len(dry_run.rules), "rule")
    click.echo(paint.dim(f"mode {mode} · sandbox {level} · {count} · {dry_run.machine.root}"))
    return 0


def explained(
    dry_run: DryRun, call: ToolCall, found: JudgedCall, paint: Paint, width: int
) -> Iterator[str]:
    """The parse, the effects, the decision."""
    command = call.arguments.get("command")
    if call.name == "shell" and isinstance(command, str):
        yield from _parsed(command, paint, width)
    yield from _effects(call, found.facts, paint, width)
    yield from _decided(dry_run, found.decision, paint)


def _parsed(command: str, paint: Paint, width: int) -> Iterator[str]:
    from bridle.command_analysis.parser import parse

    script = parse(command)
    yield paint.bold("what it says")
    if script.over_limit:
        yield f"  {paint.red(plain(script.over_limit))}"
    for one in script.commands:
        joined = f"{one.follows} " if one.follows else ""
        words = " ".join(
            (*(f"{name}={value}" for name, value in one.assignments), *map(_quoted, one.argv))
        )
        yield f"  {paint.dim(joined)}{paint.cyan(cut(plain(words), max(20, width - 6)))}"
        for redirect in one.redirects:
            if sign := _SIGNS.get(redirect.kind):
                yield f"      {sign} {cut(plain(redirect.target.text), max(20, width - 10))}"
        if one.opaque:
            yield f"      {paint.yellow(plain(one.opaque))}"
    if script.opaque:
        yield f"  {paint.yellow(plain(script.opaque))}"


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)


def _effects(call: ToolCall, facts: Facts, paint: Paint, width: int) -> Iterator[str]:
    yield paint.bold("what it does")
    for act in facts.acts or (Act((call.name,), facts.subject),):
        said = _DOES[act.does] + (f": {act.reason}" if act.reason else "")
        name = "/".join(act.names)
        room = max(20, width - len(name) - len(said) - 8)
        about = f"({cut(plain(act.subject), room)})" if act.subject else ""
        known = bool(facts.acts) or facts.policy.read_only or facts.policy.edits
        effect = plain(said) if known else "nothing is known of it"
        yield f"  {paint.cyan(plain(name))}{about}  {paint.dim(effect)}"


def _decided(dry_run: DryRun, decision: Decision, paint: Paint) -> Iterator[str]:
    colour = {"allow": paint.green, "ask": paint.yellow, "deny": paint.red}[decision.verdict]
    yield paint.bold("what is decided")
    yield f"  it {colour(_SAID[decision.verdict])}: {plain(decision.reason)}"
    if decision.rule:
        origins = [one.origin for one in dry_run.rules if str(one) == decision.rule]
        where = f"  {origins[0]}" if origins and origins[0] else ""
        yield f"  by {plain(decision.rule)}{paint.dim(plain(where))}"
    if decision.covers == "builds":
        yield paint.dim("  a yes for the session allows all tests and builds in this folder")


_IS = {"allow": "is allowed", "ask": "asks", "deny": "is denied"}
_WANTED = {"allow": "should be allowed", "ask": "should ask", "deny": "should be denied"}
_ALIKE = ("read", "write", "fetch", "web_fetch")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_JOINS = re.compile(r"&&|\|\||[;|<>`]|\$\(")


def check_files(files: Sequence[RuleFile], root: Path, mode: Mode) -> int:
    """Say what is found; the exit code."""
    paint = paint_for(sys.stdout)
    if not files:
        click.echo("There are no rules yet: the built-in care applies, and the rest asks.")
        return 0
    code = 0
    for file in files:
        dry_run = DryRun(root, file.rules, sandbox="none")
        wrong = list(failures(file, dry_run, mode, paint))
        mark = paint.red("✗") if wrong else paint.green("✓")
        rules, examples = quantity(len(file.rules), "rule"), quantity(len(file.examples), "example")
        click.echo(f"{mark} {paint.bold(plain(str(file.path)))}: {rules}, {examples}")
        for line in (*wrong, *remarks(file, dry_run, root)):
            click.echo(f"  {line}")
        code = 1 if wrong else code
    return code


def failures(file: RuleFile, dry_run: DryRun, mode: Mode, paint: Paint) -> Iterator[str]:
    """The examples that come out otherwise than they say."""
    for one in file.examples:
        decision = dry_run.judge(dry_run.call(one.tool, one.subject), mode).decision
        if decision.verdict != one.expects:
            rule = f" ({decision.rule})" if decision.rule else ""
            what = one.subject if one.tool == "shell" else f"{one.tool}({one.subject})"
            said = f"{_WANTED[one.expects]}, and {_IS[decision.verdict]}: {decision.reason}{rule}"
            yield f"{plain(one.origin)}: {paint.bold(plain(what))} {paint.red(plain(said))}"


def remarks(file: RuleFile, dry_run: DryRun, root: Path) -> Iterator[str]:
    """What is not wrong, and still deserves a look."""
    for rule in file.expired:
        yield plain(f"{rule.origin}: `{rule}` has expired; it says nothing any more")
    for rule in file.elsewhere:
        yield plain(f"{rule.origin}: `{rule}` is for {rule.where}; here it says nothing")
    for rule in file.rules:
        if said := idle(rule, dry_run.tools):
            yield plain(f"{rule.origin}: `{rule}` {said}")
    import os

    if file.path == root / POLICY and Trust(state_folder(os.environ)).read(root, POLICY) is None:
        yield "these rules do not count before the folder is trusted: bridle trust"


def idle(rule: Rule, tools: Iterable[str]) -> str:
    """Why a rule will hardly ever speak; empty where it may."""
    if not set(rule.tool) & set("*?") and rule.tool not in (*tools, *_ALIKE):
        known = "" if rule.tool.startswith("mcp") else "; is it one of your own tools?"
        return f"names a tool that bridle does not bring along{known}" if known else ""
    if rule.tool == "shell" and _JOINS.search(_QUOTED.sub("", rule.pattern)):
        if rule.verdict == "allow":
            return "never speaks: a rule is held against one command at a time, without its pipes"
        return "is hardly ever met: a rule is held against one command at a time; forbid each"
    if rule.tool in _ALIKE and rule.pattern.startswith("~"):
        return "never speaks: a path is held against it from the workspace's root"
    return ""
