"""`bridle sessions replay --policy FILE`: what other rules would have made of past calls."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.protocols.store import SessionSummary
    from bridle.runtime.dry_run import PastDecision
    from bridle.stores.reader import SessionFolder

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
    click.echo(summary(found, looked, paint))
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


def summary(found: "Sequence[PastDecision]", sessions: int, paint: Paint) -> str:
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
