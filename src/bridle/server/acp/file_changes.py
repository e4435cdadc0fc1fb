"""What a call of a file tool would change: whole files, as they are and as they would be.

Reads the workspace and writes nothing. Where the change does not fit what the file holds now, or
the file is none that is shown, the pieces are shown as they were asked for.
"""

from collections.abc import Iterable

from bridle.agents.acp.updates import call_diffs
from bridle.errors import ToolError
from bridle.messages import ToolCall
from bridle.protocols.tool import Files
from bridle.server.acp.updates import Change
from bridle.tools.edit import parse_replacements
from bridle.tools.encoding import decode, replace_bad_bytes
from bridle.tools.unified_diff import FilePatch, apply_hunks, parse_patch

LARGEST = 1 << 20  # bytes of a file that is shown whole


def file_changes(call: ToolCall, files: Files) -> tuple[Change, ...]:
    """What it would change; nothing for a call that is none of a file tool. Blocks on the disk."""
    try:
        if call.name == "write":
            return _written(call, files)
        if call.name == "edit":
            return _edited(call, files)
        if call.name == "apply_patch":
            return tuple(_patched(parse_patch(str(call.arguments["patch"])), files))
    except (ToolError, LookupError, TypeError, AttributeError):  # arguments are the model's
        return tuple(_as_asked(call))
    return ()


def _written(call: ToolCall, files: Files) -> tuple[Change, ...]:
    path, content = call.arguments["path"], call.arguments["content"]
    before = _held(files, path)
    if not isinstance(content, str) or len(content) > LARGEST:
        return ()
    return (Change(files.relative(path), before, content),)


def _edited(call: ToolCall, files: Files) -> tuple[Change, ...]:
    path = call.arguments["path"]
    before = after = _held(files, path)
    if before is None or after is None:
        return tuple(_as_asked(call))
    for one in parse_replacements(call.arguments):
        count = after.count(one.old)
        if count == 0 or (count > 1 and not one.everywhere):
            return tuple(_as_asked(call))
        after = after.replace(one.old, one.new)
    return (Change(files.relative(path), before, after),)


def _patched(patches: Iterable[FilePatch], files: Files) -> Iterable[Change]:
    for one in patches:
        before = _held(files, one.old) if one.old else None
        after = apply_hunks(before or "", one.hunks)
        if one.old and one.old != one.new:  # it goes, or goes elsewhere
            yield Change(files.relative(one.old), before, "")
            before = None
        if one.new:
            yield Change(files.relative(one.new), before, after)


def _held(files: Files, path: str) -> str | None:
    """What the file holds; None where there is none. Raise `ToolError` for what is not shown."""
    if not files.exists(path):
        return None
    data = files.read(path, LARGEST + 1)
    if len(data) > LARGEST:
        raise ToolError("the file is too large to be shown whole")
    return replace_bad_bytes(decode(path, data)[0])


def _as_asked(call: ToolCall) -> Iterable[Change]:
    """The pieces, where they are pieces of text at all."""
    edits = call.arguments.get("edits")
    sound = edits is None or (
        isinstance(edits, list) and all(isinstance(one, dict) for one in edits)
    )
    for one in call_diffs(call) if sound else ():
        yield Change(one.path, one.old_text, one.new_text)
