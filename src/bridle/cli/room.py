"""Where a REPL's conversation happens: a house, and the watch on its session. Reads no lines.

A session of our own engine asks through the engine's approver. One elsewhere, on a server or in
another process, is watched for its questions; others may talk to it too, so that prompts have
names there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from bridle.cli.approver import TerminalApprover
from bridle.cli.event_lines import letter_line
from bridle.cli.questions import Questions
from bridle.cli.screen import Screen
from bridle.cli.turn import Watch, tell_end
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionError
from bridle.events import ApprovalAsked, PromptReceived
from bridle.protocols.session import Conversation, TurnResult
from bridle.protocols.store import Record
from bridle.tui.house import House
from bridle.workspace.text import flat

_SOON = 1.0  # seconds
T = TypeVar("T")


class Room:
    """A conversation that can become another one."""

    _watch: Watch

    def __init__(self, house: House, screen: Screen, approver: TerminalApprover) -> None:
        self.house = house
        self.screen = screen
        self.approver = approver
        self.on_end: Callable[[], None] | None = None  # a turn is over, whoever began it
        self._watched: Conversation | None = None
        self._questions: Questions | None = None  # of a session elsewhere
        self._waiting = 0  # questions of other sessions that were told of
        self._leaving = asyncio.Event()
        self._sent: list[str] = []  # our own words, which stand on the screen already
        screen.me = house.me
        approver.content_of = house.current
        approver.preview = self._preview_rule

    @property
    def session(self) -> Conversation:
        """The one that is talked to."""
        return self.house.session

    @property
    def summary(self) -> str:
        """Model, mode and folder."""
        house, place = self.house, self.house.place
        where = f"{place.workspace} · {place.server}" if place.server else place.workspace
        return flat(f"{house.model} · mode {house.mode} · {where}")

    async def enter(self, seen: int | None = None) -> None:
        """Be in the session that was asked for, and show what comes after record `seen`."""
        await self.house.enter()
        for line in self.house.remarks():
            self.screen.line(self.screen.paint.dim(flat(line)))
        await self._begin(self.house.seen if seen is None else seen)

    async def leave(self) -> None:
        """Let everything go."""
        await self._end()
        await self.house.leave()

    async def moving(self, verb: Awaitable[T]) -> T:
        """A verb of the house that may lead to another session, which is then watched."""
        try:
            return await verb
        finally:
            if self._watched is not self.session:
                await self._end()
                await self._begin(self.house.seen)

    async def play(self, text: str) -> None:
        """One turn; what a parked one asks comes first."""
        if self._questions is None:
            await self.carry_on()
            self._tell(await self._watch.send(text))
            return
        self._sent.append(" ".join(text.split()))
        if self.session.is_parked:
            await self.carry_on()
        await self._heard(self._play(text))

    async def _play(self, text: str) -> None:
        self._tell(await self._watch.send(text))

    async def carry_on(self) -> None:
        """What was left behind in this session, if anything was: its questions come up here."""
        session = self.session
        if not (session.is_parked or session.is_busy):
            return
        if self._questions is not None:
            await self._heard(self._go_on())
            return
        said = "a turn goes on that waits for answers" if session.is_parked else "a turn goes on"
        self.screen.line(self.screen.paint.dim(said))
        self.approver.skip_wait(session.history.pending.values())
        self._tell(await self._watch.resume())

    async def _go_on(self) -> None:
        self._tell(await self._watch.resume())

    async def settle(self) -> None:
        """Wait a little until what was done has come back and stands on the screen."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON):
                await self._watch.wait_for_record(self.session.seq)

    async def tell_waiting(self) -> None:
        """Say so where other sessions ask something, once for each number of questions."""
        with suppress(AgentError):
            found = [one for one in await self.house.pending() if one.session_id != self.session.id]
            if len(found) > self._waiting:
                several = len(found) > 1
                count = f"{len(found)} questions" if several else "a question"
                said = (
                    f"{count} of other sessions wait"
                    if several
                    else f"{count} of another session waits"
                )
                self.screen.line(self.screen.paint.yellow(f"{said}: /approvals"))
            self._waiting = len(found)

    @property
    def is_elsewhere(self) -> bool:
        """Does another process run the session's turns, which go on when we leave?"""
        return self._questions is not None

    def leave_turn(self) -> None:
        """Wait no longer for a turn that runs elsewhere; it goes on."""
        self._leaving.set()

    async def _heard(self, work: Coroutine[Any, Any, None]) -> None:
        """Do that, as long as somebody is here who can answer what is asked on the way."""
        assert self._questions is not None
        working = asyncio.ensure_future(work)
        unheard = asyncio.ensure_future(self._questions.unheard.wait())
        leaving = asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait([working, unheard, leaving], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return
            if not working.done():
                raise SessionError(
                    "the turn waits for an answer that nobody here can give; it is kept",
                    hint=f"Answer it at a terminal: bridle attach, with {self.session.id}.",
                )
            working.result()
        finally:
            for one in (unheard, leaving, working):
                one.cancel()
            await asyncio.wait([working, unheard, leaving])

    def _tell(self, result: TurnResult) -> None:
        tell_end(
            result,
            self.screen,
            mode=self.house.mode,
            hint=self._watch.hint,
            steps=self._watch.steps.count,
            again="Say how to go on.",
        )

    async def _preview_rule(self, asked: ApprovalAsked) -> str:
        lines = await self.house.preview_rule(self.session.id, asked)
        return "\n".join(f"  {flat(line)}" for line in lines)

    async def _begin(self, seen: int) -> None:
        session = self.session
        self._watched = self.approver.session = session
        if not isinstance(session, Session):
            self._questions = Questions(session, self.approver, self.screen)
        watch = Watch(session, self._show, seen, elsewhere=self.is_elsewhere)
        self._watch = await watch.__aenter__()
        self._watch.on_end = self.on_end
        if self._questions is not None:
            self._questions.begin()

    async def _end(self) -> None:
        if self._questions is not None:
            questions, self._questions = self._questions, None
            await questions.close()
        await self._watch.__aexit__(None, None, None)

    def _show(self, record: Record) -> None:
        if self._questions is None:
            self.screen.feed(record)
            return
        if isinstance(record.event, PromptReceived):
            words = " ".join(record.event.content.split())
            if words in self._sent:
                self._sent.remove(words)
                return
        asked = self.screen.is_prompting
        show(self.screen, record)
        self._questions.take(record)
        taken = asked and not self.screen.is_prompting
        if taken and not self.session.is_busy and self.on_end is not None:
            self.on_end()  # a line of somebody else's has taken the prompt away


def show(screen: Screen, record: Record) -> None:
    """Show a record of a session that several people may talk to: prompts have names."""
    if isinstance(record.event, PromptReceived):
        screen.line(letter_line(record.event, screen.paint, screen.width, screen.me))
    else:
        screen.feed(record)
