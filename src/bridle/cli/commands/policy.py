"""`bridle policy`: check the rules, and explain what would be decided. Nothing is run."""

import sys
from pathlib import Path

import click

from bridle.cli.options import MODES, WORKSPACE
from bridle.cli.user_input import check_text


@click.group(name="policy")
def command() -> None:
    """Show what would be decided about a command, and check the rules that decide it."""


@command.command("check")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=WORKSPACE,
    help="Workspace. Default: the current folder.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="ask",
    show_default=True,
    help="Permission mode in which the examples are decided.",
)
def check(file: str | None, workspace: str | None, mode: str) -> int:
    """Check rule files and run their examples: your own file and the folder's, or FILE.

    Exit codes: 0 no problems, 1 an example is decided differently, 2 a file cannot be understood.
    """
    from bridle.cli.policy_report import check_rules

    return check_rules(Path(file) if file else None, Path(workspace or Path.cwd()), mode)


@command.command("explain")
@click.argument("text", metavar="[COMMAND]", required=False)
@click.option("--tool", metavar="NAME", help="Explain a call of this tool instead of a command.")
@click.option("--arguments", metavar="JSON", help="The arguments for --tool, as a JSON object.")
@click.option(
    "--mode", type=click.Choice(MODES), help="Permission mode. Default: the mode in the settings."
)
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=WORKSPACE,
    help="Workspace. Default: the current folder.",
)
@click.option(
    "--rules",
    "rule_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Add the rules in FILE.",
)
@click.option("--rule", "rules", metavar="RULE", multiple=True, help="Add a rule.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object; with -, one per line.")
def explain(
    text: str | None,
    tool: str | None,
    arguments: str | None,
    mode: str | None,
    workspace: str | None,
    rule_file: str | None,
    rules: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show what COMMAND would do, and what would be decided, by which rule and why.

    With --json and - as COMMAND, one JSON object per line is read from standard input,
    {"command": …} or {"tool": …, "arguments": …}, optionally with "mode", "rules" and "cwd", and
    one decision per line is written. Nothing is run.
    """
    from bridle.cli.policy_report import answer_lines, explain_call, make_dry_run, to_call

    root = Path(workspace or Path.cwd())
    dry_run, used_mode = make_dry_run(root, mode, Path(rule_file) if rule_file else None, rules)
    if as_json and text == "-":
        return answer_lines(dry_run, sys.stdin.buffer, sys.stdout.buffer, used_mode)
    if text is not None:
        check_text(text, "the command")
    return explain_call(dry_run, to_call(text, tool, arguments), used_mode, as_json=as_json)
