"""How the tool `apply_patch` changes files: all of a patch, or nothing of it.

Everything is worked out in memory first. Then it is written; when that fails midway, what was
written is put back.
"""

import stat
from collections.abc import Sequence
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.encoding import Coding, decode, shown
from bridle.tools.hunks import apply_hunks
from bridle.tools.nearby import DIFF_SHOWN, missing, unified
from bridle.tools.opening import on_disk, set_mode, status
from bridle.tools.patch import FilePatch
from bridle.tools.seen import Seen, mark_on_disk
from bridle.workspace.text import one_line, shorten

_MOST_BYTES = 64 * 1024 * 1024  # of all old files together


class Step(NamedTuple):
    """One file before and after. None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    mode_before: int = 0
    mode_after: int = 0


class Outcome(NamedTuple):
    """What becomes of one file of the patch, for who reads the result."""

    path: str
    how: str
    steps: tuple[Step, ...]
    diff: str = ""
    old: str = ""

    @property
    def line(self) -> str:
        """It in one line."""
        lines = self.diff.split("\n")[2:]
        added = sum(line.startswith("+") for line in lines)
        gone = sum(line.startswith("-") for line in lines)
        moved = f"`{one_line(self.old, 200)}` -> " if self.old else ""
        return f"{self.how} {moved}`{one_line(self.path, 200)}` (+{added} -{gone})"


def apply_all(context: ToolContext[Any], patches: Sequence[FilePatch]) -> ToolResult:
    """Work out what becomes of every file, then write it. Raise `ToolError`."""
    files, seen = context.workspace, Seen(context)
    outcomes = outcomes_of(context, patches)
    steps = [step for outcome in outcomes for step in outcome.steps]
    _write_all(files, steps)
    for step in steps:
        if step.after is None:
            seen.forget(step.path)
        else:
            seen.remember(step.path, mark_on_disk(files, step.path, step.after))
    return _result(outcomes)


def outcomes_of(context: ToolContext[Any], patches: Sequence[FilePatch]) -> list[Outcome]:
    """What would become of every file; nothing is written. Raise `ToolError` if it does not fit."""
    _refuse_twice(context.workspace, patches)
    seen = Seen(context)
    outcomes: list[Outcome] = []
    size = 0
    for patch in patches:
        outcome = _worked_out(context, seen, patch)
        size += sum(len(step.before or b"") for step in outcome.steps)
        if size > _MOST_BYTES:
            raise ToolError("The files of this patch are too large together; send smaller patches.")
        outcomes.append(outcome)
    return outcomes


def _result(outcomes: Sequence[Outcome]) -> ToolResult:
    said = [outcome.line for outcome in outcomes]
    diff = shorten("\n".join(filter(None, (one.diff for one in outcomes))), DIFF_SHOWN)
    found = [{"path": one.path, "how": one.how} for one in outcomes]
    text = "Patched {} file{}:\n".format(len(said), "s" if len(said) > 1 else "")
    return ToolResult.success({"files": found, "diff": diff}, text=text + "\n".join(said))


def _refuse_twice(files: Files, patches: Sequence[FilePatch]) -> None:
    names: set[str] = set()
    for path in (path for patch in patches for path in patch.paths):
        if (name := on_disk(files).resolve(path)) in names:
            raise ToolError(
                f"`{one_line(path, 200)}` stands in the patch twice. Nothing was changed; "
                "put all of its hunks below one header."
            )
        names.add(name)


def _worked_out(context: ToolContext[Any], seen: Seen, patch: FilePatch) -> Outcome:
    """What becomes of a file. Raise `ToolError` unless the patch fits."""
    files = context.workspace
    where = one_line(patch.old or patch.new, 200)
    if patch.new != patch.old and patch.new and files.exists(patch.new):
        raise ToolError(f"`{one_line(patch.new, 200)}` exists already. Nothing was changed.")
    data, mode = _old(files, seen, patch.old) if patch.old else (b"", 0)
    text, coding = decode(where, data) if data else ("", Coding())
    try:
        changed = apply_hunks(text, patch.hunks)
    except ToolError as error:
        said = f"The patch does not fit `{where}`, and nothing was changed: {error.message}"
        raise ToolError(said) from error
    if not patch.new:
        if patch.hunks and changed:
            raise ToolError(
                f"The patch deletes `{where}`, but does not name all of its lines. "
                "Nothing was changed."
            )
        diff = unified(where, shown(text), "")
        return Outcome(patch.old, "deleted", (Step(patch.old, data, None, mode),), diff)
    return _written(patch, (data, mode), (text, changed), coding)


def _written(
    patch: FilePatch, old: tuple[bytes, int], texts: tuple[str, str], coding: Coding
) -> Outcome:
    """A file that is there afterwards: new, changed, or under another name."""
    data, mode = old
    after = coding.encode(texts[1], patch.new)
    new_mode = _mode(mode, patch.mode)
    diff = unified(patch.new, shown(texts[0]), shown(texts[1])) if texts[0] != texts[1] else ""
    if not patch.old:
        return Outcome(patch.new, "added", (Step(patch.new, None, after, 0, new_mode),), diff)
    if patch.old == patch.new:
        if after == data and new_mode == mode:
            raise ToolError(
                f"The patch changes nothing in `{one_line(patch.new, 200)}`. Nothing was changed."
            )
        step = Step(patch.new, data, after, mode, new_mode)
        return Outcome(patch.new, "changed", (step,), diff)
    there = Step(patch.new, None, after, 0, new_mode)
    return Outcome(
        patch.new, "renamed", (there, Step(patch.old, data, None, mode)), diff, patch.old
    )


def _old(files: Files, seen: Seen, path: str) -> tuple[bytes, int]:
    """The bytes and the mode of a file that the model has to know."""
    found = status(files, path)
    if found is None:
        raise missing(files, path)
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"`{one_line(path, 200)}` is a folder; name a file.")
    data = files.read(path)
    seen.require(path, mark_on_disk(files, path, data), fits=True)
    return data, stat.S_IMODE(found.st_mode)


def _mode(old: int, wanted: int | None) -> int:
    """The permissions afterwards; 0: as the system gives them. A patch speaks of `x` alone."""
    if wanted is None:
        return old
    if not old:
        return wanted
    return old | (old & 0o444) >> 2 if wanted & 0o100 else old & ~0o111


def _write_all(files: Files, steps: Sequence[Step]) -> None:
    done: list[Step] = []
    try:
        for step in sorted(steps, key=lambda step: step.after is None):  # what goes, goes last
            done.append(step)
            _put(files, step.path, step.after, step.mode_after, step.mode_before)
    except (ToolError, OSError) as error:
        lost = [one for step in reversed(done) if (one := _put_back(files, step))]
        why = error.message if isinstance(error, ToolError) else str(error)
        kept = f"These could not be put back: {', '.join(lost)}." if lost else ""
        raise ToolError(
            f"The patch could not be written: {why} {kept or 'What was written is put back.'}"
        ) from error


def _put(files: Files, path: str, data: bytes | None, mode: int, mode_now: int) -> None:
    if data is None:
        _remove(files, path)
        return
    files.write(path, data)
    if mode and mode != mode_now:
        set_mode(files, path, mode)


def _remove(files: Files, path: str) -> None:
    """Take a file away: through a link, the file itself."""
    workspace = on_disk(files)
    workspace.remove(workspace.resolve(path))


def _put_back(files: Files, step: Step) -> str:
    """As it was. The path, where that cannot be done."""
    try:
        found = status(files, step.path)
        if step.before is not None:
            _put(files, step.path, step.before, step.mode_before, 0)
        elif found is not None:
            _remove(files, step.path)
    except (ToolError, OSError):
        return f"`{one_line(step.path, 200)}`"
    return ""
