"""The tool `read`: a file's lines with their numbers, a folder's names, a small picture.

What the model is told of it. How it is done is in reading.py, loaded with the first file.
"""

from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

LINES = 2000


class Read:
    """Reads a file of the workspace."""

    name = "read"
    description = Prose("read")
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, or a folder."},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line. From 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Read it, in a thread: the file may be large or far away."""
        from bridle.tools.reading import read
        from bridle.tools.threads import in_thread
        from bridle.tools.window import Window

        window = Window(int(arguments.get("offset", 1)), int(arguments.get("limit", LINES)))
        return await in_thread(read, context, arguments["path"], window)
