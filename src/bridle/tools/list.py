"""The tool `list`: a folder as a tree, so deep and no deeper.

What the model is told of it. How it is done is in listing.py, loaded with the first look.
"""

from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

DEPTH = 2


class List:
    """Shows what is in a folder of the workspace."""

    name = "list"
    description = Prose("list")
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder. Default: the workspace."},
            "depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "description": "How many levels. Default: 2.",
            },
            "ignored": {"type": "boolean", "description": "Also what .gitignore names."},
        },
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Look, in a thread."""
        from bridle.tools.listing import Listing
        from bridle.tools.threads import in_thread

        depth, ignored = int(arguments.get("depth", DEPTH)), arguments.get("ignored", False)
        listing = Listing(context.workspace, everything=ignored)
        return await in_thread(listing.result, arguments.get("path", "."), depth)
