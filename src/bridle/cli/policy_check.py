"""What `bridle policy check` finds in rule files: examples that come out otherwise, dead rules."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from bridle.cli.style import Paint, paint_for, plain
from bridle.config.paths import state_folder
from bridle.config.policy import RuleFile
from bridle.config.trust import POLICY, Trust
from bridle.policy import Mode, Rule
from bridle.runtime.dry_run import DryRun
from bridle.workspace.text import quantity

_SAID = {"allow": "is allowed", "ask": "asks", "deny": "is denied"}
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
            said = f"{_WANTED[one.expects]}, and {_SAID[decision.verdict]}: {decision.reason}{rule}"
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
