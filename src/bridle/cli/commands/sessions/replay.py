"""`bridle sessions replay`: run a session again in a scratch copy, and compare the results.

With `--policy`, decide its calls again by other rules. The work is done in `runtime/replay.py` and
`runtime/dry_run.py`, imported by `cli/replay_report.py`.
"""

from pathlib import Path

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION


@click.command("replay")
@click.argument("session_ids", metavar="ID", type=SESSION, nargs=-1)
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The folder to copy. Default: the session's workspace as it is now.",
)
@click.option("--keep", is_flag=True, help="Keep the scratch copy, and print where it is.")
@click.option(
    "--unasked",
    is_flag=True,
    help="Also run calls that ran without approval then and would need it now.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation before commands run.")
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Run nothing: decide every past call again by the rules in FILE, and show the changes.",
)
@click.option("--all", "every", is_flag=True, help="With --policy: the calls of all sessions.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of turns, or of calls.")
def command(
    session_ids: tuple[str, ...],
    workspace: str | None,
    keep: bool,
    unasked: bool,
    yes: bool,
    policy: str | None,
    every: bool,
    as_json: bool,
) -> int:
    """Run a session again with its recorded replies and today's tools, in a scratch copy.

    No model is used, and nothing is charged. Approvals get the answers that were recorded; a call
    that needed no approval then, but would need it now, is denied. Commands really run, in the
    copy: they can still affect other parts of this machine. The session itself is not changed.

    With --policy nothing runs: for one or more sessions, the decisions in the log are compared with
    those that the rules in FILE would make.

    Exit codes: 0 all results are the same (with --policy: always), 1 some differ, 2 usage.
    """
    from bridle.cli.replay_report import decide_again, replay_session

    folder = session_folder()
    if policy is not None:
        if bool(session_ids) == every:
            raise click.UsageError("name a session, or use --all")
        sessions = [find_session(folder, name) for name in session_ids]
        sessions = list(folder.sessions()) if every else sessions
        return decide_again(folder, sessions, Path(policy), workspace=workspace, as_json=as_json)
    if len(session_ids) != 1 or every:
        raise click.UsageError("name exactly one session: its commands really run")
    session = find_session(folder, session_ids[0])
    return replay_session(
        folder, session, workspace=workspace, keep=keep, unasked=unasked, yes=yes, as_json=as_json
    )
