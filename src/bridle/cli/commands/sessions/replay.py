"""`bridle sessions replay`: run a session again in a scratch copy, and compare the results.

With `--policy`, decide its calls again by other rules. The work is done in `runtime/replay.py` and
`runtime/dry_run.py`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from pathlib import Path

    from bridle.protocols.store import SessionSummary
    from bridle.runtime.dry_run import PastDecision
    from bridle.runtime.replay import CallComparison, RecordedSession, ReplayedTurn
    from bridle.stores.reader import SessionFolder


_MOST = 12  # lines of a difference that are shown
_LARGEST = 20_000  # characters of a result that are compared line by line
_SAID = {
    "same": "the same",
    "differs": "different",
    "missing": "missing",
    "denied": "denied",
    "skipped": "not run again",
}


@click.command("replay")
@click.argument("session_ids", metavar="ID", type=SESSION, nargs=-1)
@click.option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Copy this folder. Default: the session's own, as it is now.",
)
@click.option("--keep", is_flag=True, help="Keep the scratch copy, and say where it is.")
@click.option("--unasked", is_flag=True, help="Run again what ran unasked then, as with --yes.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before commands run.")
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Run nothing: decide every past call again by these rules, and show what would change.",
)
@click.option("--all", "every", is_flag=True, help="With --policy: the calls of all sessions.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of turns, or of calls.")
def command(session_ids: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Run a session again with its recorded replies, against today's tools, in a scratch copy.

    No model is asked and nothing is paid. Questions get the answers that were recorded; a call that
    nobody was asked about then, and that would ask now, is denied. Commands run for real, in the
    copy: what they do elsewhere on this machine, they do. The session itself is not changed.

    With --policy nothing is run at all, for one session or more: what was decided of each call then
    is read from the log, and what those rules would say now stands beside it.

    Exit codes: 0 all results are the same (with --policy: always), 1 some are not, 2 usage.
    """
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    if flags["policy"] is not None:
        return _redecide(folder, session_ids, as_json=as_json, **flags)
    if len(session_ids) != 1 or flags["every"]:
        raise click.UsageError("name one session: commands run for real, one session at a time")
    from bridle.runtime.replay import RecordedSession

    found = find_session(folder, session_ids[0])
    past = RecordedSession(folder.read(found.id))
    if not past.turns:
        raise click.UsageError(f"there is no turn to replay in session {found.id}")
    source = _source(found, past, flags["workspace"])
    _ask_first(past, flags)
    return _run(past, source, as_json=as_json, **flags)


def _redecide(folder: "SessionFolder", ids: tuple[str, ...], **flags: Any) -> int:
    from bridle.cli.find import find_session

    if bool(ids) == flags["every"]:
        raise click.UsageError("name a session, or all of them with --all")
    sessions = folder.sessions() if flags["every"] else [find_session(folder, one) for one in ids]
    return redecide(folder, sessions, **flags)


def _source(found: "SessionSummary", past: "RecordedSession", named: str | None) -> "Path":
    from pathlib import Path

    source = Path(named or past.workspace or found.workspace or "/nonexistent")
    if not source.is_dir():
        raise click.UsageError(
            f"the session's folder is not there any more: {source}\nName one with --workspace."
        )
    return source.resolve()


def _ask_first(past: "RecordedSession", flags: dict[str, Any]) -> None:
    """Commands run for real: that is said before, and a person says yes."""
    from bridle.cli.told import confirm, tell

    calls = [call for turn in past.turns for step in turn.steps for call in step.calls]
    commands = sum(call.name == "shell" for call in calls)
    if not commands:
        return
    said = f"{quantity(commands, 'recorded command')} may run for real in a scratch copy"
    if not confirm(f"{said}, with whatever they do outside of it. Go on?", yes=flags["yes"]):
        tell("nothing was run")
        raise click.Abort


def _run(
    past: "RecordedSession", source: "Path", *, as_json: bool, keep: bool, unasked: bool, **_: Any
) -> int:
    import shutil
    import tempfile
    from pathlib import Path

    scratch = Path(tempfile.mkdtemp(prefix="bridle-replay-")).resolve()
    try:
        return _replay(past, source, scratch, unasked=unasked, as_json=as_json)
    finally:
        if keep:
            click.echo(f"the scratch copy is kept: {scratch / 'workspace'}", err=True)
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def _replay(
    past: "RecordedSession", source: "Path", scratch: "Path", *, unasked: bool, as_json: bool
) -> int:
    from bridle.cli.progress import progress, size_of
    from bridle.cli.signals import run_async
    from bridle.runtime.replay import copy_folder

    target = scratch / "workspace"
    target.mkdir(mode=0o700)
    with progress(f"copying {source}") as shown:
        copied = copy_folder(source, target, shown)
    left = f"; {copied.left_out:,} left out (links that lead out, …)" if copied.left_out else ""
    said = f"{quantity(copied.files, 'file')} ({size_of(copied.size)}) copied from {source}{left}"
    click.echo(paint_for(sys.stderr).dim(plain(said)), err=True)
    turns: list[ReplayedTurn] = []
    code = run_async(_play(past, target, turns, unasked=unasked, quiet=as_json))
    if as_json:
        import msgspec

        from bridle.cli.told import tell_json

        tell_json(msgspec.to_builtins(turns, enc_hook=str))
    elif code in (0, 1):
        click.echo(summary(turns, paint_for(sys.stdout)))
    return code


async def _play(
    past: "RecordedSession",
    target: "Path",
    turns: "list[ReplayedTurn]",
    *,
    unasked: bool,
    quiet: bool,
) -> int:
    from contextlib import aclosing

    from bridle.runtime.replay import replay

    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    async with aclosing(replay(past, target, unasked=unasked)) as replayed:
        async for turn in replayed:
            turns.append(turn)
            for line in () if quiet else turn_lines(turn, paint, width):
                click.echo(line)
    fine = ("same", "skipped")
    return int(any(call.verdict not in fine for turn in turns for call in turn.calls))


def turn_lines(turn: "ReplayedTurn", paint: Paint, width: int) -> Iterator[str]:
    """One turn: its prompt, and each call with what became of it."""
    first = cut(plain(turn.prompt), max(20, width - 12))
    yield f"{paint.cyan('❯')} {paint.bold(first)}  {paint.dim(f'turn {turn.turn}')}"
    for call in turn.calls:
        yield from _call_lines(call, paint, width)
    yield ""


def _call_lines(call: "CallComparison", paint: Paint, width: int) -> Iterator[str]:
    from bridle.cli.event_lines import subject_of
    from bridle.messages import ToolCall

    mark, colour = {
        "same": ("✓", paint.green),
        "differs": ("≠", paint.red),
        "missing": ("✗", paint.red),
        "denied": ("✗", paint.yellow),
        "skipped": ("–", paint.dim),
    }[call.verdict]
    subject = subject_of(ToolCall("", call.name, call.arguments))
    said = "" if call.verdict == "same" else _SAID[call.verdict]
    room = max(10, width - len(call.name) - len(said) - 8)
    line = f"  {colour(mark)} {paint.bold(plain(call.name))} {paint.dim(cut(subject, room))}"
    yield f"{line}  {colour(said)}" if said else line
    if call.verdict == "denied":
        yield f"    {paint.dim('nobody was asked then, and it would ask now; --unasked runs it')}"
    elif call.verdict in ("differs", "missing"):
        yield from difference(call.then, call.now, paint, width)


def difference(then: str, now: str, paint: Paint, width: int) -> Iterator[str]:
    """The lines that went and the lines that came, as far as there is room."""
    from difflib import unified_diff

    from bridle.workspace.text import neutral

    old, new = then[:_LARGEST].splitlines(), now[:_LARGEST].splitlines()
    lines = [
        line for line in list(unified_diff(old, new, lineterm="", n=0))[2:] if line[:2] != "@@"
    ]
    for line in lines[:_MOST]:
        colour = paint.red if line.startswith("-") else paint.green
        yield f"    {colour(cut(neutral(line.expandtabs(4), keep=''), max(20, width - 4)))}"
    if len(lines) > _MOST:
        more = quantity(len(lines) - _MOST, "more line")
        yield f"    {paint.dim(f'and {more}')}"
    if not lines:
        yield f"    {paint.dim('the words are the same; one was a failure, or had other pictures')}"


def summary(turns: "list[ReplayedTurn]", paint: Paint) -> str:
    """How many calls came out how."""
    counts: dict[str, int] = {}
    for call in (call for turn in turns for call in turn.calls):
        counts[call.verdict] = counts.get(call.verdict, 0) + 1
    total = sum(counts.values())
    parts = [f"{counts[name]:,} {said}" for name, said in _SAID.items() if name in counts]
    fine = not counts.keys() - {"same", "skipped"}
    mark = paint.green("✓") if fine else paint.red("≠")
    what = quantity(total, "call")
    return f"{mark} {what} in {quantity(len(turns), 'turn')}: " + (
        ", ".join(parts) or "nothing to compare"
    )


_THEN = {"allow": "ran unasked", "ask": "asked", "deny": "denied"}
_NOW = {"allow": "runs unasked", "ask": "asks", "deny": "is denied"}


def redecide(folder: "SessionFolder", sessions: "Sequence[SessionSummary]", **flags: Any) -> int:
    """Decide every past call again, and show what would change."""
    from bridle.cli.exit_codes import complain
    from bridle.config.policy import read_rules

    path = Path(flags["policy"])
    read_rules(path, required=True)  # one that is bad is refused, also where no session is left
    found: list[PastDecision] = []
    looked = 0
    for session in sessions:
        root = flags["workspace"] or session.workspace
        if not root or not Path(root).is_dir():
            said = f"the folder of session {session.id} is not there any more: {root or 'unknown'}"
            complain(said, "It is left out; name a folder with --workspace.")
            continue
        looked += 1
        found += _decided(folder, session.id, root, read_rules(path, root=root).rules)
    if flags["as_json"]:
        import msgspec

        from bridle.cli.told import tell_json

        tell_json(msgspec.to_builtins(found, enc_hook=str))
        return 0
    paint = paint_for(sys.stdout)
    for line in changes(found, paint, width_of(sys.stdout)):
        click.echo(line)
    click.echo(decision_summary(found, looked, paint))
    return 0


def _decided(
    folder: "SessionFolder", session_id: str, root: str, rules: Any
) -> "Iterator[PastDecision]":
    from bridle.runtime.dry_run import DryRun, ReEvaluation

    yield from ReEvaluation(session_id, DryRun(root, rules)).decisions(folder.read(session_id))


def changes(found: "Sequence[PastDecision]", paint: Paint, width: int) -> Iterator[str]:
    """What would change, the like together: from what to what, how often, and why."""
    from bridle.cli.event_lines import subject_of
    from bridle.messages import ToolCall

    alike: dict[tuple[str, ...], list[PastDecision]] = {}
    for one in found:
        if not one.is_same:
            subject = subject_of(ToolCall("", one.name, one.arguments))
            alike.setdefault((one.then, one.now, one.name, subject), []).append(one)
    colours = {"allow": paint.green, "ask": paint.yellow, "deny": paint.red}
    for (then, now, name, subject), ones in sorted(alike.items()):
        times = f" ×{len(ones)}" if len(ones) > 1 else ""
        change = f"{_THEN[then]} → {colours[now](_NOW[now])}"
        room = max(20, width - len(name) - 32)
        yield f"{change}  {paint.bold(plain(name))} {cut(plain(subject), room)}{times}"
        why = ones[0].rule or ones[0].reason
        yield f"    {paint.dim(cut(plain(why), max(20, width - 4)))}"


def decision_summary(found: "Sequence[PastDecision]", sessions: int, paint: Paint) -> str:
    """How many calls would be decided how."""

    counts: dict[tuple[str, str], int] = {}
    for one in found:
        if not one.is_same:
            counts[one.then, one.now] = counts.get((one.then, one.now), 0) + 1
    same = sum(one.is_same for one in found)
    parts = [f"{same:,} as before"] if same else []
    parts += [f"{count:,} {_THEN[then]} → {_NOW[now]}" for (then, now), count in counts.items()]
    what = f"{quantity(len(found), 'call')} in {quantity(sessions, 'session')}"
    mark = paint.yellow("≠") if counts else paint.green("✓")
    return f"{mark} {what}: {', '.join(parts) or 'nothing was decided'}"
