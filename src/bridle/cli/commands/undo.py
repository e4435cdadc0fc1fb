"""`bridle undo`: take back what a turn changed, see what that would do, or take the undo back.

Shows first and asks then. What is put back is decided in `workspace/undo`; this is its face.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.exit_codes import DONE, FAILED, complain
from bridle.cli.options import SESSION
from bridle.cli.style import Paint, paint_for, plain
from bridle.cli.told import confirm, tell, tell_json
from bridle.cli.user_input import user_name
from bridle.config.paths import state_folder
from bridle.errors import AgentError, ConfigError, SessionError
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.workspace.undo.plan import Outcome
    from bridle.workspace.undo.undo import Turn, Undo

_SIGNS = {"comes back": "+", "goes": "-", "changes back": "~"}
_DAY = 86_400.0


@click.command()
@click.argument("session_id", metavar="[SESSION]", type=SESSION, required=False)
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="That turn of the session.")
@click.option("--preview", is_flag=True, help="Show what would be put back, and change nothing.")
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--list", "listing", is_flag=True, help="The turns that changed something here.")
@click.option("--keep-going", is_flag=True, help="Leave what was changed since; put back the rest.")
@click.option("--force", is_flag=True, help="Put back what was changed since as well.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--prune", "pruning", is_flag=True, help="Throw away what was kept long ago.")
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    metavar="DAYS",
    help="For --prune: how long ago.",
)
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The folder. Default: the session's, or the current one.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def command(session_id: str | None, **flags: Any) -> int:
    """Put back what the last turn changed in this folder, or a turn of SESSION.

    Files are restored byte for byte: edits, deletes, renames, modes, links, and what commands did.
    Where you changed a file since, both are shown and nothing is changed. Said again, it takes back
    the turn before; --redo brings the last one back. What git ignores, .git itself and files over
    10 MB are not covered.

    Exit codes: 0 done, 1 not done, 2 usage or nothing to take back.
    """
    if flags["pruning"]:
        return _prune(flags)
    undo, session = _where(session_id, flags["workspace"])
    if flags["listing"]:
        return _list(undo, session, flags["as_json"])
    session, turn = _which(undo, session, flags)
    return _take_back(undo, session, turn, flags)


def _where(session_id: str | None, workspace: str | None) -> "tuple[Undo, str | None]":
    """Undo for the folder that is meant, and the whole id of the session, where one is named."""
    from bridle.workspace.undo.undo import Undo

    folder = workspace or str(Path.cwd())
    found = None
    if session_id is not None:
        from bridle.cli.find import find_session, session_folder

        found = find_session(session_folder(), session_id)
        folder = workspace or found.workspace
    if not folder or not Path(folder).is_dir():
        raise ConfigError(
            f"the session's folder {folder!r} is not there",
            hint="If it was moved, name it: --workspace DIR.",
        )
    return Undo(folder, state_folder(os.environ)), found.id if found is not None else None


def _which(undo: "Undo", session: str | None, flags: dict[str, Any]) -> tuple[str, int | None]:
    """The session and the turn that are meant."""
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


def _newest(undo: "Undo") -> "Turn | None":
    return next((one for one in reversed(undo.turns()) if not one.undone), None)


def _take_back(undo: "Undo", session: str, turn: int | None, flags: dict[str, Any]) -> int:
    verb = undo.redo if flags["redo"] else undo.undo
    way = {"force": flags["force"], "keep_going": flags["keep_going"]}
    seen = verb(session, turn, preview=True, **way)
    refused = bool(seen.conflicts) and not flags["keep_going"]
    if flags["preview"] or refused:
        _say(seen, flags["as_json"], logged=False)
        return _refused(seen) if refused else DONE
    if not flags["as_json"]:
        _show(seen)
    if not confirm(_question(seen), yes=flags["yes"]):
        tell("nothing was changed")
        return FAILED
    done = verb(session, seen.turn, **way)
    if done.conflicts and not done.done:  # changed while the question stood
        _say(done, flags["as_json"], logged=False)
        return _refused(done)
    trouble = _record(done)
    if flags["as_json"]:
        _say(done, True, logged=not trouble)
    else:
        _told(done)
    if trouble:
        complain(*trouble)
    return DONE


def _question(seen: "Outcome") -> str:
    count = quantity(len(seen.files), "file")
    return f"Put back {count}?" if seen.kind == "undo" else f"Redo the changes of {count}?"


def _refused(seen: "Outcome") -> int:
    files = ", ".join(one.path for one in seen.conflicts[:3])
    more = f" and {len(seen.conflicts) - 3} more" if len(seen.conflicts) > 3 else ""
    later = next((one for one in seen.conflicts if one.turn and one.session), None)
    hint = "--keep-going leaves them and puts back the rest, --force puts back all of it."
    if later is not None:
        hint = f"Undo that first: bridle undo {later.session} --turn {later.turn}. Or: {hint}"
    complain(f"nothing was changed: {files}{more} changed since", hint)
    return FAILED


def _record(done: "Outcome") -> tuple[str, str] | None:
    """Tell the session's log; where that cannot be, what to tell the person."""
    from bridle.cli.commands.sessions.edit import take
    from bridle.cli.find import find_session, session_folder
    from bridle.events import Event, TraceEvent, Undone

    paths = tuple(one.path for one in done.files)
    event: Event = Undone(done.turn, user_name(), paths, done.undo)
    if done.kind == "redo":
        event = TraceEvent("redo", {"turn": done.turn, "by": user_name(), "undo": done.undo})
    try:
        take(find_session(session_folder(), done.session), lambda session: session.record(event))
    except AgentError as error:
        said = f"the files are put back, but the session's log was not told: {error.message}"
        return said, "Nothing is lost: `bridle undo --list` knows it."
    return None


def _say(outcome: "Outcome", as_json: bool, *, logged: bool) -> None:
    if as_json:
        import msgspec

        tell_json(msgspec.to_builtins(outcome) | {"logged": logged})
    else:
        _show(outcome)


def _show(outcome: "Outcome") -> None:
    for line in shown(outcome, paint_for(sys.stdout)):
        click.echo(line)


def shown(outcome: "Outcome", paint: Paint) -> Iterator[str]:
    """What would be put back, what stands against it, and what is not covered, line by line."""
    what = "undo" if outcome.kind == "undo" else "redo"
    yield paint.bold(f"{what} turn {outcome.turn}") + paint.dim(f" of {plain(outcome.session)}")
    colours = {"+": paint.green, "-": paint.red, "~": paint.yellow}
    for one in outcome.files:
        sign = _SIGNS[one.how]
        yield f"  {colours[sign](sign)} {plain(one.path)}" + paint.dim(f"  {one.how}")
    if not outcome.files and not outcome.conflicts:
        yield "  everything stands as it would be put back"
    for clash in outcome.conflicts:
        yield f"  {paint.red('!')} {plain(clash.path)}: {plain(clash.why)}"
        for line in clash.diff.splitlines():
            yield "      " + _coloured(line, paint)
    for word in outcome.uncovered:
        yield paint.dim(f"  not covered: {plain(word)}")


def _coloured(line: str, paint: Paint) -> str:
    """A line of a difference; its text was made harmless where it was made."""
    if line.startswith("+"):
        return paint.green(line)
    return paint.red(line) if line.startswith("-") else paint.dim(line)


def _told(done: "Outcome") -> None:
    count = quantity(len(done.files), "file")
    back = f"put back {count}" if done.kind == "undo" else f"brought back the changes of {count}"
    again = "bridle undo --redo" if done.kind == "undo" else "bridle undo"
    tell(back, f"{again}   takes that back")
    for path in done.left:
        tell(f"  {path}/ stays: something else lies in it")


def _list(undo: "Undo", session: str | None, as_json: bool) -> int:
    found = undo.turns(session)
    if as_json:
        import msgspec

        tell_json([msgspec.to_builtins(one) for one in found])
        return DONE
    if not found:
        click.echo("No turn has changed anything here.")
    paint = paint_for(sys.stdout)
    for one in found:
        stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at))
        count = quantity(len(one.paths), "path")
        line = f"{paint.cyan(plain(one.session))}  turn {one.turn}  {stamp}  {count}"
        click.echo(line + (paint.dim("  undone") if one.undone else ""))
    return DONE


def _prune(flags: dict[str, Any]) -> int:
    """Throw away what is old, in all folders."""
    from bridle.workspace.undo.undo import prune

    state, before = state_folder(os.environ), time.time() - flags["older_than"] * _DAY
    count = prune(state, before, preview=True).calls
    days = quantity(flags["older_than"], "day")
    question = f"Forget {count} changes that are older than {days}, in all folders?"
    if not confirm(question, yes=flags["yes"]):
        tell("nothing was thrown away")
        return FAILED
    done = prune(state, before)
    if flags["as_json"]:
        tell_json({"calls": done.calls, "freed": done.freed, "busy": list(done.busy)})
        return DONE
    tell(f"forgot {done.calls} changes; {done.freed / 1e6:,.1f} MB are free")
    for root in done.busy:
        tell(f"  {root} was left: a session is at work there")
    return DONE
