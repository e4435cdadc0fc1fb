"""How the tool `shell` runs a command: by bash, in the session's folder, to its end or beside it.

Output is said as it comes, and bounded: the beginning and the end are given, all of it is kept in
the session's folder. The folder in which a command ends is where the next one starts. Whether a
command may run is the gate's to say, not this module's.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.protocols.tool import Access, ToolContext, ToolResult
from bridle.tools.ending import result, told
from bridle.tools.guarded_root import Run
from bridle.tools.jobs import Job
from bridle.tools.output import Kept, Output, kept_path
from bridle.tools.room import Room, Whereabouts, cwd_of, remember, room_of
from bridle.tools.shell import TIMEOUT
from bridle.tools.threads import in_thread
from bridle.workspace.process.command import Command
from bridle.workspace.sandbox import Sandbox, Start, supervised

PLACES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash")


class _Command(NamedTuple):
    """One command, about to run."""

    command: str
    cwd: str
    room: Room
    sandbox: Sandbox | None
    access: Access
    network: bool = False
    is_free: bool = False  # a person let it run outside of the sandbox
    is_alone: bool = True  # no command of another session of its family runs beside it

    @property
    def level(self) -> str:
        return self.sandbox.level if self.sandbox else "none"

    async def begin(self) -> Run:
        """Have guarded files found and noted."""
        return await self.room.begin(self.access, level=self.level, free=self.is_free)

    @property
    def confinement(self) -> dict[str, Any]:
        """What the record of the call says of how it was confined."""
        network = {"network": True} if self.network and self.level != "none" else {}
        return {"sandbox": self.level, **network}


async def run_command(
    arguments: dict[str, Any],
    context: ToolContext[Any],
    sandbox: Sandbox | None,
    longest: float,
) -> ToolResult:
    """Run it to its end or to the end of its time, or start it in the background."""
    room = room_of(context, sandbox)
    confined = sandbox if arguments.get("sandbox", True) else None
    command, cwd = arguments["command"], cwd_of(context)
    free = arguments.get("sandbox") is False
    run = _Command(
        command=command,
        cwd=cwd,
        room=room,
        sandbox=confined,
        access=context.access,
        network=context.network,
        is_free=free,
        is_alone=not context.origin,
    )
    kept = Kept(kept_path(context.folder, context.call_id), context.clean)
    if arguments.get("background", False):
        return await _begun(run, kept, arguments.get("timeout"))
    return await _to_the_end(run, kept, context, _seconds(arguments, context, longest))


async def _to_the_end(
    run: _Command, kept: Kept, context: ToolContext[Any], seconds: float
) -> ToolResult:
    output = Output(context.say, keep=kept.add)
    context.unfinished = lambda: output.text
    held = await run.begin()
    try:
        with Whereabouts() as report:
            ended = await _program(run, held, output, report).run(seconds, _environment(run))
            moved = remember(context, report.heard())
    except BaseException:
        kept.drop()
        run.room.end(held)
        raise
    output.take(b"", final=True)
    mended = held.changed.and_then(await in_thread(run.room.end, held))
    whole, notes = told(output.text, ended, run.level, seconds, network=run.network)
    notes.append(run.room.explain(held, output.text, ended.code != 0))
    notes += [moved, await _kept_note(output, kept, context.call_id)]
    data = {
        "exit_code": ended.code,
        "output": output.text,
        "timed_out": ended.timed_out,
        **run.confinement,
    }
    return result(ended.code == 0, (whole, notes), data, mended)


async def _kept_note(output: Output, kept: Kept, call_id: str) -> str:
    """A long output is kept, and the model is told how to look at it, and how much of it."""
    if output.left_out == 0:
        kept.drop()
        return ""
    if not await in_thread(kept.finish):
        return ""
    what = "only the beginning of the output" if kept.is_cut else "the whole output"
    return f"{what} is kept: shell_output with id {call_id!r} and a line number reads it"


async def _begun(run: _Command, kept: Kept, seconds: float | None) -> ToolResult:
    """In the background: its id, at once."""
    held = await run.begin()

    async def work(job: Job) -> None:
        try:
            with Whereabouts() as report:
                program = _program(run, held, job, report)
                job.ended = await program.run(seconds, _environment(run))
        except ToolError as error:
            job.trouble = error.message
        finally:
            job.take(b"", final=True)
            kept.finish()
            job.mended = run.room.end(held)

    def explain(output: str, failed: bool) -> str:
        return run.room.explain(held, output, failed)

    try:
        job = run.room.jobs.begin(
            lambda name: Job(name, kept, run.level, seconds, run.network, explain), work
        )
    except BaseException:
        run.room.end(held)
        raise
    note = f"{job.name} runs in the background; shell_output reads it, shell_stop ends it"
    return result(True, ("", [note]), {"job": job.name, **run.confinement}, held.changed)


def _program(run: _Command, held: Run, output: Output | Job, report: Whereabouts) -> Command:
    words = [find_bash(), *report.words(run.command)]

    def start(argv: Sequence[str], lifeline: int) -> Start:
        if run.sandbox is None:
            return supervised(argv, lifeline)
        return run.sandbox.start(
            argv,
            run.cwd,
            lifeline,
            network=run.network,
            unreadable=held.unreadable,
            unwritable=held.unwritable,
            background=isinstance(output, Job) or not run.is_alone,
        )

    return Command(words, run.cwd, output.take, starter=start, handles=(report.handle,))


def find_bash(places: Sequence[str] = PLACES) -> str:
    """bash, and no other shell: it is what commands are judged for. Raise `ToolError`."""
    for place in places:
        if Path(place).exists():
            return place
    raise ToolError(
        f"Not run: commands are run by bash, and it is in none of {', '.join(places)}. "
        "Another shell would read some of them differently from how they were judged."
    )


def _environment(run: _Command) -> dict[str, str]:
    return run.room.environment(run.level != "none")


def _seconds(arguments: dict[str, Any], context: ToolContext[Any], longest: float) -> float:
    asked = min(float(arguments.get("timeout", TIMEOUT)), longest)
    if context.deadline is None:
        return asked
    return max(min(asked, context.deadline - asyncio.get_running_loop().time()), 0.0)
