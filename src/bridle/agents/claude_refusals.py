"""What no call of Claude Code may be, whoever would allow it: what is judged must be what is done.

The program trims a path before it uses it, and a helper of its own may work in another folder than
the one that paths and commands are judged in. Such a call is refused with words that say how to ask
instead. Pure but for where a folder's name leads.
"""

import os
from typing import Any

from bridle.agents.claude_tools import Roots, paths_of

_TASKS = ("Task", "Agent")
_OF_A_TASK = ("description", "prompt", "subagent_type", "model")
_MARK = "\ufeff"  # no blank for Python, one for the program
_BLANK = "not run: `{}` begins or ends with a blank. Give the path without it, or use a command."
_ELSEWHERE = "not run: this call would work in {}, and calls are judged in {}. Work there."
_UNHEARD = "not run: a task cannot have `{}` here. Leave it out."


def refusal(name: str, theirs: dict[str, Any], cwd: Any, roots: Roots) -> str:
    """Why a call cannot be judged as it stands; empty where it can. `cwd` is where it would run."""
    if not _is_root(cwd, roots):
        return _ELSEWHERE.format(cwd, roots[0])
    for field, value in paths_of(name, theirs).items():
        if isinstance(value, str) and _has_blanks(value):
            return _BLANK.format(field)
    if name in _TASKS:
        for field, value in theirs.items():
            if value and field not in _OF_A_TASK:
                return _UNHEARD.format(field)
    return ""


def _is_root(cwd: Any, roots: Roots) -> bool:
    if not isinstance(cwd, str):
        return False
    return cwd in roots or os.path.realpath(cwd) in map(os.path.realpath, roots)


def _has_blanks(path: str) -> bool:
    """At an end of it, or of what it comes down to: that is trimmed by the next who reads it."""
    return any(_trimmed(each) != each for each in (path, os.path.normpath(path)))


def _trimmed(text: str) -> str:
    """Without what the program takes for blanks, and what Python does."""
    while (less := text.strip().strip(_MARK)) != text:
        text = less
    return text
