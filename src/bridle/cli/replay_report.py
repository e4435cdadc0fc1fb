"""Replay a session, or decide its calls again, and print how the results compare."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from difflib import unified_diff
from pathlib import Path

import click
import msgspec

from bridle.cli.exit_codes import complain
from bridle.cli.output import confirm, print_json, print_result, progress
from bridle.cli.signals import run_async
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config.policy import read_rules
from bridle.errors import UsageError
from bridle.messages import ToolCall
from bridle.presentation.calls import call_subject
from bridle.protocols.store import SessionSummary
from bridle.runtime.dry_run import DryRun, PastDecision, ReEvaluation
from bridle.runtime.replay import (
    CallComparison,
    RecordedSession,
    ReplayedTurn,
    copy_folder,
    replay,
)
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import neutral, quantity, size_of

_MAX_DIFF = 12  # lines of a difference that are shown
_MAX_COMPARED = 20_000  # characters of a result that are compared line by line
_VERDICTS = {
    "same": "the same",
    "differs": "different",
    "missing": "missing",
    "denied": "denied",
    "skipped": "not run again",
}
_THEN = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_NOW = {"allow": "allow", "ask": "ask", "deny": "deny"}


def replay_session(
    folder: SessionFolder,
    session: SessionSummary,
    *,
    workspace: str | None,
    keep: bool,
    unasked: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Replay a session in a scratch copy, print the comparison, and return the exit code."""
    past = RecordedSession(folder.read(session.id))
    if not past.turns:
        raise UsageError(f"session {session.id} has no turn to replay")
    source = Path(workspace or past.workspace or session.workspace or "/nonexistent")
    if not source.is_dir():
        raise UsageError(
            f"the session's workspace no longer exists: {source}",
            hint="Name a folder with --workspace.",
        )
    _confirm_commands(past, yes=yes)
    scratch = Path(tempfile.mkdtemp(prefix="bridle-replay-")).resolve()
    try:
        return _replay_in(scratch, past, source.resolve(), unasked=unasked, as_json=as_json)
    finally:
        if keep:
            click.echo(f"the scratch copy is in {scratch / 'workspace'}", err=True)
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def _confirm_commands(past: RecordedSession, *, yes: bool) -> None:
    calls = [call for turn in past.turns for step in turn.steps for call in step.calls]
    commands = sum(call.name == "shell" for call in calls)
    if not commands:
        return
    text = f"{quantity(commands, 'recorded command')} may really run, in a scratch copy"
    if not confirm(f"{text}; they can affect other parts of this machine. Continue?", yes=yes):
        print_result("nothing was run")
        raise click.Abort


def _replay_in(
    scratch: Path, past: RecordedSession, source: Path, *, unasked: bool, as_json: bool
) -> int:
    target = scratch / "workspace"
    target.mkdir(mode=0o700)
    with progress(f"copying {source}") as advance:
        copied = copy_folder(source, target, advance)
    text = f"copied {quantity(copied.files, 'file')} ({size_of(copied.size)}) from {source}"
    if copied.left_out:
        text += f"; left out {copied.left_out:,} (links that lead out, …)"
    click.echo(paint_for(sys.stderr).dim(plain(text)), err=True)
    turns: list[ReplayedTurn] = []
    code = run_async(_run_turns(past, target, turns, unasked=unasked, quiet=as_json))
    if as_json:
        print_json(msgspec.to_builtins(turns, enc_hook=str))
    elif code in (0, 1):
        click.echo(summary(turns, paint_for(sys.stdout)))
    return code


async def _run_turns(
    past: RecordedSession, target: Path, turns: list[ReplayedTurn], *, unasked: bool, quiet: bool
) -> int:
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    async with aclosing(replay(past, target, unasked=unasked)) as replayed:
        async for turn in replayed:
            turns.append(turn)
            for line in () if quiet else turn_lines(turn, paint, width):
                click.echo(line)
    fine = ("same", "skipped")
    return int(any(call.verdict not in fine for turn in turns for call in turn.calls))


def turn_lines(turn: ReplayedTurn, paint: Paint, width: int) -> Iterator[str]:
    """Yield the prompt of a turn, and each of its calls with the verdict."""
    prompt = cut(plain(turn.prompt), max(20, width - 12))
    yield f"{paint.cyan('❯')} {paint.bold(prompt)}  {paint.dim(f'turn {turn.turn}')}"
    for call in turn.calls:
        yield from _call_lines(call, paint, width)
    yield ""


def _call_lines(call: CallComparison, paint: Paint, width: int) -> Iterator[str]:
    mark, colour = {
        "same": ("✓", paint.green),
        "differs": ("≠", paint.red),
        "missing": ("✗", paint.red),
        "denied": ("✗", paint.yellow),
        "skipped": ("–", paint.dim),
    }[call.verdict]
    subject = plain(call_subject(ToolCall("", call.name, call.arguments)))
    verdict = "" if call.verdict == "same" else _VERDICTS[call.verdict]
    room = max(10, width - len(call.name) - len(verdict) - 8)
    line = f"  {colour(mark)} {paint.bold(plain(call.name))} {paint.dim(cut(subject, room))}"
    yield f"{line}  {colour(verdict)}" if verdict else line
    if call.verdict == "denied":
        note = "it needed no approval then, and would need it now; --unasked runs it"
        yield f"    {paint.dim(note)}"
    elif call.verdict in ("differs", "missing"):
        yield from difference(call.then, call.now, paint, width)


def difference(then: str, now: str, paint: Paint, width: int) -> Iterator[str]:
    """Yield the lines that differ, as far as there is room."""
    old, new = then[:_MAX_COMPARED].splitlines(), now[:_MAX_COMPARED].splitlines()
    diff = list(unified_diff(old, new, lineterm="", n=0))[2:]
    lines = [line for line in diff if line[:2] != "@@"]
    for line in lines[:_MAX_DIFF]:
        colour = paint.red if line.startswith("-") else paint.green
        yield f"    {colour(cut(neutral(line.expandtabs(4), keep=''), max(20, width - 4)))}"
    if len(lines) > _MAX_DIFF:
        more = f"and {quantity(len(lines) - _MAX_DIFF, 'more line')}"
        yield f"    {paint.dim(more)}"
    if not lines:
        note = "the text is the same; one of them failed, or had other images"
        yield f"    {paint.dim(note)}"


def summary(turns: list[ReplayedTurn], paint: Paint) -> str:
    """Return how many calls got which verdict."""
    counts: dict[str, int] = {}
    for call in (call for turn in turns for call in turn.calls):
        counts[call.verdict] = counts.get(call.verdict, 0) + 1
    parts = [f"{counts[name]:,} {text}" for name, text in _VERDICTS.items() if name in counts]
    is_fine = not counts.keys() - {"same", "skipped"}
    mark = paint.green("✓") if is_fine else paint.red("≠")
    total = f"{quantity(sum(counts.values()), 'call')} in {quantity(len(turns), 'turn')}"
    return f"{mark} {total}: {', '.join(parts) or 'nothing to compare'}"


def decide_again(
    folder: SessionFolder,
    sessions: Sequence[SessionSummary],
    policy: Path,
    *,
    workspace: str | None,
    as_json: bool,
) -> int:
    """Decide every past call by other rules, print what would change, return the exit code."""
    read_rules(policy, required=True)  # refuse a bad file even if there is no session
    decisions: list[PastDecision] = []
    count = 0
    for session in sessions:
        root = workspace or session.workspace
        if not root or not Path(root).is_dir():
            complain(
                f"the workspace of session {session.id} no longer exists: {root or 'unknown'}",
                "The session is left out; name a folder with --workspace.",
            )
            continue
        count += 1
        dry_run = DryRun(root, read_rules(policy, root=root).rules)
        decisions += ReEvaluation(session.id, dry_run).decisions(folder.read(session.id))
    if as_json:
        print_json(msgspec.to_builtins(decisions, enc_hook=str))
        return 0
    paint = paint_for(sys.stdout)
    for line in changed_decisions(decisions, paint, width_of(sys.stdout)):
        click.echo(line)
    click.echo(decision_summary(decisions, count, paint))
    return 0


def changed_decisions(decisions: Sequence[PastDecision], paint: Paint, width: int) -> Iterator[str]:
    """Yield what would change: from what to what, how often, and why."""
    groups: dict[tuple[str, ...], list[PastDecision]] = {}
    for decision in decisions:
        if not decision.is_same:
            subject = plain(call_subject(ToolCall("", decision.name, decision.arguments)))
            key = (decision.then, decision.now, decision.name, subject)
            groups.setdefault(key, []).append(decision)
    colours = {"allow": paint.green, "ask": paint.yellow, "deny": paint.red}
    for (then, now, name, subject), group in sorted(groups.items()):
        times = f" ×{len(group)}" if len(group) > 1 else ""
        change = f"{_THEN[then]} → {colours[now](_NOW[now])}"
        room = max(20, width - len(name) - 32)
        yield f"{change}  {paint.bold(plain(name))} {cut(plain(subject), room)}{times}"
        why = group[0].rule or group[0].reason
        yield f"    {paint.dim(cut(plain(why), max(20, width - 4)))}"


def decision_summary(decisions: Sequence[PastDecision], sessions: int, paint: Paint) -> str:
    """Return how many decisions would change, and how."""
    counts: dict[tuple[str, str], int] = {}
    for decision in decisions:
        if not decision.is_same:
            key = (decision.then, decision.now)
            counts[key] = counts.get(key, 0) + 1
    same = sum(decision.is_same for decision in decisions)
    parts = [f"{same:,} unchanged"] if same else []
    parts += [f"{count:,} {_THEN[then]} → {_NOW[now]}" for (then, now), count in counts.items()]
    total = f"{quantity(len(decisions), 'call')} in {quantity(sessions, 'session')}"
    mark = paint.yellow("≠") if counts else paint.green("✓")
    return f"{mark} {total}: {', '.join(parts) or 'nothing was decided'}"
