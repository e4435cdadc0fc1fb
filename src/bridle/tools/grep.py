"""The tool `grep`: lines that fit a regular expression. ripgrep where there is one, else Python.

What the model is told of it. How it searches is in searching.py, loaded with the first search.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose


class Grep:
    """Finds lines in the files of the workspace."""

    name = "grep"
    description = Prose("grep")
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression."},
            "path": {"type": "string", "description": "A file or folder. Default: all."},
            "glob": {"type": "string", "description": "Only files that fit, such as *.py."},
            "ignore_case": {"type": "boolean", "description": "Default: false."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 2000},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }

    def __init__(self, *, ripgrep: bool = True) -> None:
        self._ripgrep = ripgrep

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Search, and stop at the limit."""
        from bridle.tools.searching import search

        return await search(
            arguments, context, find_ripgrep(_roots(context)) if self._ripgrep else None
        )


def _roots(context: ToolContext[Any]) -> tuple[str, ...]:
    return tuple(getattr(context.workspace, "roots", (context.workspace.root,)))


@cache
def find_ripgrep(roots: tuple[str, ...] = ()) -> str | None:
    """ripgrep on the PATH, or beside the interpreter, where its wheel puts it.

    Never one that lies in a root: a search runs unasked, and who writes there would say what runs.
    """
    from bridle.workspace.lookup import find_program

    return find_program("rg", roots, (str(Path(sys.executable).with_name("rg")),))
