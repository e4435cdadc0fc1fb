"""Puts the gate's questions to the person at the terminal. The default is no, and so is silence."""

import asyncio
from pathlib import Path

from bridle.cli.lines import Lines
from bridle.cli.question import CHOICES, question, to_answer
from bridle.cli.screen import Screen
from bridle.errors import AgentError
from bridle.events import ApprovalAsked
from bridle.promises.session import Answer
from bridle.workspace.paths import Workspace

_LARGEST = 200_000  # bytes of a file that is compared; a larger one is shown as it will be


class Asker:
    """An approver: asks one question at a time, in the order in which they come."""

    def __init__(self, lines: Lines, screen: Screen) -> None:
        self._lines = lines
        self._screen = screen
        self._turn = asyncio.Lock()
        screen.asks = True
        self.unanswered = 0

    async def __call__(self, asked: ApprovalAsked) -> Answer:
        async with self._turn:
            self._lines.discard()
            text = question(asked, self._screen.paint, current(asked))
            self._screen.ask(f"{text}\n  {CHOICES}\n  [y/a/N] ")
            line = await self._lines.next()
            if line is None or not self._lines.is_terminal:
                self._screen.line("")  # nobody pressed Enter: the cursor still stands there
            if line is None:
                self.unanswered += 1
            return to_answer(line)


def current(asked: ApprovalAsked) -> str | None:
    """What the file that a call would write holds now."""
    path = asked.call.arguments.get("path")
    if not isinstance(path, str) or "content" not in asked.call.arguments:
        return None
    try:
        files = Workspace(Path(asked.cwd))
        return files.read(path, _LARGEST).decode() if files.exists(path) else None
    except (AgentError, UnicodeDecodeError):
        return None
