"""Puts the gate's questions to the person at the terminal. The default is no, and so is silence."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from bridle.cli.lines import Lines
from bridle.cli.question import CHOICES, question, to_answer
from bridle.cli.screen import Screen
from bridle.cli.words import person
from bridle.errors import AgentError
from bridle.events import ApprovalAsked
from bridle.promises.session import Answer
from bridle.workspace.paths import Workspace

_PATIENCE = 2.0  # seconds
_LARGEST = 200_000  # bytes of a file that is compared; a larger one is shown as it will be


class Asker:
    """An approver: asks one question at a time, in the order in which they come."""

    def __init__(self, lines: Lines, screen: Screen) -> None:
        self._lines = lines
        self._screen = screen
        self._turn = asyncio.Lock()
        self._shown: dict[str, asyncio.Event] = {}
        self.unanswered = 0
        screen.on_asked = lambda asked: self._event(asked).set()

    def expect_nothing(self, standing: Iterable[ApprovalAsked]) -> None:
        """These questions stand in the log from earlier: nothing is said before them now."""
        for asked in standing:
            self._event(asked).set()

    async def __call__(self, asked: ApprovalAsked) -> Answer:
        async with self._turn:
            await self._reached(asked)
            self._lines.discard()
            screen = self._screen
            text = question(asked, screen.paint, screen.width, current(asked))
            screen.ask_approval(f"{text}\n  {CHOICES}\n  [y/a/N] ", asked.shown)
            line = await self._lines.next()
            screen.approval_said()
            if line is None or not self._lines.is_terminal:
                screen.line("")  # nobody pressed Enter: the cursor still stands there
            if line is None:
                self.unanswered += 1
            return replace(to_answer(line), by=person())

    def _event(self, asked: ApprovalAsked) -> asyncio.Event:
        return self._shown.setdefault(asked.call.id, asyncio.Event())

    async def _reached(self, asked: ApprovalAsked) -> None:
        """Until everything said before the question stands on the screen.

        What is shown has been written first. If it cannot be written, the question comes anyway.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._event(asked).wait()
        del self._shown[asked.call.id]


def current(asked: ApprovalAsked) -> str | None:
    """What the file that a call would write holds now."""
    path = asked.call.arguments.get("path")
    if not isinstance(path, str) or "content" not in asked.call.arguments:
        return None
    try:
        files = Workspace(Path(asked.cwd))
        held = files.read(path, _LARGEST + 1) if files.exists(path) else None
        return held.decode() if held is not None and len(held) <= _LARGEST else None
    except (AgentError, UnicodeDecodeError):
        return None
