"""Claude Code's searches, made by our own tools: what is protected is left out of what they find.

The program's own `Grep` reads every file of a folder, also one that holds credentials. A hook can
neither make a call nor answer it; but it can have the program search where nothing is, and put in
the place of that result what ours has found. Where that fails, nothing was found. Pure.
"""

from typing import Any

from bridle.agents.claude_tools import Mapped

Json = dict[str, Any]
SEARCHES = ("Grep", "Glob")
_NOWHERE = "/dev/null"
_NEVER = "no line fits this"
_UNHEARD = ("-A", "-B", "-C", "context", "type", "offset", "multiline")  # what ours does not know


def is_for_ours(name: str, ours: Mapped) -> bool:
    """Can our tool make this search? One that looks outside the workspace is the program's own."""
    path = str(ours.arguments.get("path", "."))
    outside = path.startswith(("/", "~")) or ".." in path.split("/")
    return name in SEARCHES and not outside and not ours.rest.get("multiline")


def harmless(name: str, theirs: Json) -> Json:
    """The same call, of which nothing can come."""
    if name == "Glob":
        return {"pattern": _NEVER, "path": theirs.get("path") or "."}
    return {"pattern": _NEVER, "path": _NOWHERE, "output_mode": "content"}


def answer_of(name: str, theirs: Json, text: str) -> Json:
    """What our tool found, in the shape in which the program's own answers."""
    if name == "Glob":
        names = [line for line in text.splitlines() if line.strip()]
        return {"filenames": names, "numFiles": len(names), "durationMs": 0, "truncated": False}
    left = [one for one in _UNHEARD if theirs.get(one)]
    if left:
        text += f"\n[{', '.join(left)} had no effect: read the files for more]"
    lines = text.count("\n") + 1
    shown = {"mode": "content", "content": text, "numLines": lines}
    return {**shown, "numFiles": 0, "filenames": []}
