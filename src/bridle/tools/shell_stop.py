"""The tool `shell_stop`: ends a job in the background, with everything that it started."""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose


class ShellStop:
    """Stops what `shell` started. It changes nothing but that, so nobody has to be asked."""

    name = "shell_stop"
    description = Prose("shell_stop")
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"id": {"type": "string", "minLength": 1, "description": "The job."}},
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """End it, and give what it wrote last."""
        from bridle.tools.ending import look
        from bridle.tools.room import jobs_of

        jobs = jobs_of(context)
        job = jobs.find(arguments["id"])
        if job is None:
            known = ", ".join(jobs.names) or "there are none"
            raise ToolError(f"There is no job {arguments['id']!r}. Jobs: {known}.")
        was_running = job.is_running
        await job.stop()
        found = look(job)
        return ToolResult(was_running or found.ok, found.text, found.data, stops=found.stops)
