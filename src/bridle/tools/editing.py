"""How the tool `edit` changes a file: exact pieces replaced by others, all of them or none."""

from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.encoding import Coding, decode, shown
from bridle.tools.nearby import like, missing, unified
from bridle.tools.seen import Seen, mark_on_disk
from bridle.workspace.text import one_line

_PLACES = 10  # line numbers that are listed
_AROUND = 3  # lines shown around the change
_SAID = 4000  # characters of the difference that the model reads after several changes


class Change(NamedTuple):
    """One piece of text, and what shall stand there instead."""

    old: str
    new: str
    everywhere: bool = False


def changes_of(arguments: dict[str, Any]) -> list[Change]:
    """What is asked for, in one form or the other."""
    single = [name for name in ("old", "new", "all") if name in arguments]
    if "edits" not in arguments:
        if "old" not in arguments or "new" not in arguments:
            raise ToolError("Say `old` and `new`, or a list of them as `edits`.")
        given = [arguments]
    elif single:
        raise ToolError(f"Give either `edits` or `{single[0]}`, not both.")
    else:
        given = arguments["edits"]
    changes = [Change(one["old"], one["new"], one.get("all", False)) for one in given]
    for number, change in enumerate(changes, 1):
        _refuse_senseless(change, _which(number, len(changes)))
    return changes


def _which(number: int, count: int) -> str:
    return "" if count == 1 else f"Edit {number} of {count}: "


def _refuse_senseless(change: Change, which: str) -> None:
    if not change.old:
        raise ToolError(f"{which}`old` is empty: say what to replace, or use write for the file.")
    if change.old == change.new:
        raise ToolError(f"{which}`old` and `new` are the same: nothing would change.")
    Coding().encode(change.new, "")  # half of a surrogate pair is no text in any file


class Changed(NamedTuple):
    """The text of a file before and after its changes, its encoding, and how many places differ."""

    before: str
    after: str
    coding: Coding
    places: int


def edit(context: ToolContext[Any], path: str, changes: list[Change]) -> ToolResult:
    """Make the changes in one file, all of them or none. Raise `ToolError`."""
    files = context.workspace
    where = one_line(files.relative(path), 200)
    before, text, coding, places = changed_text(context, path, changes)
    written = coding.encode(text, where)
    files.write(path, written)
    Seen(context).remember(path, mark_on_disk(files, path, written))
    diff = unified(where, shown(before), shown(text))
    said = _said(where, before, text, changes, places)
    return ToolResult.success({"path": files.relative(path), "diff": diff}, text=said)


def changed_text(context: ToolContext[Any], path: str, changes: list[Change]) -> Changed:
    """What the file would become; nothing is written. Raise `ToolError` if it does not fit."""
    files = context.workspace
    where = one_line(files.relative(path), 200)
    data = _bytes(files, path, where)
    before, coding = decode(where, data)
    Seen(context).require(path, mark_on_disk(files, path, data), fits=True)
    text, places = before, 0
    for number, change in enumerate(changes, 1):
        try:
            text, count = _changed(where, text, change)
        except ToolError as error:
            if len(changes) == 1:
                raise
            which = _which(number, len(changes))
            raise ToolError(f"{which}{error.message}\nNothing was changed.") from error
        places += count
    return Changed(before, text, coding, places)


def _bytes(files: Files, path: str, where: str) -> bytes:
    if files.is_folder(path):
        raise ToolError(f"`{where}` is a folder; name a file.")
    if not files.exists(path):
        raise missing(files, path)
    return files.read(path)


def _changed(where: str, text: str, change: Change) -> tuple[str, int]:
    """The text with this change made, and in how many places."""
    old, new = _with_its_line_ends(text, change.old, change.new)
    count = text.count(old)
    if count == 0:
        raise _not_found(where, text, old)
    if count > 1 and not change.everywhere:
        raise _not_unique(where, text, old, count)
    return text.replace(old, new), count


def _said(where: str, before: str, after: str, changes: list[Change], places: int) -> str:
    """What the model is told: the lines around one change, the difference for several."""
    if len(changes) > 1 or places > 1:
        how = f"Changed `{where}` at {places} places"
        return f"{how}:\n{unified(where, shown(before), shown(after), limit=_SAID)}"
    old, new = _with_its_line_ends(before, changes[0].old, changes[0].new)
    line = before.count("\n", 0, before.index(old)) + 1
    lines = _around(shown(after), line, new.count("\n") + 1)
    return f"Changed `{where}` at line {line}:\n{lines}"


def _with_its_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """In a file whose lines end in CRLF, what was written with plain line ends is meant so."""
    if "\r\n" not in text or "\r" in old or "\r" in new:
        return old, new
    if old in text and "\n" in old:  # a mixed file, and just these lines end plainly
        return old, new
    return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")


def _not_found(where: str, text: str, old: str) -> ToolError:
    near = like(text, old)
    if not near:
        return ToolError(f"`old` does not stand in `{where}`, nor anything like it. Read it again.")
    return ToolError(
        f"`old` does not stand in `{where}` exactly so. Check spaces and indentation; "
        f"these lines come near:\n{near}"
    )


def _not_unique(where: str, text: str, old: str, count: int) -> ToolError:
    places: list[str] = []
    at = -1
    while len(places) < _PLACES and (at := text.find(old, at + 1)) >= 0:
        places.append(str(text.count("\n", 0, at) + 1))
    more = ", …" if count > len(places) else ""
    return ToolError(
        f"`old` stands in `{where}` {count} times, at lines {', '.join(places)}{more}. "
        "Take more of the text around it, or set `all`."
    )


def _around(text: str, line: int, length: int) -> str:
    """The lines of the change, and a few on both sides, with numbers."""
    lines = text.split("\n")
    first, last = max(line - _AROUND, 1), min(line + min(length, 20) - 1 + _AROUND, len(lines))
    shown = [
        f"{number:>6}\t{lines[number - 1][:300].rstrip(chr(13))}"
        for number in range(first, last + 1)
    ]
    return "\n".join(shown)
