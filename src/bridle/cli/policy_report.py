"""What `bridle policy check` and `bridle policy explain` print: decisions of a dry run."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO, cast

import click
import msgspec
from msgspec import Struct

from bridle.cli.exit_codes import complain
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.command_analysis.parser import parse
from bridle.config.folder import load_rules
from bridle.config.loader import load_settings
from bridle.config.paths import policy_file, state_folder
from bridle.config.policy import RuleFile, read_rules
from bridle.config.trust import POLICY, Trust
from bridle.engine.gate import JudgedCall
from bridle.errors import AgentError, UsageError
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Facts, Mode, Rule, parse_rule
from bridle.runtime.dry_run import DryRun
from bridle.workspace.text import quantity

_MAX_LINE = 32_000_000  # bytes
_VERDICTS = {"allow": "allowed", "ask": "needs approval", "deny": "denied"}
_EXPECTED = {
    "allow": "should be allowed",
    "ask": "should need approval",
    "deny": "should be denied",
}
_EFFECTS = {
    "reads": "only reads",
    "edits": "changes files in the workspace",
    "builds": "builds or tests",
    "changes": "may change things",
}
_REDIRECTS = {"read": "<", "write": ">", "append": ">>", "text": "<<"}
_KINDS_OF_TOOLS = ("read", "write", "fetch", "web_fetch")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPERATORS = re.compile(r"&&|\|\||[;|<>`]|\$\(")


def check_rules(file: Path | None, root: Path, mode: str) -> int:
    """Check a rule file, or the user's and the folder's, and return the exit code."""
    if file is not None:
        return check_files([read_rules(file, required=True, root=root)], root, cast(Mode, mode))
    paths = (policy_file(os.environ), root / POLICY)  # the folder's is checked before it is trusted
    files = [read_rules(path, root=root) for path in paths if os.path.lexists(path)]
    return check_files(files, root, cast(Mode, mode))


def check_files(files: Sequence[RuleFile], root: Path, mode: Mode) -> int:
    """Print what is wrong with these files, and return the exit code."""
    paint = paint_for(sys.stdout)
    if not files:
        click.echo("There are no rules yet: only the built-in rules apply.")
        return 0
    code = 0
    for file in files:
        dry_run = DryRun(root, file.rules, sandbox="none")
        problems = list(failures(file, dry_run, mode, paint))
        mark = paint.red("✗") if problems else paint.green("✓")
        rules, examples = quantity(len(file.rules), "rule"), quantity(len(file.examples), "example")
        click.echo(f"{mark} {paint.bold(plain(str(file.path)))}: {rules}, {examples}")
        for line in (*problems, *remarks(file, dry_run, root)):
            click.echo(f"  {line}")
        code = 1 if problems else code
    return code


def failures(file: RuleFile, dry_run: DryRun, mode: Mode, paint: Paint) -> Iterator[str]:
    """Yield the examples that are decided differently than they say."""
    for example in file.examples:
        decision = dry_run.judge(dry_run.call(example.tool, example.subject), mode).decision
        if decision.verdict == example.expects:
            continue
        is_command = example.tool == "shell"
        call = example.subject if is_command else f"{example.tool}({example.subject})"
        rule = f" ({decision.rule})" if decision.rule else ""
        verdict = _VERDICTS[decision.verdict]
        verdict = verdict if decision.verdict == "ask" else f"is {verdict}"
        text = f"{_EXPECTED[example.expects]}, but {verdict}: {decision.reason}{rule}"
        yield f"{plain(example.origin)}: {paint.bold(plain(call))} {paint.red(plain(text))}"


def remarks(file: RuleFile, dry_run: DryRun, root: Path) -> Iterator[str]:
    """Yield what is not wrong, but deserves a look."""
    for rule in file.expired:
        yield plain(f"{rule.origin}: `{rule}` has expired and no longer applies")
    for rule in file.elsewhere:
        yield plain(f"{rule.origin}: `{rule}` applies only in {rule.where}, not here")
    for rule in file.rules:
        if why := why_unused(rule, dry_run.tools):
            yield plain(f"{rule.origin}: `{rule}` {why}")
    if file.path == root / POLICY and Trust(state_folder(os.environ)).read(root, POLICY) is None:
        yield "these rules do not apply until you trust the folder: bridle trust"


def why_unused(rule: Rule, tools: Iterable[str]) -> str:
    """Return why a rule will hardly ever match; empty if it may."""
    if not set(rule.tool) & set("*?") and rule.tool not in (*tools, *_KINDS_OF_TOOLS):
        if rule.tool.startswith("mcp"):
            return ""
        return "names a tool that is not one of bridle's; is it one of your own?"
    if rule.tool == "shell" and _OPERATORS.search(_QUOTED.sub("", rule.pattern)):
        if rule.verdict == "allow":
            return "never matches: rules are compared with one command at a time, without its pipes"
        return (
            "hardly ever matches: rules are compared with one command at a time; "
            "write one rule for each"
        )
    if rule.tool in _KINDS_OF_TOOLS and rule.pattern.startswith("~"):
        return "never matches: paths are relative to the workspace"
    return ""


def make_dry_run(
    root: Path, mode: str | None, rule_file: Path | None, rules: Sequence[str]
) -> tuple[DryRun, Mode]:
    """Return a dry run with the rules of the user, of the folder and of these flags, and a mode."""
    settings = load_settings({"mode": mode}).settings
    config = load_rules(root)
    for note in config.notes:
        complain(*note)
    more = read_rules(rule_file, required=True, root=root).rules if rule_file else ()
    every = config.items + more + tuple(parse_rule(text, "--rule") for text in rules)
    dry_run = DryRun(root, every, sandbox=settings.sandbox, hosts=settings.hosts, offered_only=True)
    return dry_run, settings.mode


def to_call(text: str | None, tool: str | None, arguments: str | None) -> ToolCall:
    """Return the call that a command line names. Raise `UsageError`."""
    if (text is None) == (tool is None):
        raise UsageError(
            "name either a command or a tool", hint="For example: bridle policy explain 'git push'"
        )
    if text is not None:
        return ToolCall("", "shell", {"command": text})
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise UsageError(
            "--arguments must be a JSON object",
            hint="""For example: --arguments '{"path": "README.md"}'""",
        )
    return ToolCall("", tool or "", values)


class _Question(Struct):
    """A line of standard input."""

    command: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    mode: Mode | None = None
    rules: tuple[str, ...] = ()
    cwd: str = ""


_decode = msgspec.json.Decoder(_Question).decode
_encode = msgspec.json.Encoder().encode


def answer_lines(dry_run: DryRun, lines: BinaryIO, out: BinaryIO, mode: Mode) -> int:
    """Write a decision for each line as it comes. A line that cannot be read is denied."""
    while line := lines.readline(_MAX_LINE):
        if len(line) == _MAX_LINE and not line.endswith(b"\n"):
            while (rest := lines.readline(_MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            out.write(_denial(f"the line is longer than {_MAX_LINE:,} bytes"))
        else:
            out.write(_answer(dry_run, line, mode))
        out.flush()
    return 0


def _answer(dry_run: DryRun, line: bytes, mode: Mode) -> bytes:
    try:
        question = _decode(line)
        rules = _parse_rules(question.rules)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _denial(f"the line cannot be read: {error}")
    except AgentError as error:
        return _denial(error.message)
    if question.command is None and question.tool is None:
        return _denial('a line needs {"command": …} or {"tool": …, "arguments": …}')
    if "\0" in question.cwd:
        return _denial("`cwd` is not a folder")
    call = ToolCall("", question.tool or "shell", question.arguments or {})
    if question.command is not None:
        call = ToolCall("", call.name, {**call.arguments, "command": question.command})
    judged = dry_run.judge(call, question.mode or mode, rules, question.cwd)
    return _decision_line(judged.decision)


@lru_cache(maxsize=256)
def _parse_rules(texts: tuple[str, ...]) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, "rules") for text in texts)


def _decision_line(decision: Decision) -> bytes:
    return _json_line(
        {"decision": decision.verdict, "reason": decision.reason, "rule": decision.rule}
    )


def _denial(problem: str) -> bytes:
    return _json_line({"decision": "deny", "reason": problem, "rule": "", "error": problem})


def _json_line(value: dict[str, str]) -> bytes:
    try:
        return _encode(value) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        valid = {key: text.encode("utf-8", "replace").decode() for key, text in value.items()}
        return _encode(valid) + b"\n"


def explain_call(dry_run: DryRun, call: ToolCall, mode: Mode, *, as_json: bool) -> int:
    """Print what a call would do and what is decided about it."""
    judged = dry_run.judge(call, mode)
    if as_json:
        sys.stdout.buffer.write(_decision_line(judged.decision))
        return 0
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in explanation(dry_run, call, judged, paint, width):
        click.echo(line)
    count = quantity(len(dry_run.rules), "rule")
    line = f"mode {mode} · sandbox {dry_run.sandbox.level} · {count} · {dry_run.machine.root}"
    click.echo(paint.dim(line))
    return 0


def explanation(
    dry_run: DryRun, call: ToolCall, judged: JudgedCall, paint: Paint, width: int
) -> Iterator[str]:
    """Yield the parsed command, the effects and the decision, as lines."""
    command = call.arguments.get("command")
    if call.name == "shell" and isinstance(command, str):
        yield from _parsed_lines(command, paint, width)
    yield from _effect_lines(call, judged.facts, paint, width)
    yield from _decision_lines(dry_run, judged.decision, paint)


def _parsed_lines(command: str, paint: Paint, width: int) -> Iterator[str]:
    script = parse(command)
    yield paint.bold("Command")
    if script.over_limit:
        yield f"  {paint.red(plain(script.over_limit))}"
    for part in script.commands:
        operator = f"{part.follows} " if part.follows else ""
        assignments = (f"{name}={value}" for name, value in part.assignments)
        words = " ".join((*assignments, *map(quote, part.argv)))
        yield f"  {paint.dim(operator)}{paint.cyan(cut(plain(words), max(20, width - 6)))}"
        for redirect in part.redirects:
            if sign := _REDIRECTS.get(redirect.kind):
                yield f"      {sign} {cut(plain(redirect.target.text), max(20, width - 10))}"
        if part.opaque:
            yield f"      {paint.yellow(plain(part.opaque))}"
    if script.opaque:
        yield f"  {paint.yellow(plain(script.opaque))}"


def _effect_lines(call: ToolCall, facts: Facts, paint: Paint, width: int) -> Iterator[str]:
    yield paint.bold("Effects")
    is_known = bool(facts.acts) or facts.policy.read_only or facts.policy.edits
    for act in facts.acts or (Act((call.name,), facts.subject),):
        effect = _EFFECTS[act.does] + (f": {act.reason}" if act.reason else "")
        name = "/".join(act.names)
        room = max(20, width - len(name) - len(effect) - 8)
        subject = f"({cut(plain(act.subject), room)})" if act.subject else ""
        effect = plain(effect) if is_known else "its effects are not known"
        yield f"  {paint.cyan(plain(name))}{subject}  {paint.dim(effect)}"


def _decision_lines(dry_run: DryRun, decision: Decision, paint: Paint) -> Iterator[str]:
    colour = {"allow": paint.green, "ask": paint.yellow, "deny": paint.red}[decision.verdict]
    yield paint.bold("Decision")
    yield f"  {colour(_VERDICTS[decision.verdict])}: {plain(decision.reason)}"
    if decision.rule:
        origins = [rule.origin for rule in dry_run.rules if str(rule) == decision.rule]
        origin = f"  {origins[0]}" if origins and origins[0] else ""
        yield f"  by {plain(decision.rule)}{paint.dim(plain(origin))}"
    if decision.covers == "builds":
        yield paint.dim("  allowed for the session, it allows all tests and builds in this folder")
