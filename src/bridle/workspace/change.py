"""What a call would change in a file, as lines of a diff with context. Pure.

The diff is made from the content of the file now, if that is known and the change fits; otherwise
the change is shown as the call gives it. Everything that would be written is among the lines.
"""

import difflib
from typing import Any, TypeGuard

_SHOWN = ("content", "old", "new", "edits", "patch")  # arguments that the lines show
_EDIT = frozenset(("old", "new", "all"))
_SAME = "(the same as it is now)"
_UNFIT = "(this is not what the file holds now)"


def change_lines(
    arguments: dict[str, Any], before: str | None
) -> tuple[list[str], dict[str, Any]] | None:
    """Return the lines, and the arguments that they do not show; None if it changes no file."""
    lines = _lines(arguments, before)
    if lines is None:
        return None
    left = {name: value for name, value in arguments.items() if name not in _SHOWN}
    if isinstance(path := left.get("path"), str):
        del left["path"]
        lines = [path, *lines]
    return lines, left


def changed_content(arguments: dict[str, Any], before: str) -> str | None:
    """Return the content of the file afterwards; None if no file changes, or it does not fit."""
    given = {name for name in _SHOWN if name in arguments}
    if isinstance(content := arguments.get("content"), str) and given == {"content"}:
        return content
    edits = _edits(arguments, given)
    return _apply_all(edits, before) if edits is not None else None


def _lines(arguments: dict[str, Any], before: str | None) -> list[str] | None:
    given = {name for name in _SHOWN if name in arguments}
    if isinstance(content := arguments.get("content"), str) and given == {"content"}:
        return _content_lines(content, before)
    if isinstance(patch := arguments.get("patch"), str) and given == {"patch"}:
        return patch.removesuffix("\n").split("\n")
    edits = _edits(arguments, given)
    return _edit_lines(edits, before) if edits is not None else None


def _edits(arguments: dict[str, Any], given: set[str]) -> list[dict[str, Any]] | None:
    edit = {name: arguments[name] for name in _EDIT if name in arguments}
    edits = arguments.get("edits") if given == {"edits"} else [edit]
    return edits if given in ({"edits"}, {"old", "new"}) and _are_edits(edits) else None


def _apply_all(edits: list[dict[str, Any]], before: str | None) -> str | None:
    after = before
    for edit in edits:
        after = _apply(after, edit) if after is not None else None
    return after


def _are_edits(edits: object) -> TypeGuard[list[dict[str, Any]]]:
    """Can all of them be shown as lines?"""
    if not isinstance(edits, list) or not edits:
        return False
    return all(
        isinstance(edit, dict)
        and isinstance(edit.get("old"), str)
        and isinstance(edit.get("new"), str)
        and _EDIT.issuperset(edit)
        for edit in edits
    )


def _content_lines(content: str, before: str | None) -> list[str]:
    """Return the lines of a file that is written as a whole."""
    if before is not None:
        return _diff(before, content) or [_SAME]
    is_complete = content.endswith("\n")
    end = [] if is_complete or not content else ["(the last line has no end)"]
    return [*prefix_lines(content[:-1] if is_complete else content, "+ "), *end]


def _edit_lines(edits: list[dict[str, Any]], before: str | None) -> list[str]:
    """Return the lines of a file in which pieces are replaced."""
    after = _apply_all(edits, before)
    if before is not None and after is not None:
        return _diff(before, after) or [_SAME]
    lines = [] if before is None else [_UNFIT]
    for number, edit in enumerate(edits, 1):
        extent = "everywhere" if edit.get("all") else ""
        count = f"{number} of {len(edits)}" if len(edits) > 1 else ""
        if heading := " ".join(filter(None, (count, extent))):
            lines.append(f"@@ {heading} @@")
        lines += _piece_lines(edit["old"], edit["new"])
    return lines


def _apply(text: str, edit: dict[str, Any]) -> str | None:
    """Return the text with that change, or None if it does not certainly fit."""
    old, count = edit["old"], text.count(edit["old"]) if edit["old"] else 0
    if count == 0 or (count > 1 and edit.get("all") is not True):
        return None
    return text.replace(old, edit["new"])


def _piece_lines(old: str, new: str) -> list[str]:
    if old.endswith("\n") and new.endswith("\n"):  # else the difference must be visible
        old, new = old[:-1], new[:-1]
    return [*prefix_lines(old, "- "), *prefix_lines(new, "+ ")]


def _diff(before: str, after: str) -> list[str]:
    if before.endswith("\n") and after.endswith("\n"):  # else the difference must be visible
        before, after = before[:-1], after[:-1]
    unified = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="")
    return list(unified)[2:]


def prefix_lines(text: str, prefix: str) -> list[str]:
    """Return every line of a text with a prefix."""
    return [prefix + line for line in text.split("\n")] if text else []
