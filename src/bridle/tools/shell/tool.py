"""The tools `shell`, `shell_output` and `shell_stop`.

A command is run by bash, in the session's current folder and in the sandbox if there is one, to its
end or in the background. Its output is shown as it comes and is limited: the model gets the
beginning and the end, and all of it is kept in the session's folder. The folder in which a command
ends is where the next one starts. Whether a command may run is decided by the gate, not here.
"""

import asyncio
import re
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Access, ToolContext, ToolResult
from bridle.tools.guarded_root import Run
from bridle.tools.output import (
    BoundedOutput,
    OutputFile,
    finish_output,
    output_path,
    read_lines,
)
from bridle.tools.shell.jobs import Job, jobs_of
from bridle.tools.shell.state import (
    FolderReport,
    ShellState,
    current_folder,
    remember_folder,
    state_of,
)
from bridle.tools.thread_pool import in_thread
from bridle.workspace.process.command import Command, ExitStatus
from bridle.workspace.protected_files import Restoration
from bridle.workspace.sandbox import Sandbox, Start, supervised_start
from bridle.workspace.text import one_line

_HERE = Path(__file__).parent  # with the descriptions that the model reads
LONGEST = 600.0  # seconds that a command may take, if the engine has no other limit for a call
_TIMEOUT = 120.0  # seconds that a command may take, if the model names no other number
_BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash")
_MAX_WAIT = 600.0  # seconds to wait for a job
_MAX_LINES = 500  # of a kept output
_SPARE = 1.0  # seconds before the end of a call in which the output of a job is read
_MAX_NAMED = 5  # protected files


class Shell:
    """Runs a command. Without a sandbox it is not confined, but its processes are ended, too."""

    name = "shell"
    description = (_HERE / "shell.md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(risk="high", runs="command")

    def __init__(self, sandbox: Sandbox | None = None, longest: float = LONGEST) -> None:
        """`longest`: the engine's limit for a call in seconds; a command has no other."""
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
                    f"at most {longest:g}. Default: {min(_TIMEOUT, longest):g}.",
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
        """Run the command until it ends or is out of time, or start it in the background."""
        is_free = not arguments.get("sandbox", True)
        state = state_of(context, self._sandbox)
        command = _Command(
            line=arguments["command"],
            cwd=current_folder(context),
            state=state,
            sandbox=None if is_free else self._sandbox,
            access=context.access,
            network=context.network,
            is_free=is_free,
            is_alone=not context.origin,
        )
        file = OutputFile(output_path(context.folder, context.call_id), context.redact)
        if arguments.get("background", False):
            return await _start_job(command, file, arguments.get("timeout"))
        seconds = min(float(arguments.get("timeout", _TIMEOUT)), self.longest)
        if context.deadline is not None:
            left = context.deadline - asyncio.get_running_loop().time()
            seconds = max(min(seconds, left), 0.0)
        return await _run(command, file, context, seconds)


class ShellOutput:
    """Reads the output of a job, or lines of a kept output."""

    name = "shell_output"
    description = (_HERE / "shell_output.md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "description": "The job, or the call."},
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": _MAX_WAIT,
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
                "maximum": _MAX_LINES,
                "description": f"How many lines. Default: {_MAX_LINES}.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Return the new output of a job, or the lines. Raise `ToolError` if there are none."""
        jobs, name = jobs_of(context), arguments["id"]
        job = jobs.get(name)
        if job is not None and "line" not in arguments:
            seconds = float(arguments.get("wait", 0))
            if context.deadline is not None:  # end before the call does, or nothing would be read
                left = context.deadline - asyncio.get_running_loop().time() - _SPARE
                seconds = max(0.0, min(seconds, left))
            await job.wait(seconds)
            return _job_result(job)
        path = job.file.path if job is not None else output_path(context.folder, name)
        first, count = arguments.get("line", 1), arguments.get("lines", _MAX_LINES)
        lines = await in_thread(read_lines, path, first, count + 1) if path else []
        if not lines:
            raise ToolError(
                f"Nothing is kept under the id {name!r} from line {first} on. Jobs: {jobs.names}. "
                "The output of a command is kept only if it was too long to be returned whole."
            )
        numbered = [f"{first + index:>6}\t{line}" for index, line in enumerate(lines[:count])]
        if len(lines) > count:
            numbered.append(f"[there is more from line {first + count} on]")
        return ToolResult(True, "\n".join(numbered))


class ShellStop:
    """Stops a job of `shell`. It changes nothing else, so it needs no approval."""

    name = "shell_stop"
    description = (_HERE / "shell_stop.md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"id": {"type": "string", "minLength": 1, "description": "The job."}},
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Stop it, and return its last output. Raise `ToolError` if there is no such job."""
        jobs = jobs_of(context)
        job = jobs.get(arguments["id"])
        if job is None:
            raise ToolError(f"There is no job {arguments['id']!r}. Jobs: {jobs.names}.")
        was_running = job.is_running
        await job.stop()
        result = _job_result(job)
        return ToolResult(was_running or result.ok, result.text, result.data, stops=result.stops)


# --- running a command ---


class _Command(NamedTuple):
    """A command that is about to run."""

    line: str
    cwd: str
    state: ShellState
    sandbox: Sandbox | None
    access: Access
    network: bool
    is_free: bool  # a person allowed it to run outside of the sandbox
    is_alone: bool  # no command of a parent or sibling session runs at the same time

    @property
    def level(self) -> str:
        return self.sandbox.level if self.sandbox else "none"

    @property
    def confinement(self) -> dict[str, Any]:
        """What the call's record says about how it was confined."""
        network = {"network": True} if self.network and self.level != "none" else {}
        return {"sandbox": self.level, **network}

    async def begin(self) -> Run:
        return await self.state.begin(self.access, level=self.level, free=self.is_free)

    async def run(
        self, run: Run, output: BoundedOutput | Job, report: FolderReport, seconds: float | None
    ) -> ExitStatus:
        """Run it with bash until it ends or is out of time. Raise `ToolError`."""

        def start(argv: Sequence[str], lifeline: int) -> Start:
            if self.sandbox is None:
                return supervised_start(argv, lifeline)
            return self.sandbox.start(
                argv,
                self.cwd,
                lifeline,
                network=self.network,
                unreadable=run.unreadable,
                unwritable=run.unwritable,
                background=isinstance(output, Job) or not self.is_alone,
            )

        command = Command(
            [find_bash(), *report.bash_arguments(self.line)],
            self.cwd,
            output.add_bytes,
            starter=start,
            handles=(report.handle,),
        )
        environment = self.state.environment(is_confined=self.level != "none")
        return await command.run(seconds, environment)


def find_bash(places: Sequence[str] = _BASH) -> str:
    """Return the path of bash; commands are judged for no other shell. Raise `ToolError`."""
    for place in places:
        if Path(place).exists():
            return place
    raise ToolError(
        f"Not run: commands are run by bash, and it is in none of {', '.join(places)}. "
        "Another shell would read some of them differently from how they were judged."
    )


async def _run(
    command: _Command, file: OutputFile, context: ToolContext[Any], seconds: float
) -> ToolResult:
    """Run a command to its end, and return its output."""
    output = BoundedOutput(context.say, keep=file.add)
    context.unfinished = lambda: output.text
    run = await command.begin()
    try:
        with FolderReport() as report:
            ended = await command.run(run, output, report, seconds)
            folder_note = remember_folder(context, report.folder())
    except BaseException:
        file.discard()
        command.state.end(run)
        raise
    output.add_bytes(b"", final=True)
    restored = run.changed.plus(await in_thread(command.state.end, run))
    notes = _ending_notes(output.text, ended, command.level, seconds, network=command.network)
    notes.append(command.state.explain(run, output.text, ended.code != 0))
    notes += [folder_note, await finish_output(output, file, context.call_id)]
    data = {
        "exit_code": ended.code,
        "output": output.text,
        "timed_out": ended.timed_out,
        **command.confinement,
    }
    return _result(ended.code == 0, output.text or "(no output)\n", notes, data, restored)


async def _start_job(command: _Command, file: OutputFile, seconds: float | None) -> ToolResult:
    """Start a command in the background, and return its id."""
    state = command.state
    run = await command.begin()

    async def work(job: Job) -> None:
        try:
            with FolderReport() as report:
                job.ended = await command.run(run, job, report, seconds)
        except ToolError as error:
            job.error = error.message
        finally:
            job.add_bytes(b"", final=True)
            file.finish()
            job.restored = state.end(run)

    make = partial(
        Job,
        file=file,
        level=command.level,
        seconds=seconds,
        network=command.network,
        explain=partial(state.explain, run),
    )
    try:
        job = state.jobs.start(make, work)
    except BaseException:
        state.end(run)
        raise
    note = f"{job.name} runs in the background; shell_output reads it, shell_stop ends it"
    return _result(True, "", [note], {"job": job.name, **command.confinement}, run.changed)


# --- results ---


def _job_result(job: Job) -> ToolResult:
    """Return what a job has written since the last time, and its state."""
    output = job.read()
    restored, job.restored = job.restored, Restoration()
    shown = output
    if job.ended is not None:
        shown = output or "(no output)\n"
        notes = _ending_notes(output, job.ended, job.level, job.seconds, network=job.network)
    elif job.is_running:
        notes = [f"{job.name} is still running"]
    else:
        notes = [job.error or f"{job.name} was stopped"]
    notes.append(job.explain(output, job.ended is not None and job.ended.code != 0))
    data = {
        "job": job.name,
        "output": output,
        "running": job.is_running,
        "exit_code": job.ended.code if job.ended else None,
        "sandbox": job.level,
    }
    ok = job.is_running or (job.ended is not None and job.ended.code == 0)
    return _result(ok, shown, notes, data, restored)


def _result(
    ok: bool, output: str, notes: list[str], data: dict[str, Any], restored: Restoration
) -> ToolResult:
    """Return the output with the notes. If protected files were changed, the turn has to end."""
    stops = ""
    if restored:
        names = _join((*restored.lost, *restored.restored), 200)
        stops = f"a command changed protected files: {names}"
        outcome = "could not all be restored" if restored.lost else "have been restored"
        notes = [*notes, f"protected files were changed and {outcome}: {names}"]
    if restored.undone:
        undone = (
            "only a person may allow changes to files that run by themselves, so the command's "
            f"changes were undone: {_join(restored.undone, 400)}. "
            "Use write or edit; a person is asked"
        )
        notes = [*notes, undone]
    separator = "" if output.endswith("\n") or not output else "\n"
    text = output + separator + "\n".join(f"[{note}]" for note in notes if note)
    return ToolResult(ok and not restored, text, data, stops=stops)


def _join(names: Sequence[str], width: int) -> str:
    shown = [one_line(name, width) for name in names[:_MAX_NAMED]]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(shown) + more


_REFUSED_BY_SANDBOX = re.compile(
    r"permission denied|operation not permitted|read-only file ?system|network is unreachable|"
    r"could not resolve|name resolution|EACCES|EPERM|EROFS|ENETUNREACH|EAI_AGAIN|"
    r"(?:failed|unable|couldn't|could not|cannot) (?:to )?connect|"
    r"address family not supported|device or resource busy",
    re.IGNORECASE,
)
_SANDBOX_LIMITS = {
    "bubblewrap": "only the workspace and a temporary folder can be written, "
    "and the home folder is hidden",
    "landlock": "only the workspace and $TMPDIR can be written, and the home folder cannot be read",
}
_NO_NETWORK = {"bubblewrap": "no network, ", "landlock": "no network and no sockets, "}


def _ending_notes(
    output: str, ended: ExitStatus, level: str, seconds: float | None, *, network: bool
) -> list[str]:
    """Say how a command ended, and what the sandbox forbids if that may be why it failed."""
    if ended.timed_out:
        ending = (
            f"timed out after {round(seconds or 0, 1):g} s; the command and its children were ended"
        )
    elif ended.code is not None and ended.code < 0:
        try:
            name = signal.Signals(-ended.code).name
        except ValueError:
            name = str(-ended.code)
        ending = f"ended by signal {name}"
    else:
        ending = f"exit code {ended.code}"
    if ended.left_behind:
        ending += "; a process that it started still runs"
    notes = [ending]
    if ended.code != 0 and level in _SANDBOX_LIMITS and _REFUSED_BY_SANDBOX.search(output):
        limits = ("" if network else _NO_NETWORK[level]) + _SANDBOX_LIMITS[level]
        notes.append(
            f"the sandbox ({level}) is active: {limits}. If it was in the way, "
            "try again with sandbox=false; a person is asked"
        )
    return notes
