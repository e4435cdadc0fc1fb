"""Plans the steps of an undo, and finds conflicts.

A file is restored only if it is still as the turn left it. Otherwise the difference is shown and
nothing is changed, unless the person asks for it. Blocks.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from bridle.workspace.fs import is_below
from bridle.workspace.text import neutral, one_line
from bridle.workspace.undo.change_detector import ChangeDetector
from bridle.workspace.undo.journal import Change, JournalEntry
from bridle.workspace.undo.restore import Step
from bridle.workspace.undo.snapshot import DEFAULT_LIMITS, read_path
from bridle.workspace.undo.tree import ABSENT, WORDS, State, as_text

_SHOWN = 40  # lines of a difference
_MAX_DIFF = 2000  # lines of a difference that is shown as a whole
_MAX_COMPARED = 200_000  # bytes of a file that is compared line by line


class Restored(Struct, frozen=True, gc=False):
    """A path that is restored: it comes back, is removed, or has its content of before."""

    path: str
    how: Literal["comes back", "goes", "changes back"]


class Conflict(Struct, frozen=True, gc=False, omit_defaults=True):
    """A path that cannot simply be restored: why, and how it differs from what the turn left.

    `session` and `turn` name the later turn that changed it, if it was one.
    """

    path: str
    why: str
    diff: str = ""
    session: str = ""
    turn: int = 0


class Outcome(Struct, frozen=True):
    """What an undo, or a redo, did or would do. If it has conflicts and is not `done`, nothing.

    `left` are folders that stay because they contain something else. `undo` is the token of the
    entry with which this can be undone. `uncovered` says, in words, what is not restored.
    """

    session: str
    turn: int
    kind: Literal["undo", "redo"]
    done: bool = False
    files: tuple[Restored, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    uncovered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    undo: str = ""


class _NetChange(Struct):
    """What several entries did to one path. `broken`: somebody else changed it in between.

    `unsure`: nobody saw the end of a call that named no paths, so anybody may have done this.
    """

    before: State
    after: State
    broken: bool = False
    unsure: bool = False


class Plan:
    """The steps that undo some entries of the journal, and the conflicts."""

    def __init__(
        self,
        detector: ChangeDetector,
        entries: Sequence[JournalEntry],
        chosen: Sequence[JournalEntry],
    ) -> None:
        self._detector = detector
        tokens = {entry.token for entry in chosen}
        first = next((at for at, entry in enumerate(entries) if entry.token in tokens), 0)
        self._later = [entry for entry in entries[first:] if entry.token not in tokens]
        self.steps: list[Step] = []
        self.conflicts: list[Conflict] = []
        self.uncovered = list(dict.fromkeys(text for entry in chosen for text in entry.uncovered))
        self._conflicting: list[Step] = []
        for path, net in sorted(_net_changes(chosen).items()):
            if net.before != net.after:
                self._add(path, net)
        self._exclude_below_conflicts()

    def differences(self) -> dict[str, str]:
        """Return, for each file that is restored, a diff from what it is now."""
        return {as_text(step.path): self._change(step) for step in self.steps}

    def _change(self, step: Step) -> str:
        now, then = self._lines(step.now), self._lines(step.wanted)
        if step.now.mode and step.now.object == step.wanted.object:
            return f"mode {step.now.mode & 0o7777:o} will be {step.wanted.mode & 0o7777:o} again"
        if now is None or then is None or now == then:
            kinds = _kind(step.now), _kind(step.wanted)
            if kinds[0] != kinds[1] and "nothing" not in kinds:
                return f"{kinds[0]} will be {kinds[1]} again"
            if "a file" in kinds:
                return "binary or large: not shown"
            return kinds[0] if step.now.mode else kinds[1]
        from difflib import unified_diff

        name = one_line(as_text(step.path), 500)
        diff = unified_diff(now, then, f"a/{name}", f"b/{name}", lineterm="")
        lines = [neutral(line, keep="\t") for line in islice(diff, _MAX_DIFF + 1)]
        more = ["… and more"] if len(lines) > _MAX_DIFF else []
        return "\n".join(lines[:_MAX_DIFF] + more)

    def force(self) -> None:
        """Restore everything, whoever has changed it since."""
        self.steps += self._conflicting
        self.conflicts = []

    def _add(self, path: str, net: _NetChange) -> None:
        detector = self._detector
        entry, status = read_path(detector.objects, DEFAULT_LIMITS, detector.root, path)
        step = Step(path, entry.state, net.before, status)
        if step.now == step.wanted or (step.stays_folder and not net.after.is_folder):
            return
        if net.before.why or not self._is_stored(net.before):
            why = WORDS.get(net.before.why, "cannot be restored: its kept content is damaged")
            problem = f"{one_line(path, 120)} {why}"
            if problem not in self.uncovered:
                self.uncovered.append(problem)
        elif net.after.why:  # what the turn left is not kept, so it stays, as was said
            self._conflicting.append(step)
        elif why := _conflict_reason(step, net):
            self._conflicting.append(step)
            self.conflicts.append(self._conflict(step, net, why))
        else:
            self.steps.append(step)

    def _exclude_below_conflicts(self) -> None:
        """Exclude what would have to be restored below something that stays."""
        staying = {step.path for step in self._conflicting if step.wanted.is_folder}
        steps, self.steps = self.steps, []
        for step in steps:
            if not step.wanted.mode or not parents_of(step.path) & staying:
                self.steps.append(step)
                continue
            self._conflicting.append(step)
            why = "something else is where its folder was"
            self.conflicts.append(Conflict(as_text(step.path), why))

    def _is_stored(self, state: State) -> bool:
        if not state.mode or state.is_folder or state.is_link:
            return True
        return self._detector.objects.get(state.object) is not None

    def _conflict(self, step: Step, net: _NetChange, why: str) -> Conflict:
        path = step.path
        if step.now == net.after:  # what would be lost is what came after the last scan
            diff = self._difference(net.before, step.now, "as it was before")
        else:
            diff = self._difference(net.after, step.now)
        for entry in reversed(self._later):
            if any(_overlap(change.path, path) for change in entry.changes):
                kinds = {"call": f"turn {entry.turn}", "undo": "an undo", "redo": "a redo"}
                why = f"{kinds[entry.kind]} changed it afterwards"
                return Conflict(as_text(path), why, diff, entry.session, entry.turn)
        return Conflict(as_text(path), why, diff)

    def _difference(self, left: State, now: State, was: str = "as the turn left it") -> str:
        """Return how a path differs from what the turn left; a diff if both are text."""
        left_lines, now_lines = self._lines(left), self._lines(now)
        if left.mode and now.mode and left.object == now.object:
            return f"its mode is {now.mode & 0o7777:o}, and was left {left.mode & 0o7777:o}"
        if left_lines is None or now_lines is None:
            return f"left as {_kind(left)}, and now {_kind(now)}"
        from difflib import unified_diff

        diff = unified_diff(left_lines, now_lines, was, "as it is now", lineterm="", n=2)
        lines = [neutral(line, keep="\t") for line in diff]
        more = [f"… {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
        return "\n".join(lines[:_SHOWN] + more)

    def _lines(self, state: State) -> list[str] | None:
        if not state.mode:
            return []
        if state.why or state.is_folder or state.is_link:
            return None
        data = self._detector.objects.get(state.object)
        if data is None or len(data) > _MAX_COMPARED or b"\0" in data:
            return None
        return data.decode(errors="replace").splitlines()


def _conflict_reason(step: Step, net: _NetChange) -> str:
    """Return why a path may not be restored as it is now; empty if it may."""
    if step.now.why:
        return f"it {WORDS[step.now.why]}, so that this could not be taken back again"
    if step.now != net.after:
        return "it was changed since"
    if net.unsure:
        return "the call was cut off, so that this may be somebody else's work"
    return "somebody else changed it in the middle of it" if net.broken else ""


def _net_changes(chosen: Iterable[JournalEntry]) -> dict[str, _NetChange]:
    net_changes: dict[str, _NetChange] = {}
    for entry in chosen:
        for change in entry.changes:
            net = net_changes.setdefault(change.path, _NetChange(change.before, change.before))
            net.broken |= net.after != change.before
            net.unsure |= entry.cut and not entry.named
            net.after = change.after
    return net_changes


def parents_of(path: str) -> set[str]:
    """Return the folders that a path lies in."""
    return {path[:at] for at, character in enumerate(path) if character == "/"}


def _overlap(path: str, other: str) -> bool:
    return is_below(path, other) or is_below(other, path)


def _kind(state: State) -> str:
    if not state.mode:
        return "nothing"
    if state.why:
        return "a file that is not kept"
    if state.is_folder:
        return "a folder"
    return f"a link to {one_line(state.object, 120)}" if state.is_link else "a file"


def to_restored(steps: Iterable[Step]) -> tuple[Restored, ...]:
    """Return the steps as a person is told of them; folders only if nothing in them is named."""
    steps = sorted(steps, key=lambda step: step.path)
    parents = {parent for step in steps for parent in parents_of(step.path)}
    return tuple(
        Restored(as_text(step.path) + ("/" if _is_folder(step) else ""), _how(step))
        for step in steps
        if step.path not in parents or not _is_folder(step)
    )


def _is_folder(step: Step) -> bool:
    return all(state.is_folder or not state.mode for state in (step.now, step.wanted))


def _how(step: Step) -> Literal["comes back", "goes", "changes back"]:
    if not step.now.mode:
        return "comes back"
    return "changes back" if step.wanted.mode else "goes"


def changes_of(steps: Iterable[Step], left: Iterable[str]) -> tuple[Change, ...]:
    """Return the steps as changes for the journal, without the paths that were left."""
    excluded = set(left)
    return tuple(
        Change(step.path, step.now, step.wanted if step.wanted.mode else ABSENT)
        for step in steps
        if step.path not in excluded
    )
