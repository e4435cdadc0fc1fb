"""Plans what has to be done to take something back, and finds conflicts.

A file is put back only if it still is as the turn left it. Otherwise both are shown and nothing is
changed, unless the person says so. Blocks.
"""

from collections.abc import Iterable, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Literal

from msgspec import Struct

from bridle.workspace.text import neutral, one_line
from bridle.workspace.undo.change_detector import ChangeDetector
from bridle.workspace.undo.journal import Change, Kept
from bridle.workspace.undo.restore import Step
from bridle.workspace.undo.snapshot import USUAL, scan
from bridle.workspace.undo.tree import ABSENT, WORDS, State, as_text

_SHOWN = 40  # lines of a difference
_CHANGED = 2000  # ... where a whole change is looked at
_COMPARED = 200_000  # bytes of a file that are compared line by line


class Restored(Struct, frozen=True, gc=False):
    """A path that is put back: it comes back, goes, or is again what it was."""

    path: str
    how: Literal["comes back", "goes", "changes back"]


class Conflict(Struct, frozen=True, gc=False, omit_defaults=True):
    """A path that cannot simply be put back: why, and how it differs from what the turn left.

    `session` and `turn` name a later turn that changed it, where it was one.
    """

    path: str
    why: str
    diff: str = ""
    session: str = ""
    turn: int = 0


class Outcome(Struct, frozen=True):
    """What an undo, or a redo, did or would do. With `conflicts` and not `done`: nothing.

    `left` are folders that stay because something else lies in them. `undo` names what was kept,
    to take this back. `uncovered` says, in words, what is not restored.
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


class Net(Struct):
    """What several lines did to one path, all told. `broken`: somebody else came in between.

    `unsure`: nobody saw the end of a call that named no paths, so that this may be anybody's doing.
    """

    before: State
    after: State
    broken: bool = False
    unsure: bool = False


class Plan:
    """The steps to take some lines back, found by comparing them with what stands there now."""

    def __init__(
        self, detector: ChangeDetector, lines: Sequence[Kept], chosen: Sequence[Kept]
    ) -> None:
        self._detector = detector
        self._chosen = {one.token for one in chosen}
        first = next((at for at, one in enumerate(lines) if one.token in self._chosen), 0)
        self._later = [one for one in lines[first:] if one.token not in self._chosen]
        self.steps: list[Step] = []
        self.conflicts: list[Conflict] = []
        self.uncovered = list(dict.fromkeys(word for one in chosen for word in one.uncovered))
        self._clashing: list[Step] = []
        for path, net in sorted(_net(chosen).items()):
            if net.before != net.after:
                self._judge(path, net)
        self._hold_back()

    def differences(self) -> dict[str, str]:
        """How each file would change that is put back, from what it is now; in lines."""
        return {as_text(step.path): self._change(step) for step in self.steps}

    def _change(self, step: Step) -> str:
        now, then = self._lines(step.now), self._lines(step.wanted)
        if now is None or then is None or now == then:
            return f"{_kind(step.now)}, and then again {_kind(step.wanted)}"
        name = one_line(as_text(step.path), 500)
        found = unified_diff(now, then, f"a/{name}", f"b/{name}", lineterm="")
        lines = [neutral(line, keep="\t") for line in islice(found, _CHANGED + 1)]
        more = ["… and more"] if len(lines) > _CHANGED else []
        return "\n".join(lines[:_CHANGED] + more)

    def forced(self) -> None:
        """Put everything back, whoever changed it since."""
        self.steps += self._clashing
        self.conflicts = []

    def _judge(self, path: str, net: Net) -> None:
        entry, seen = scan(self._detector.objects, USUAL, self._detector.root, path)
        step = Step(path, entry.state, net.before, seen)
        if step.now == step.wanted or (step.stays_folder and not net.after.is_folder):
            return
        if net.before.why or not self._is_there(net.before):
            why = WORDS.get(net.before.why, "cannot be put back: what was kept of it is damaged")
            self._say(f"{one_line(path, 120)} {why}")
        elif net.after.why:  # what it was left as is not kept, so it stays, as was said
            self._clashing.append(step)
        elif why := self._against(step, net):
            self._clashing.append(step)
            self.conflicts.append(self._conflict(step, net, why))
        else:
            self.steps.append(step)

    def _hold_back(self) -> None:
        """What would have to be put below something that stays is held back as well."""
        staying = {step.path for step in self._clashing if step.wanted.is_folder}
        steps, self.steps = self.steps, []
        for step in steps:
            if not step.wanted.mode or not _holders(step.path) & staying:
                self.steps.append(step)
                continue
            self._clashing.append(step)
            why = "something else stands where its folder was"
            self.conflicts.append(Conflict(as_text(step.path), why))

    def _say(self, words: str) -> None:
        if words not in self.uncovered:
            self.uncovered.append(words)

    def _is_there(self, state: State) -> bool:
        if not state.mode or state.is_folder or state.is_link:
            return True
        return self._detector.objects.get(state.object) is not None

    def _against(self, step: Step, net: Net) -> str:
        """Why the path may not be put back as things stand; empty where it may."""
        if step.now.why:
            return f"it {WORDS[step.now.why]}, so that this could not be taken back again"
        if step.now != net.after:
            return "it was changed since"
        if net.unsure:
            return "the call was cut off, so that this may be somebody else's work"
        return "somebody else changed it in the middle of it" if net.broken else ""

    def _conflict(self, step: Step, net: Net, why: str) -> Conflict:
        path = step.path
        if step.now == net.after:  # what would be lost is what came since it was kept
            diff = self._difference(net.before, step.now, "as it was before")
        else:
            diff = self._difference(net.after, step.now)
        for one in reversed(self._later):
            if any(_touches(change.path, path) for change in one.changes):
                said = {"call": f"turn {one.turn}", "undo": "an undo", "redo": "a redo"}[one.kind]
                return Conflict(
                    as_text(path), f"{said} changed it afterwards", diff, one.session, one.turn
                )
        return Conflict(as_text(path), why, diff)

    def _difference(self, left: State, now: State, was: str = "as the turn left it") -> str:
        """As it was or as the turn left it, and as it is now; in lines where both are text."""
        one, other = self._lines(left), self._lines(now)
        if left.mode and now.mode and left.object == now.object:
            return f"its mode is {now.mode & 0o7777:o}, and was left {left.mode & 0o7777:o}"
        if one is None or other is None:
            return f"left as {_kind(left)}, and now {_kind(now)}"
        found = unified_diff(one, other, was, "as it is now", lineterm="", n=2)
        lines = [neutral(line, keep="\t") for line in found]
        more = [f"… {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
        return "\n".join(lines[:_SHOWN] + more)

    def _lines(self, state: State) -> list[str] | None:
        if not state.mode:
            return []
        if state.why or state.is_folder or state.is_link:
            return None
        data = self._detector.objects.get(state.object)
        if data is None or len(data) > _COMPARED or b"\0" in data:
            return None
        return data.decode(errors="replace").splitlines()


def _net(chosen: Iterable[Kept]) -> dict[str, Net]:
    found: dict[str, Net] = {}
    for kept in chosen:
        for change in kept.changes:
            net = found.setdefault(change.path, Net(change.before, change.before))
            net.broken |= net.after != change.before
            net.unsure |= kept.cut and not kept.named
            net.after = change.after
    return found


def _holders(path: str) -> set[str]:
    """The folders that a path lies in."""
    return {path[:at] for at, sign in enumerate(path) if sign == "/"}


def _touches(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _kind(state: State) -> str:
    if not state.mode:
        return "nothing"
    if state.why:
        return "a file that is not kept"
    if state.is_folder:
        return "a folder"
    return f"a link to {one_line(state.object, 120)}" if state.is_link else "a file"


def restored(steps: Iterable[Step]) -> tuple[Restored, ...]:
    """The steps as a person is told of them; folders only where nothing in them is named."""
    steps = sorted(steps, key=lambda step: step.path)
    holders = {holder for one in steps for holder in _holders(one.path)}
    return tuple(
        Restored(as_text(one.path) + ("/" if _is_folder(one) else ""), _how(one))
        for one in steps
        if one.path not in holders or not _is_folder(one)
    )


def _is_folder(step: Step) -> bool:
    return all(state.is_folder or not state.mode for state in (step.now, step.wanted))


def _how(step: Step) -> Literal["comes back", "goes", "changes back"]:
    if not step.now.mode:
        return "comes back"
    return "changes back" if step.wanted.mode else "goes"


def changes_of(steps: Iterable[Step], left: Iterable[str]) -> tuple[Change, ...]:
    """The steps as the journal has them, but for what stayed."""
    stayed = set(left)
    return tuple(
        Change(one.path, one.now, one.wanted if one.wanted.mode else ABSENT)
        for one in steps
        if one.path not in stayed
    )
