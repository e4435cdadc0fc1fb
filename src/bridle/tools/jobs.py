"""Commands in the background: started, read, waited for, stopped; none outlives its session."""

import asyncio
import codecs
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from bridle.errors import ToolError
from bridle.tools.output import Kept, Output
from bridle.workspace.process.command import ExitStatus
from bridle.workspace.watched import Mended

MOST = 8  # that run at the same time
_REMEMBERED = 64  # that have ended, and can still be asked about


class Job:
    """One command in the background. What it said since somebody looked is `unread`."""

    def __init__(
        self,
        name: str,
        kept: Kept,
        level: str,
        seconds: float | None,
        network: bool = False,
        explain: Callable[[str, bool], str] = lambda output, failed: "",
    ) -> None:
        self.name = name
        self.kept = kept
        self.level = level
        self.network = network
        self.explain = explain  # why files could not be read or changed, by output and outcome
        self.seconds = seconds
        self.ended: ExitStatus | None = None
        self.trouble = ""  # why it could not be started
        self.mended = Mended()
        self._unread = Output(_unheard)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def take(self, data: bytes, final: bool = False) -> bool:
        """Some more of its output."""
        text = self._decode(data, final)
        self._unread.add(text)
        self.kept.add(text)
        return True

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done, as a task of its own."""
        self._task = asyncio.create_task(work, name=f"shell {self.name}")

    def read(self) -> str:
        """What is new; from now on it is not."""
        found, self._unread = self._unread.text, Output(_unheard)
        return found

    async def wait(self, seconds: float | None) -> None:
        """Until it has ended, or so long."""
        if self._task is not None and self.is_running:
            await asyncio.wait((self._task,), timeout=seconds)

    async def stop(self) -> None:
        """End it, with everything it started."""
        if self._task is not None and self.is_running:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((self._task,))


Work = Callable[[Job], Coroutine[Any, Any, None]]


class Jobs:
    """Those of one session."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def begin(self, new: Callable[[str], Job], work: Work) -> Job:
        """Start one, if there are not too many."""
        if len(self.running) >= MOST:
            names = ", ".join(job.name for job in self.running)
            raise ToolError(f"Not started: {MOST} jobs are running ({names}). Stop one first.")
        self._forget()
        self._count += 1
        job = new(f"job-{self._count}")
        self._jobs[job.name] = job
        job.run(work(job))
        return job

    @property
    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.is_running]

    def find(self, name: str) -> Job | None:
        return self._jobs.get(name)

    @property
    def names(self) -> list[str]:
        return list(self._jobs)

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(job.stop() for job in self._jobs.values()))

    def _forget(self) -> None:
        over = [name for name, job in self._jobs.items() if not job.is_running][:-_REMEMBERED]
        for name in over:
            del self._jobs[name]


def _unheard(text: str) -> None:
    """Nobody listens while it runs in the background."""
