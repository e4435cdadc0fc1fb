"""The tool `edit`: exact pieces of a file replaced by others, all of them or none.

What the model is told of it. How it is done is in editing.py, loaded with the first edit.
"""

from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

_MOST = 100  # changes at once

_OLD = {"type": "string", "description": "The text to replace, exactly as it stands."}
_NEW = {"type": "string", "description": "What shall stand there instead."}
_ALL = {"type": "boolean", "description": "Replace every place. Default: false."}


class Edit:
    """Changes parts of a file of the workspace."""

    name = "edit"
    description = Prose("edit")
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "old": _OLD,
            "new": _NEW,
            "all": _ALL,
            "edits": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MOST,
                "description": "Several changes instead of one, in order; all of them, or none.",
                "items": {
                    "type": "object",
                    "properties": {"old": _OLD, "new": _NEW, "all": _ALL},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the change does not fit the file, or the file was not read."""
        from bridle.tools.editing import changed_text, changes_of
        from bridle.tools.threads import in_thread

        await in_thread(changed_text, context, arguments["path"], changes_of(arguments))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Change it, in a thread."""
        from bridle.tools.editing import changes_of, edit
        from bridle.tools.threads import in_thread

        return await in_thread(edit, context, arguments["path"], changes_of(arguments))
