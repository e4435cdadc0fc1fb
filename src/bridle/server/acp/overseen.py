"""The child sessions of a turn, watched for their questions: they are asked at the same editor.

What a child does is told by its parent's call; here is only what a person has to answer, and what
came of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.events import ApprovalAnswered, ApprovalAsked, ChildStarted, ToolResultEvent
from bridle.messages import ToolOutput
from bridle.server.acp.questions import Questions

Tell = Callable[[ToolOutput], Awaitable[None]]


class Overseen:
    """The children that run now, and theirs."""

    def __init__(self, engine: Engine, questions: Questions, tell: Tell) -> None:
        self._engine = engine
        self._questions = questions
        self._tell = tell
        self._watching: dict[str, asyncio.Task[None]] = {}

    def watch(self, session_id: str) -> None:
        """Look at that child until it is over."""
        session = self._engine.get_open(session_id)
        if session is not None and session_id not in self._watching:
            self._watching[session_id] = asyncio.create_task(self._watch(session))

    async def leave(self, session_id: str) -> None:
        """It is over."""
        if (task := self._watching.pop(session_id, None)) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Look no longer."""
        for session_id in list(self._watching):
            await self.leave(session_id)

    async def _watch(self, session: Session) -> None:
        asked_about = set()
        async with aclosing(session.subscribe(0)) as records:
            async for record in records:
                match record.event:
                    case ApprovalAsked() as asked:
                        asked_about.add(asked.call.id)
                        self._questions.put(session, asked)
                    case ToolResultEvent(output=output) if output.call_id in asked_about:
                        await self._tell(output)
                    case ApprovalAnswered(shown=shown):
                        self._questions.withdraw(shown)
                    case ChildStarted(session_id=child):
                        self.watch(child)
