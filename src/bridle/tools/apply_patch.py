"""The tool `apply_patch`: a unified diff over several files, all of it or nothing.

Everything is worked out in memory first, then written. If writing fails midway, the files that were
already written are restored.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.encoding import Encoding, decode, replace_bad_bytes
from bridle.tools.thread_pool import in_thread
from bridle.tools.unified_diff import MAX_DIFF, FilePatch, apply_hunks, parse_patch, unified_diff
from bridle.tools.workspace_files import (
    file_state,
    file_status,
    forget_file,
    missing_file_error,
    remember_file,
    require_known_file,
    workspace_of,
)
from bridle.workspace.text import one_line, shorten

_MAX_PATCH = 1_000_000  # characters
_MAX_BYTES = 64 * 1024 * 1024  # of all old files together


class ApplyPatch:
    """Applies a unified diff to files of the workspace."""

    name = "apply_patch"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "patch": {
                "type": "string",
                "minLength": 1,
                "maxLength": _MAX_PATCH,
                "description": "A unified diff; paths are relative to the workspace.",
            }
        },
        "required": ["patch"],
        "additionalProperties": False,
    }

    def touched(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """Return every path that the patch names. Raise `ToolError` if it cannot be parsed."""
        patch = arguments.get("patch")
        if not isinstance(patch, str) or len(patch) > _MAX_PATCH:
            raise ToolError(f"`patch` has to be a text of at most {_MAX_PATCH:,} characters.")
        paths = [path for file in parse_patch(patch) for path in file.paths]
        return tuple(dict.fromkeys(paths))

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the patch does not fit, or one of its files was not read."""
        await in_thread(_patched_files, context, parse_patch(arguments["patch"]))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Apply it, in a thread."""
        return await in_thread(_apply, context, parse_patch(arguments["patch"]))


class _Write(NamedTuple):
    """One path before and after. None: there is no file. A mode of 0: the system's default."""

    path: str
    before: bytes | None
    after: bytes | None
    mode_before: int = 0
    mode_after: int = 0


class _PatchedFile(NamedTuple):
    """What becomes of one file of the patch: added, changed, renamed or deleted."""

    path: str
    outcome: str
    writes: tuple[_Write, ...]
    diff: str = ""
    old_path: str = ""

    @property
    def summary(self) -> str:
        """One line about it."""
        lines = self.diff.split("\n")[2:]
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
        old = f"`{one_line(self.old_path, 200)}` -> " if self.old_path else ""
        return f"{self.outcome} {old}`{one_line(self.path, 200)}` (+{added} -{removed})"


def _apply(context: ToolContext[Any], patches: Sequence[FilePatch]) -> ToolResult:
    workspace = context.workspace
    files = _patched_files(context, patches)
    writes = [write for file in files for write in file.writes]
    _write_all(workspace, writes)
    for write in writes:
        if write.after is None:
            forget_file(context, write.path)
        else:
            state = file_state(workspace, write.path, write.after)
            remember_file(context, write.path, state)
    data = {
        "files": [{"path": file.path, "how": file.outcome} for file in files],
        "diff": shorten("\n".join(file.diff for file in files if file.diff), MAX_DIFF),
    }
    title = "Patched {} file{}:".format(len(files), "s" if len(files) > 1 else "")
    return ToolResult.success(data, text="\n".join([title, *(file.summary for file in files)]))


def _patched_files(context: ToolContext[Any], patches: Sequence[FilePatch]) -> list[_PatchedFile]:
    """Work out what becomes of every file. Raise `ToolError` if the patch does not fit."""
    _refuse_duplicates(context.workspace, patches)
    files: list[_PatchedFile] = []
    size = 0
    for patch in patches:
        file = _patched_file(context, patch)
        size += sum(len(write.before or b"") for write in file.writes)
        if size > _MAX_BYTES:
            raise ToolError("The files of this patch are too large together; send smaller patches.")
        files.append(file)
    return files


def _refuse_duplicates(files: Files, patches: Sequence[FilePatch]) -> None:
    names: set[str] = set()
    for path in (path for patch in patches for path in patch.paths):
        if (name := workspace_of(files).resolve(path)) in names:
            raise ToolError(
                f"`{one_line(path, 200)}` is in the patch twice. Nothing was changed; "
                "put all of its hunks below one header."
            )
        names.add(name)


def _patched_file(context: ToolContext[Any], patch: FilePatch) -> _PatchedFile:
    """Work out what becomes of one file. Raise `ToolError` if the patch does not fit."""
    name = one_line(patch.old or patch.new, 200)
    if patch.new != patch.old and patch.new and context.workspace.exists(patch.new):
        raise ToolError(f"`{one_line(patch.new, 200)}` exists already. Nothing was changed.")
    data, mode = _read_old(context, patch.old) if patch.old else (b"", 0)
    text, encoding = decode(name, data) if data else ("", Encoding())
    try:
        new_text = apply_hunks(text, patch.hunks)
    except ToolError as error:
        raise ToolError(
            f"The patch does not fit `{name}`, and nothing was changed: {error.message}"
        ) from error
    removed = _Write(patch.old, before=data, after=None, mode_before=mode)
    if not patch.new:
        if patch.hunks and new_text:
            raise ToolError(
                f"The patch deletes `{name}`, but does not name all of its lines. "
                "Nothing was changed."
            )
        diff = unified_diff(name, replace_bad_bytes(text), "")
        return _PatchedFile(patch.old, "deleted", (removed,), diff)
    after = encoding.encode(new_text, patch.new)
    new_mode = _new_mode(mode, patch.mode)
    diff = ""
    if text != new_text:
        diff = unified_diff(patch.new, replace_bad_bytes(text), replace_bad_bytes(new_text))
    created = _Write(patch.new, before=None, after=after, mode_after=new_mode)
    if not patch.old:
        return _PatchedFile(patch.new, "added", (created,), diff)
    if patch.old == patch.new:
        if after == data and new_mode == mode:
            raise ToolError(
                f"The patch changes nothing in `{one_line(patch.new, 200)}`. Nothing was changed."
            )
        changed = _Write(patch.new, before=data, after=after, mode_before=mode, mode_after=new_mode)
        return _PatchedFile(patch.new, "changed", (changed,), diff)
    return _PatchedFile(patch.new, "renamed", (created, removed), diff=diff, old_path=patch.old)


def _read_old(context: ToolContext[Any], path: str) -> tuple[bytes, int]:
    """Return the content and the mode of a file. Raise `ToolError` unless the model knows it."""
    files = context.workspace
    status = file_status(files, path)
    if status is None:
        raise missing_file_error(files, path)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"`{one_line(path, 200)}` is a folder; name a file.")
    data = files.read(path)
    require_known_file(context, path, file_state(files, path, data), fits=True)
    return data, stat.S_IMODE(status.st_mode)


def _new_mode(old: int, new: int | None) -> int:
    """Return the permissions afterwards, 0 for the default. A patch decides only about `x`."""
    if new is None:
        return old
    if not old:
        return new
    return old | (old & 0o444) >> 2 if new & 0o100 else old & ~0o111


def _write_all(files: Files, writes: Sequence[_Write]) -> None:
    """Write all files. If one fails, restore those before it and raise `ToolError`."""
    done: list[_Write] = []
    try:
        for write in sorted(writes, key=lambda write: write.after is None):  # removals last
            done.append(write)
            _put(files, write.path, write.after, write.mode_after, write.mode_before)
    except (ToolError, OSError) as error:
        failed = [write for write in reversed(done) if not _restore(files, write)]
        why = error.message if isinstance(error, ToolError) else str(error)
        if failed:
            paths = ", ".join(f"`{one_line(write.path, 200)}`" for write in failed)
            rest = f"These could not be restored: {paths}."
        else:
            rest = "What had been written was restored."
        raise ToolError(f"The patch could not be written: {why} {rest}") from error


def _put(files: Files, path: str, data: bytes | None, mode: int, mode_now: int) -> None:
    """Give a path this content and mode, or remove it."""
    workspace = workspace_of(files)
    if data is None:
        workspace.remove(workspace.resolve(path))  # of a link, the file that it leads to
        return
    files.write(path, data)
    if mode and mode != mode_now:
        with workspace.open_file(path) as file:
            os.fchmod(file.fileno(), mode & 0o777)


def _restore(files: Files, write: _Write) -> bool:
    """Restore a path. Return whether that was possible."""
    try:
        status = file_status(files, write.path)
        if write.before is not None or status is not None:
            _put(files, write.path, write.before, write.mode_before, 0)
    except (ToolError, OSError):
        return False
    return True
