"""Commands in the background: start, read, wait for and stop them. None outlives its session."""

import asyncio
import codecs
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from bridle.errors import ToolError
from bridle.protocols.tool import ToolContext
from bridle.tools.output import BoundedOutput, OutputFile
from bridle.workspace.process.command import ExitStatus
from bridle.workspace.protected_files import Restoration

MAX_RUNNING = 8
_MAX_ENDED = 64  # that can still be read
_KEY = "shell jobs"


class Job:
    """One command in the background.

    `explain` says why files could not be read or changed, given the output and whether it failed.
    """

    def __init__(
        self,
        name: str,
        *,
        file: OutputFile,
        level: str,
        seconds: float | None,
        network: bool,
        explain: Callable[[str, bool], str],
    ) -> None:
        self.name = name
        self.file = file
        self.level = level
        self.network = network
        self.explain = explain
        self.seconds = seconds
        self.ended: ExitStatus | None = None
        self.error = ""  # why it could not be started
        self.restored = Restoration()
        self._unread = BoundedOutput()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which runs the command, as a task."""
        self._task = asyncio.create_task(work, name=f"shell {self.name}")

    def add_bytes(self, data: bytes, final: bool = False) -> bool:
        """Add output. Returns True: more is always welcome."""
        text = self._decode(data, final)
        self._unread.add(text)
        self.file.add(text)
        return True

    def read(self) -> str:
        """Return the output since the last time."""
        text, self._unread = self._unread.text, BoundedOutput()
        return text

    async def wait(self, seconds: float) -> None:
        """Return when it has ended, or after so many seconds."""
        if self._task is not None and self.is_running:
            await asyncio.wait((self._task,), timeout=seconds)

    async def stop(self) -> None:
        """End it, with everything that it has started."""
        if self._task is not None and self.is_running:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((self._task,))


class Jobs:
    """The jobs of one session."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def start(
        self, make: Callable[[str], Job], work: Callable[[Job], Coroutine[Any, Any, None]]
    ) -> Job:
        """Make a job with a new name and run `work` for it. Raise `ToolError` if there are many."""
        if len(self.running_jobs) >= MAX_RUNNING:
            names = ", ".join(job.name for job in self.running_jobs)
            raise ToolError(
                f"Not started: {MAX_RUNNING} jobs are running ({names}). Stop one first."
            )
        ended = [name for name, job in self._jobs.items() if not job.is_running]
        for name in ended[:-_MAX_ENDED]:
            del self._jobs[name]
        self._count += 1
        job = make(f"job-{self._count}")
        self._jobs[job.name] = job
        job.start(work(job))
        return job

    @property
    def running_jobs(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.is_running]

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    @property
    def names(self) -> str:
        """Their names, for a message."""
        return ", ".join(self._jobs) or "there are none"

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(job.stop() for job in self._jobs.values()))


def jobs_of(context: ToolContext[Any]) -> Jobs:
    """Return the jobs of this session."""
    jobs: Jobs = context.memory.setdefault(_KEY, Jobs())
    return jobs
