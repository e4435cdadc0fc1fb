"""The tool `exit_plan_mode`: the plan is shown to the person, and with their word the work begins.

The gate does the asking; this runs only when the person has said go.
"""

from typing import Any

from bridle.errors import ToolError
from bridle.events import ModeChanged
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose


class ExitPlanMode:
    """Brings the plan before the person."""

    name = "exit_plan_mode"
    description = Prose("exit_plan_mode")
    policy = ToolPolicy(read_only=True, risk="low", asks=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "plan": {
                "type": "string",
                "minLength": 1,
                "maxLength": 50_000,
                "description": "The plan, in Markdown.",
            }
        },
        "required": ["plan"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Leave the mode, and say with which changes."""
        if context.mode != "plan":
            raise ToolError("The session is not in plan mode: go ahead with the work itself.")
        context.emit(ModeChanged("ask", by="plan", reason="the plan was agreed"))
        word = context.word.strip()
        said = "The plan was agreed; go ahead."
        if word:
            said = f"The plan was agreed; go ahead, with these changes: {word}"
        return ToolResult.success({"plan": arguments["plan"], "changes": word}, text=said)
