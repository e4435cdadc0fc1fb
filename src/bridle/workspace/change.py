"""What a call would change in files, line by line: what goes, what comes, what stands around. Pure.

A change is worked out on what the file holds now, where that is known and the change fits it;
otherwise it is shown as it was asked for. Whatever would be written is among the lines.
"""

import difflib
from typing import Any, TypeGuard

_SHOWN = ("content", "old", "new", "edits", "patch")  # arguments that the lines tell
_EDIT = frozenset(("old", "new", "all"))
_SAME = "(the same as it is now)"
_UNFIT = "(this is not what the file holds now)"


def told(arguments: dict[str, Any], before: str | None) -> tuple[list[str], dict[str, Any]] | None:
    """The lines, and the arguments that they do not tell; None for what changes no file."""
    lines = _lines(arguments, before)
    if lines is None:
        return None
    left = {name: value for name, value in arguments.items() if name not in _SHOWN}
    if isinstance(path := left.get("path"), str):
        del left["path"]
        lines = [path, *lines]
    return lines, left


def result(arguments: dict[str, Any], before: str) -> str | None:
    """What the file would hold; None for what changes no file, or does not fit this one."""
    given = {name for name in _SHOWN if name in arguments}
    if isinstance(content := arguments.get("content"), str) and given == {"content"}:
        return content
    edits = _edits(arguments, given)
    return _after(edits, before) if edits is not None else None


def _lines(arguments: dict[str, Any], before: str | None) -> list[str] | None:
    given = {name for name in _SHOWN if name in arguments}
    if isinstance(content := arguments.get("content"), str) and given == {"content"}:
        return _written(content, before)
    if isinstance(patch := arguments.get("patch"), str) and given == {"patch"}:
        return patch.removesuffix("\n").split("\n")
    edits = _edits(arguments, given)
    return _edited(edits, before) if edits is not None else None


def _edits(arguments: dict[str, Any], given: set[str]) -> list[dict[str, Any]] | None:
    one = {name: arguments[name] for name in _EDIT if name in arguments}
    edits = arguments.get("edits") if given == {"edits"} else [one]
    return edits if given in ({"edits"}, {"old", "new"}) and _are_edits(edits) else None


def _after(edits: list[dict[str, Any]], before: str | None) -> str | None:
    after = before
    for one in edits:
        after = _replaced(after, one) if after is not None else None
    return after


def _are_edits(edits: object) -> TypeGuard[list[dict[str, Any]]]:
    """Can all of it be told? What cannot is shown as it came."""
    if not isinstance(edits, list) or not edits:
        return False
    return all(
        isinstance(one, dict)
        and isinstance(one.get("old"), str)
        and isinstance(one.get("new"), str)
        and _EDIT.issuperset(one)
        for one in edits
    )


def _written(content: str, before: str | None) -> list[str]:
    """A whole file."""
    if before is not None:
        return _compared(before, content) or [_SAME]
    whole = content.endswith("\n")
    end = [] if whole or not content else ["(the last line has no end)"]
    return [*marked(content[:-1] if whole else content, "+ "), *end]


def _edited(edits: list[dict[str, Any]], before: str | None) -> list[str]:
    """Pieces of a file."""
    after = _after(edits, before)
    if before is not None and after is not None:
        return _compared(before, after) or [_SAME]
    lines = [] if before is None else [_UNFIT]
    for number, one in enumerate(edits, 1):
        which = "everywhere" if one.get("all") else ""
        count = f"{number} of {len(edits)}" if len(edits) > 1 else ""
        if said := " ".join(filter(None, (count, which))):
            lines.append(f"@@ {said} @@")
        lines += _piece(one["old"], one["new"])
    return lines


def _replaced(text: str, edit: dict[str, Any]) -> str | None:
    """The text with that change; None where it does not fit, or is not known to."""
    old, count = edit["old"], text.count(edit["old"]) if edit["old"] else 0
    if count == 0 or (count > 1 and edit.get("all") is not True):
        return None
    return text.replace(old, edit["new"])


def _piece(old: str, new: str) -> list[str]:
    if old.endswith("\n") and new.endswith("\n"):  # else the difference has to be seen
        old, new = old[:-1], new[:-1]
    return [*marked(old, "- "), *marked(new, "+ ")]


def _compared(before: str, after: str) -> list[str]:
    if before.endswith("\n") and after.endswith("\n"):  # else the difference has to be seen
        before, after = before[:-1], after[:-1]
    unified = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="")
    return list(unified)[2:]


def marked(text: str, mark: str) -> list[str]:
    """Every line of it with the mark before it."""
    return [mark + line for line in text.split("\n")] if text else []
