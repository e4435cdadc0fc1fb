"""One showing of the demo: the project, the turn, the answers, and a look at what came of it.

The model is pretended; everything else is not: files, commands, questions, log. At the end the test
is run once more, by us, and the exit code says whether it passes.
"""

import asyncio
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from bridle.cli import demo_story
from bridle.cli.approver import full_text
from bridle.cli.event_lines import usage_line
from bridle.cli.exit_codes import DONE, FAILED, complain
from bridle.cli.screen import Screen
from bridle.cli.signals import run_async
from bridle.cli.style import wrapped
from bridle.cli.turn import Watch
from bridle.engine.session import Session
from bridle.events import ApprovalAsked
from bridle.protocols.session import NO, TurnResult
from bridle.runtime import build_engine

_WHO = "the demo"


def show(*, fast: bool) -> int:
    """Lay the project out in a folder of its own and show it; the exit code."""
    with tempfile.TemporaryDirectory(prefix="bridle-demo-") as folder:
        demo_story.lay_out(Path(folder))
        return run_async(Demo(Path(folder), fast=fast).play())


class Demo:
    """One showing."""

    def __init__(self, folder: Path, *, fast: bool) -> None:
        self._folder = folder
        self._fast = fast
        self._screen = Screen(sys.stdout, sys.stderr, live=True)
        self._answering: list[asyncio.Future[None]] = []

    async def play(self) -> int:
        """Show it; the exit code says whether the project was fixed."""
        paint, line = self._screen.paint, self._screen.line
        line(paint.bold("bridle demo") + paint.dim("  a scripted model, real tools, a real gate"))
        line(paint.dim(f"a small project with a failing test lies in {self._folder}"))
        line(f"\n{paint.cyan('❯')} {paint.bold(demo_story.PROMPT)}")
        model = demo_story.model(fast=self._fast)
        async with build_engine(
            model, workspace=self._folder, on_ask="wait", mode="ask", face="demo"
        ) as engine:
            session = await engine.session()
            self._screen.on_asked = lambda asked: self._hear(session, asked)
            async with Watch(session, self._screen.feed) as watch:
                result = await watch.send(demo_story.PROMPT)
            self._tell(result, session.log_path)
        return self._verify(result)

    def _hear(self, session: Session, asked: ApprovalAsked) -> None:
        self._answering.append(asyncio.ensure_future(self._answer(session, asked)))

    async def _answer(self, session: Session, asked: ApprovalAsked) -> None:
        """The gate asks; the demo answers in its own name, with the verb every face has."""
        call, paint = asked.call, self._screen.paint
        answer = demo_story.ANSWERS.get(str(call.arguments.get("command", call.name)), NO)
        self._screen.line(full_text([asked], paint, self._screen.width))
        await asyncio.sleep(0 if self._fast else 1.2)
        said = paint.green("yes") if answer.allowed else paint.red("no")
        until = ", for this session" if answer.scope == "session" else ""
        word = f": {answer.word}" if answer.word else ""
        self._screen.line(f"  {_WHO} says {said}{until}{word}")
        await session.answer(call.id, answer, shown=asked.shown, by=_WHO)

    def _tell(self, result: TurnResult, log: str) -> None:
        paint, line = self._screen.paint, self._screen.line
        line("")
        width = self._screen.width
        line(paint.dim(wrapped(usage_line(result.metrics), width)))
        line(paint.dim(wrapped("pretend money: no model was asked, and nobody pays", width)))
        line(f"the log    {paint.dim(log)}")
        line(f"to read it {paint.cyan('bridle sessions show ' + result.session_id)}")

    def _verify(self, result: TurnResult) -> int:
        """Run the test ourselves: the model's word is not enough."""
        test = shlex.split(demo_story.TEST)
        done = subprocess.run(test, cwd=self._folder, capture_output=True, text=True, timeout=60)
        if not result.ok or done.returncode:
            complain(
                f"the project was not fixed: {result.detail or 'the test still fails'}",
                "This is a bug in bridle: please report it.",
            )
            return FAILED
        self._screen.line(f"{self._screen.paint.green('✓')} verified: the test passes now")
        return DONE
