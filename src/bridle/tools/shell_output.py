"""The tool `shell_output`: what a job in the background wrote, or lines of a kept output."""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.ending import result, told
from bridle.tools.jobs import Job, Jobs
from bridle.tools.output import kept_path, lines_of
from bridle.tools.prose import Prose
from bridle.tools.room import jobs_of
from bridle.tools.threads import in_thread
from bridle.workspace.watched import Mended

LONGEST = 600.0  # seconds of waiting
LINES = 500


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
        jobs = jobs_of(context)
        job = jobs.find(arguments["id"])
        if job is None or "line" in arguments:
            path = job.kept.path if job is not None else kept_path(context.folder, arguments["id"])
            return await _lines(path, arguments, jobs)
        await job.wait(float(arguments.get("wait", 0)))
        return look(job)


def look(job: Job) -> ToolResult:
    """What a job has written since somebody looked, and how it stands."""
    output = job.read()
    mended, job.mended = job.mended, Mended()
    said = told(output, job.ended, job.level, job.seconds) if job.ended else (output, [_state(job)])
    ok = job.is_running or (job.ended is not None and job.ended.code == 0)
    data = {
        "job": job.name,
        "output": output,
        "running": job.is_running,
        "exit_code": job.ended.code if job.ended else None,
        "sandbox": job.level,
    }
    return result(ok, said, data, mended)


def _state(job: Job) -> str:
    if job.is_running:
        return f"{job.name} is still running"
    return job.trouble or f"{job.name} was stopped"


async def _lines(path: str, arguments: dict[str, Any], jobs: Jobs) -> ToolResult:
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
