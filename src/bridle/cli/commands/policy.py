"""`bridle policy`: are the rules sound, and what would be decided of a command. Runs nothing."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import MODES

if TYPE_CHECKING:
    from bridle.config.policy import RuleFile
    from bridle.policy import Mode, Rule

_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True)


@click.group(name="policy")
def command() -> None:
    """See what would be decided, and check the rules that decide it."""


@command.command("check")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--workspace", "-w", metavar="DIR", type=_FOLDER, help="Default: the current one.")
@click.option("--mode", type=click.Choice(MODES), default="ask", show_default=True)
def check(file: str | None, workspace: str | None, mode: "Mode") -> int:
    """Check rule files and run their examples: your own and the folder's, or FILE.

    Exit codes: 0 all is well, 1 an example comes out differently, 2 a file cannot be understood.
    """
    from bridle.cli.policy_report import check_files
    from bridle.config.policy import read_rules

    root = Path(workspace or Path.cwd())
    named = [read_rules(Path(file), required=True, root=root)] if file else _both(root)
    return check_files(named, root, mode)


def _both(root: Path) -> "list[RuleFile]":
    """The person's own file, and that of the folder, trusted or not."""
    from bridle.config.paths import policy_file
    from bridle.config.policy import read_rules
    from bridle.config.trust import POLICY

    paths = (policy_file(os.environ), root / POLICY)
    return [read_rules(path, root=root) for path in paths if os.path.lexists(path)]


@command.command("explain")
@click.argument("text", metavar="[COMMAND]", required=False)
@click.option("--tool", metavar="NAME", help="A call of this tool instead of a command.")
@click.option("--arguments", metavar="JSON", help="Its arguments, a JSON object.")
@click.option("--mode", type=click.Choice(MODES), help="Default: that of the settings.")
@click.option("--workspace", "-w", metavar="DIR", type=_FOLDER, help="Default: the current one.")
@click.option(
    "--rules", metavar="FILE", type=click.Path(dir_okay=False), help="Rules of this file as well."
)
@click.option("--rule", "rule", metavar="RULE", multiple=True, help="This rule as well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with -, one a line.")
def explain(text: str | None, as_json: bool, **flags: Any) -> int:
    """Show what COMMAND would do, what would be decided, by which rule and why.

    With --json and - as the command, reads one JSON object per line from standard input,
    {"command": …} or {"tool": …, "arguments": …}, with "mode", "rules" and "cwd" if wanted, and
    writes one decision per line. Nothing is run.
    """
    from bridle.cli.policy_report import answer_lines, explain_call, json_call
    from bridle.cli.user_input import check_text
    from bridle.config.loader import load_settings
    from bridle.runtime.dry_run import DryRun

    settings = load_settings({"mode": flags["mode"]}).settings
    root = Path(flags["workspace"] or Path.cwd())
    rules = _rules(root, flags)
    dry_run = DryRun(root, rules, sandbox=settings.sandbox, hosts=settings.hosts, offered_only=True)
    if as_json and text == "-":
        return answer_lines(dry_run, sys.stdin.buffer, sys.stdout.buffer, settings.mode)
    if text is not None:
        check_text(text, "the command")
    call = _call(text, flags)
    if as_json:
        sys.stdout.buffer.write(json_call(dry_run, call, settings.mode))
        return 0
    return explain_call(dry_run, call, settings.mode)


def _rules(root: Path, flags: dict[str, Any]) -> "tuple[Rule, ...]":
    from bridle.cli.exit_codes import complain
    from bridle.config.folder import load_rules
    from bridle.config.policy import read_rules
    from bridle.policy import parse_rule

    config = load_rules(root)
    for note in config.notes:
        complain(*note)
    given = Path(flags["rules"]) if flags["rules"] else None
    more = read_rules(given, required=True, root=root).rules if given else ()
    return config.items + more + tuple(parse_rule(one, "--rule") for one in flags["rule"])


def _call(text: str | None, flags: dict[str, Any]) -> Any:
    import json

    from bridle.messages import ToolCall

    if (text is None) == (flags["tool"] is None):
        raise click.UsageError(
            "name a command, or a tool\nFor example: bridle policy explain 'git push'"
        )
    if text is not None:
        return ToolCall("", "shell", {"command": text})
    try:
        arguments = json.loads(flags["arguments"] or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise click.UsageError(
            """--arguments has to be a JSON object\nFor example: '{"path": "README.md"}'"""
        )
    return ToolCall("", flags["tool"], arguments)
