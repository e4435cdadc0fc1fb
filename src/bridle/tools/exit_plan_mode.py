"""The tool `exit_plan_mode`: shows the plan to the person; if they agree, the work begins.

The gate asks; this runs only if the person has agreed.
"""

from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.events import ModeChanged
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult


class ExitPlanMode:
    """Leaves plan mode with a plan that the person has agreed to."""

    name = "exit_plan_mode"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
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
        """Leave the mode, and return the changes that the person wants."""
        if context.mode != "plan":
            raise ToolError("The session is not in plan mode: begin with the work itself.")
        context.emit(ModeChanged("ask", by="plan", reason="the plan was agreed"))
        changes = context.word.strip()
        text = "The plan was agreed; go ahead."
        if changes:
            text = f"The plan was agreed; go ahead, with these changes: {changes}"
        return ToolResult.success({"plan": arguments["plan"], "changes": changes}, text=text)
