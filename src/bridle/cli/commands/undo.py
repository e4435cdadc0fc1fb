"""`bridle undo`: restore what a turn changed, preview that, or redo it.

`workspace/undo` decides what is restored; here it is shown first, and then confirmed.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from bridle.cli.exit_codes import DONE, FAILED, complain
from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION, WORKSPACE
from bridle.cli.output import confirm, print_json, print_result
from bridle.cli.style import Paint, paint_for, plain
from bridle.cli.user_input import user_name
from bridle.config.paths import state_folder
from bridle.errors import AgentError, SessionError, UsageError
from bridle.events import Event, TraceEvent, Undone
from bridle.workspace.text import quantity
from bridle.workspace.undo.plan import Outcome
from bridle.workspace.undo.undo import Turn, Undo, prune

_SIGNS = {"comes back": "+", "goes": "-", "changes back": "~"}
_EFFECTS = {"comes back": "is restored", "goes": "is deleted", "changes back": "is changed back"}
_DAY = 86_400.0


@click.command()
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Undo turn N of the session.")
@click.option("--preview", is_flag=True, help="Show what would be restored, and change nothing.")
@click.option("--redo", is_flag=True, help="Redo what was undone last.")
@click.option("--list", "listing", is_flag=True, help="List the turns that changed this folder.")
@click.option(
    "--keep-going", is_flag=True, help="Restore what did not change since, and leave the rest."
)
@click.option("--force", is_flag=True, help="Restore files even if they changed since.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--prune", "pruning", is_flag=True, help="Delete old snapshots, of all folders.")
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    metavar="DAYS",
    help="With --prune: the age of the snapshots.",
)
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=WORKSPACE,
    help="The folder. Default: the session's workspace, or the current folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(session_id: str | None, **flags: Any) -> int:
    """Undo what the last turn changed in this folder, or a turn of the session ID.

    Files are restored byte for byte: edits, deletions, renames, modes and links, including what
    commands did. If you changed a file since, the difference is shown and nothing is changed.
    Repeat the command to undo the turn before; --redo brings back what was undone last. Files that
    git ignores, .git itself and files over 10 MB are not covered.

    Exit codes: 0 done, 1 not done, 2 usage or nothing to undo.
    """
    if flags["pruning"]:
        return _prune(flags)
    undo, session = _open(session_id, flags["workspace"])
    if flags["listing"]:
        return _list(undo, session, flags["as_json"])
    session, turn = _choose_turn(undo, session, flags)
    return _restore(undo, session, turn, flags)


def _open(session_id: str | None, workspace: str | None) -> tuple[Undo, str | None]:
    """Return the undo of the folder, and the full id of the session if one is named."""
    folder = workspace or str(Path.cwd())
    session = None
    if session_id is not None:
        session = find_session(session_folder(), session_id)
        folder = workspace or session.workspace
    if not folder or not Path(folder).is_dir():
        raise UsageError(
            f"the session's workspace {folder!r} does not exist",
            hint="If it was moved, name it: --workspace DIR.",
        )
    return Undo(folder, state_folder(os.environ)), session.id if session is not None else None


def _choose_turn(undo: Undo, session: str | None, flags: dict[str, Any]) -> tuple[str, int | None]:
    if session is not None:
        return session, flags["turn"]
    kind = "redo" if flags["redo"] else "undo"
    last = undo.last_undone() if flags["redo"] else _newest(undo)
    if last is None:
        raise SessionError(
            f"there is nothing to {kind} in {undo.root}",
            hint="`bridle undo --list` shows the turns that changed something here.",
        )
    return last.session, flags["turn"] if flags["turn"] is not None else last.turn


def _newest(undo: Undo) -> Turn | None:
    return next((turn for turn in reversed(undo.turns()) if not turn.undone), None)


def _restore(undo: Undo, session: str, turn: int | None, flags: dict[str, Any]) -> int:
    verb = undo.redo if flags["redo"] else undo.undo
    how = {"force": flags["force"], "keep_going": flags["keep_going"]}
    preview = verb(session, turn, preview=True, **how)
    is_refused = bool(preview.conflicts) and not flags["keep_going"]
    if flags["preview"] or is_refused:
        _print(preview, as_json=flags["as_json"], logged=False)
        return _refuse(preview) if is_refused else DONE
    if not flags["as_json"]:
        _print(preview, as_json=False, logged=False)
    count = quantity(len(preview.files), "file")
    question = f"Restore {count}?" if preview.kind == "undo" else f"Redo the changes to {count}?"
    if not confirm(question, yes=flags["yes"]):
        print_result("nothing was changed")
        return FAILED
    done = verb(session, preview.turn, **how)
    if done.conflicts and not done.done:  # changed while the person was asked
        _print(done, as_json=flags["as_json"], logged=False)
        return _refuse(done)
    problem = _record(done)
    if flags["as_json"]:
        _print(done, as_json=True, logged=problem is None)
    else:
        _print_done(done)
    if problem:
        complain(*problem)
    return DONE


def _refuse(outcome: Outcome) -> int:
    files = ", ".join(conflict.path for conflict in outcome.conflicts[:3])
    if len(outcome.conflicts) > 3:
        files += f" and {len(outcome.conflicts) - 3} more"
    later = next((one for one in outcome.conflicts if one.turn and one.session), None)
    hint = "--keep-going leaves these files and restores the rest, --force restores all of them."
    if later is not None:
        hint = f"Undo that first: bridle undo {later.session} --turn {later.turn}. Or: {hint}"
    complain(f"nothing was changed, because {files} changed since", hint)
    return FAILED


def _record(done: Outcome) -> tuple[str, str] | None:
    """Record the undo in the session's log; return what to tell the person if that fails."""
    from bridle.cli.session_edit import edit_session

    paths = tuple(file.path for file in done.files)
    event: Event = Undone(done.turn, user_name(), paths, done.undo)
    if done.kind == "redo":
        event = TraceEvent("redo", {"turn": done.turn, "by": user_name(), "undo": done.undo})
    try:
        summary = find_session(session_folder(), done.session)
        edit_session(summary, lambda session: session.record(event))
    except AgentError as error:
        return (
            f"the files are restored, but this is not in the session's log: {error.message}",
            "Nothing is lost: `bridle undo --list` shows it.",
        )
    return None


def _print(outcome: Outcome, *, as_json: bool, logged: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(outcome) | {"logged": logged})
        return
    for line in outcome_lines(outcome, paint_for(sys.stdout)):
        click.echo(line)


def outcome_lines(outcome: Outcome, paint: Paint) -> Iterator[str]:
    """Yield what would be restored, what conflicts, and what is not covered, line by line."""
    kind = "undo" if outcome.kind == "undo" else "redo"
    yield paint.bold(f"{kind} turn {outcome.turn}") + paint.dim(f" of {plain(outcome.session)}")
    colours = {"+": paint.green, "-": paint.red, "~": paint.yellow}
    for file in outcome.files:
        sign = _SIGNS[file.how]
        yield f"  {colours[sign](sign)} {plain(file.path)}" + paint.dim(f"  {_EFFECTS[file.how]}")
    if not outcome.files and not outcome.conflicts:
        yield "  all files are already in that state"
    for conflict in outcome.conflicts:
        yield f"  {paint.red('!')} {plain(conflict.path)}: {plain(conflict.why)}"
        for line in conflict.diff.splitlines():
            yield "      " + _diff_line(line, paint)
    for text in outcome.uncovered:
        yield paint.dim(f"  not covered: {plain(text)}")


def _diff_line(line: str, paint: Paint) -> str:
    """Colour a line of a diff, whose text is already harmless."""
    if line.startswith("+"):
        return paint.green(line)
    return paint.red(line) if line.startswith("-") else paint.dim(line)


def _print_done(done: Outcome) -> None:
    count = quantity(len(done.files), "file")
    if done.kind == "undo":
        print_result(f"restored {count}", "bridle undo --redo   reverts this")
    else:
        print_result(f"redid the changes to {count}", "bridle undo   reverts this")
    for path in done.left:
        print_result(f"  {path}/ was not deleted, because it contains other files")


def _list(undo: Undo, session: str | None, as_json: bool) -> int:
    turns = undo.turns(session)
    if as_json:
        print_json([msgspec.to_builtins(turn) for turn in turns])
        return DONE
    if not turns:
        click.echo("No turn has changed anything here.")
    paint = paint_for(sys.stdout)
    for turn in turns:
        stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(turn.at))
        count = quantity(len(turn.paths), "path")
        line = f"{paint.cyan(plain(turn.session))}  turn {turn.turn}  {stamp}  {count}"
        click.echo(line + (paint.dim("  undone") if turn.undone else ""))
    return DONE


def _prune(flags: dict[str, Any]) -> int:
    """Delete old snapshots, of all folders."""
    state, before = state_folder(os.environ), time.time() - flags["older_than"] * _DAY
    count = quantity(prune(state, before, preview=True).calls, "snapshot")
    days = quantity(flags["older_than"], "day")
    question = f"Delete {count} older than {days}, of all folders?"
    if not confirm(question, yes=flags["yes"]):
        print_result("nothing was deleted")
        return FAILED
    done = prune(state, before)
    if flags["as_json"]:
        print_json({"calls": done.calls, "freed": done.freed, "busy": list(done.busy)})
        return DONE
    print_result(f"deleted {quantity(done.calls, 'snapshot')}, {done.freed / 1e6:,.1f} MB")
    for root in done.busy:
        print_result(f"  {root} was skipped, because a session is running there")
    return DONE
