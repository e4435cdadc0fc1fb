"""The tool `shell_output`: what a job in the background wrote, or lines of a kept output."""

import asyncio
from typing import TYPE_CHECKING, Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

if TYPE_CHECKING:
    from bridle.tools.jobs import Jobs

LONGEST = 600.0  # seconds of waiting
LINES = 500
_SPARE = 1.0  # seconds before the end of the call in which the output is read


class ShellOutput:
    """Reads what commands wrote."""

    name = "shell_output"
    description = Prose("shell_output")
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "description": "The job, or the call."},
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": LONGEST,
                "description": "Seconds to wait for the end of the job. Default: 0.",
            },
            "line": {
                "type": "integer",
                "minimum": 1,
                "description": "Read the kept output from this line on.",
            },
            "lines": {
                "type": "integer",
                "minimum": 1,
                "maximum": LINES,
                "description": f"How many lines. Default: {LINES}.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Give what is new, or the lines that are wanted."""
        from bridle.tools.ending import look
        from bridle.tools.output import kept_path
        from bridle.tools.room import jobs_of

        jobs = jobs_of(context)
        job = jobs.find(arguments["id"])
        if job is None or "line" in arguments:
            path = job.kept.path if job is not None else kept_path(context.folder, arguments["id"])
            return await _lines(path, arguments, jobs)
        await job.wait(_patience(arguments, context))
        return look(job)


def _patience(arguments: dict[str, Any], context: ToolContext[Any]) -> float:
    """How long to wait: not up to the call's own end, or nothing would be read."""
    seconds = float(arguments.get("wait", 0))
    if context.deadline is None:
        return seconds
    left = context.deadline - asyncio.get_running_loop().time() - _SPARE
    return max(0.0, min(seconds, left))


async def _lines(path: str, arguments: dict[str, Any], jobs: "Jobs") -> ToolResult:
    from bridle.tools.output import lines_of
    from bridle.tools.threads import in_thread

    first, count = arguments.get("line", 1), arguments.get("lines", LINES)
    found = await in_thread(lines_of, path, first, count + 1) if path else []
    if not found:
        known = ", ".join(jobs.names) or "there are none"
        raise ToolError(
            f"Nothing is kept under the id {arguments['id']!r} from line {first} on. "
            f"Jobs: {known}. "
            "The output of a command is only kept when it was too long to be given whole."
        )
    shown = "\n".join(f"{first + at:>6}\t{line}" for at, line in enumerate(found[:count]))
    more = f"\n[there is more from line {first + count} on]" if len(found) > count else ""
    return ToolResult(True, shown + more)
