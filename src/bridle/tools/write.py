"""The tool `write`: a whole file, new or replaced, in one step.

What the model is told of it. How it is done is in writing.py, loaded with the first file.
"""

from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose


class Write:
    """Writes a file of the workspace."""

    name = "write"
    description = Prose("write")
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file; missing folders are made."},
            "content": {"type": "string", "description": "All of what the file shall hold."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if there is a folder, or a file that was not read."""
        from bridle.tools.threads import in_thread
        from bridle.tools.writing import known_before

        await in_thread(known_before, context, arguments["path"])

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Write it, in a thread."""
        from bridle.tools.threads import in_thread
        from bridle.tools.writing import write

        return await in_thread(write, context, arguments["path"], arguments["content"])
