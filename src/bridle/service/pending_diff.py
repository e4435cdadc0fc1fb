"""What a call that waits for an answer would change in a file, line by line. Reads that one file.

Where the file cannot be read, the change is shown as the call gives it.
"""

import os
from difflib import unified_diff

from bridle.errors import AgentError
from bridle.messages import ToolCall
from bridle.workspace.change import change_lines, changed_content
from bridle.workspace.fs import READ
from bridle.workspace.text import one_line
from bridle.workspace.workspace import Workspace

_LARGEST = 1 << 20  # bytes of a file that are compared


def diff_of(call: ToolCall, workspace: str) -> str:
    """A unified diff, where the call fits the file; nothing for a call that changes no file."""
    path = call.arguments.get("path")
    if not isinstance(path, str):
        found = change_lines(call.arguments, None)
        return "\n".join(found[0]) if found is not None else ""
    before = _held(path, workspace)
    after = changed_content(call.arguments, before) if before is not None else None
    if before is None or after is None:
        found = change_lines(call.arguments, before)
        return "\n".join(found[0]) if found is not None else ""
    name = one_line(path, 500)
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)


def _held(path: str, workspace: str) -> str | None:
    """What the file holds now, if it is text of an ordinary size; nothing where there is none."""
    try:
        found = Workspace(workspace).resolve_path(path)
        if found is None:
            return None
        handle = os.open(found, READ)
    except FileNotFoundError:
        return ""
    except (AgentError, OSError, ValueError):
        return None
    try:
        data = os.read(handle, _LARGEST + 1)
        return data.decode() if len(data) <= _LARGEST else None
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(handle)
