"""The tool `shell`: a command in a fixed shell, in the workspace, in the sandbox that there is.

What the model is told of it. How it runs is in running.py, loaded with the first command. Whether a
command may run is the gate's to say, not this module's.
"""

from typing import TYPE_CHECKING, Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

if TYPE_CHECKING:
    from bridle.workspace.sandbox import Sandbox

TIMEOUT = 120.0  # seconds that a command has, if the model names none
LONGEST = 600.0  # seconds that it may be given, if the engine has no other limit for a call


class Shell:
    """Runs a command. Without a sandbox it runs unconfined; it is ended all the same."""

    name = "shell"
    description = Prose("shell")
    policy = ToolPolicy(risk="high", runs="command")

    def __init__(self, sandbox: "Sandbox | None" = None, longest: float = LONGEST) -> None:
        """`longest`: the seconds that the engine gives one call, the only limit of a command."""
        self._sandbox = sandbox
        self.longest = longest
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "description": "The command line."},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": max(LONGEST, longest),
                    "description": "Seconds (not milliseconds) after which the command is stopped; "
                    f"at most {longest:g}. Default: {min(TIMEOUT, longest):g}.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Start it, return its id, and let it run. Default: false.",
                },
                "sandbox": {
                    "type": "boolean",
                    "description": "false only if the sandbox prevented this very "
                    "command from working; a person is always asked. Default: true.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Run it to its end or to the end of its time, or start it in the background."""
        from bridle.tools.running import run_command

        return await run_command(arguments, context, self._sandbox, self.longest)
