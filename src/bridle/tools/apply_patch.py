"""The tool `apply_patch`: a unified diff over several files, all of it or nothing.

What the model is told of it. How it is done is in patching.py, loaded with the first patch.
"""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

LONGEST = 1_000_000  # characters of a patch


class ApplyPatch:
    """Changes files of the workspace as a unified diff says."""

    name = "apply_patch"
    description = Prose("apply_patch")
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "patch": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST,
                "description": "A unified diff; paths count from the workspace.",
            }
        },
        "required": ["patch"],
        "additionalProperties": False,
    }

    def touched(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """Every path that the patch names. Raise `ToolError` where that cannot be said."""
        patch = arguments.get("patch")
        if not isinstance(patch, str) or len(patch) > LONGEST:
            raise ToolError(f"`patch` has to be a text of at most {LONGEST:,} characters.")
        from bridle.tools.patch import parse_patch

        paths = [path for file in parse_patch(patch) for path in file.paths]
        return tuple(dict.fromkeys(paths))

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the patch does not fit, or a file of it was not read."""
        from bridle.tools.patch import parse_patch
        from bridle.tools.patching import outcomes_of
        from bridle.tools.threads import in_thread

        await in_thread(outcomes_of, context, parse_patch(arguments["patch"]))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Work it out and write it, in a thread."""
        from bridle.tools.patch import parse_patch
        from bridle.tools.patching import apply_all
        from bridle.tools.threads import in_thread

        return await in_thread(apply_all, context, parse_patch(arguments["patch"]))
