"""After a timeout, an interrupt or a stop nothing more of a command line runs.

A shell whose program is ended would go on to the next command of its line. It never does, in
whichever order the kernel gets to its processes: so it is tried many times.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from early_clock import TIME, out_of_time

from bridle.errors import ConfigError
from bridle.events import Event
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.shell.tool import Shell, ShellOutput, ShellStop
from bridle.workspace.sandbox import Sandbox, probe
from bridle.workspace.workspace import Workspace

pytestmark = pytest.mark.slow

TIMES = 1000 if os.environ.get("BRIDLE_SOAK") else 42  # at each level

# each says `ready` once its program is about to run, and leaves a file if anything more runs
LINES = {
    "a line": "echo ready; sleep 1000; echo ran > ran",
    "shells below it": 'bash -c \'sh -c "echo ready; sleep 1000; echo ran > ran"; '
    "echo ran > ran'; echo ran > ran",
    "a trap": "trap : TERM HUP INT; echo ready; sleep 1000; echo ran > ran",
    "a list": "echo ready; sleep 1000 || echo ran > ran; echo ran > ran",
    "a loop in a pipe": "echo ready; while true; do sleep 1000; echo ran > ran; done | cat",
    "job control": "set -m; echo ready; (sleep 1000; echo ran > ran); echo ran > ran",
    "a script": "./script; echo ran > ran",
}
SCRIPT = "#!/bin/sh\necho ready\nsleep 1000\necho ran > ran\n"


@pytest.fixture(params=["none", "landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> str:
    try:
        probe(request.param)
    except ConfigError as error:
        pytest.skip(error.message)
    return str(request.param)


class Session:
    """Commands of one session at one level."""

    def __init__(self, root: Path, level: str) -> None:
        self._root = root
        self._memory: dict[str, Any] = {}
        self._shell = Shell(Sandbox(str(root), level=level))
        (root / "script").write_text(SCRIPT)
        (root / "script").chmod(0o755)

    def context(self, emit: Any = lambda event: None) -> ToolContext[Any]:
        return ToolContext(Workspace(self._root), "1", emit=emit, memory=self._memory)

    async def timeout(self, line: str) -> None:
        context = self.context(out_of_time(lambda said: "ready" in said))
        found = await self._shell.execute({"command": line, "timeout": TIME}, context)
        assert found.data["timed_out"] is True

    async def interrupt(self, line: str) -> None:
        ready = asyncio.Event()

        def hear(event: Event) -> None:
            ready.set()

        task = asyncio.create_task(self._shell.execute({"command": line}, self.context(hear)))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def stop(self, line: str) -> None:
        arguments = {"command": line, "background": True}
        job = (await self._shell.execute(arguments, self.context())).data["job"]
        said = ""
        while "ready" not in said:
            said += (await self._look(job)).text
        await ShellStop().execute({"id": job}, self.context())

    async def _look(self, job: str) -> ToolResult:
        return await ShellOutput().execute({"id": job, "wait": 0.01}, self.context())


@pytest.mark.parametrize("ending", ["timeout", "interrupt", "stop"])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_nothing_more_of_the_line_runs(tmp_path: Path, level: str, line: str, ending: str) -> None:
    """(M6)"""

    async def scenario() -> None:
        session = Session(tmp_path, level)
        for _ in range(-(-TIMES // (len(LINES) * 3))):
            await getattr(session, ending)(line)
            assert not (tmp_path / "ran").exists()

    asyncio.run(scenario())


# a program that cleans up when it is asked to end, below two shells
TIDY = """
import os, signal, sys, time
def clean(*_):
    time.sleep(0.05)
    with open("tidy", "w") as file:
        file.write("yes")
    sys.exit()
signal.signal(signal.SIGTERM, clean)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("ending", ["timeout", "interrupt", "stop"])
def test_a_program_can_still_clean_up(tmp_path: Path, level: str, ending: str) -> None:
    """(M6)"""
    (tmp_path / "tidy.py").write_text(TIDY)
    line = "sh -c 'python3 tidy.py; echo ran > ran'; echo ran > ran"
    asyncio.run(getattr(Session(tmp_path, level), ending)(line))
    assert (tmp_path / "tidy").read_text() == "yes"
    assert not (tmp_path / "ran").exists()
