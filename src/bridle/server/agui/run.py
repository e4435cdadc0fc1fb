"""One run of a front end: a turn of its thread's session, told as events of AG-UI.

A run ends with its turn, or where the turn waits for a person: then its questions are the run's
interrupts, and a run that answers them goes on from there. A front end that goes away in the middle
has stopped its run: the turn is interrupted, as the protocol has no other word for that.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from ag_ui import core
from ag_ui.encoder import EventEncoder
from msgspec import Struct

from bridle.errors import AgentError, SessionError
from bridle.events import (
    ApprovalAsked,
    ChildEnded,
    ChildStarted,
    Event,
    PromptReceived,
    ToolOutputDelta,
    TurnEnded,
    TurnParked,
)
from bridle.protocols.session_errors import ApprovalTaken, BadRequest
from bridle.protocols.session_values import ApprovalRequest, PromptRequest, SessionDetail
from bridle.protocols.store import Record
from bridle.server.agui.events import (
    Events,
    RunEvents,
    run_interrupted,
    run_started,
    to_interrupt,
    usage_meters,
)
from bridle.server.agui.run_input import InterruptAnswer, RunRequest, interrupt_id
from bridle.server.agui.threads import Threads
from bridle.service.local_service import LocalService

QUIET = 15.0  # seconds without a word, after which a comment says that we are still here
_KEEP_ALIVE = b": still here\n\n"
_DEEPEST = 4  # a task's task's task
_encode = EventEncoder().encode


class RunStart(Struct, frozen=True):
    """Where a run is to be told from, and how the session stood then.

    `turn` 0: the next one that ends.
    """

    before: SessionDetail
    after: int
    turn: int = 0


async def begin(sessions: LocalService, threads: Threads, given: RunRequest, by: str) -> RunStart:
    """Do what is asked for. Raise `AgentError`, before anything is told."""
    if not given.parts:
        before = await sessions.detail(await threads.session(sessions, given.thread))
        if given.answers:
            return RunStart(before, await _answer(sessions, before.id, given.answers, by))
        if before.state in ("running", "waiting"):
            asked = [one.seq - 1 for one in before.pending]  # it is told again what is asked
            return RunStart(before, min(asked, default=before.seq))
        raise BadRequest(
            "there is nothing to run: the newest message is not the person's",
            hint="Send a message, or answers to interrupts.",
        )
    session_id = await threads.opened(sessions, given.thread, given.new, by)
    before = await sessions.detail(session_id)
    key = f"{given.thread}\0{given.run}\0{given.message}"
    turn = (await sessions.send(session_id, PromptRequest(parts=given.parts), by, key)).turn
    return RunStart(before, before.seq if turn > before.turn else 0, turn)


async def _answer(
    sessions: LocalService, session_id: str, answers: tuple[InterruptAnswer, ...], by: str
) -> int:
    """Settle questions; one that somebody else has settled is settled. Where it goes on from."""
    places = [await _place(sessions, session_id, one) for one in answers]
    for one in answers:
        with suppress(ApprovalTaken):
            await sessions.answer(one.session_id, one.call_id, one.answer, by)
    return max(places)


async def _place(sessions: LocalService, session_id: str, said: InterruptAnswer) -> int:
    """The record of this session behind which a question stands. Raise `BadRequest`."""
    await _check_kin(sessions, session_id, said.session_id)
    mine = said.session_id == session_id
    words = said.answer.shown if mine else said.session_id

    def look() -> int:
        for record in sessions.catalog.find(session_id, words.encode()):
            if not mine or isinstance(record.event, ApprovalAsked):
                return record.seq
        return 0

    if place := await asyncio.to_thread(look):
        return place
    raise BadRequest("no such question was ever asked in this thread")


async def _check_kin(sessions: LocalService, session_id: str, other: str) -> None:
    """Is it the same session, or a task of it?"""
    for _ in range(_DEEPEST):
        if other == session_id:
            return
        other = (await sessions.info(other)).parent if other else ""
    raise BadRequest("that question belongs to another thread")


class Run:
    """The events of one run, as bytes."""

    def __init__(self, sessions: LocalService, given: RunRequest, begun: RunStart, by: str) -> None:
        self._sessions = sessions
        self._given = given
        self._id = begun.before.id
        self._begun = begun
        self._by = by
        self._told = RunEvents(self._id, begun.before.metrics)
        self._children: dict[str, str] = {}  # that run now, by their calls
        self._silent = bool(begun.turn)  # until the prompt is seen: what comes before is not ours
        self._over = False

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """From the start to the end. Closing it before that interrupts the turn."""
        try:
            for event in run_started(
                self._given.thread, self._given.run, _state(self._begun.before)
            ):
                yield _frame(event)
            async with (
                aclosing(self._events()) as events,
                aclosing(with_keep_alives(events)) as spoke,
            ):
                async for piece in spoke:
                    yield piece
        finally:
            if not self._over:
                await self._stop()

    async def _events(self) -> AsyncGenerator[bytes, None]:
        records = self._sessions.subscribe(self._id, self._begun.after)
        try:
            async with aclosing(records):
                async for record in records:
                    for event in await self._take(record):
                        yield _frame(event)
                    if self._over:
                        return
        except AgentError as error:  # such as a session that was deleted
            self._over = True
            for event in [*self._told.close(), core.RunErrorEvent(message=error.message)]:
                yield _frame(event)

    async def _take(self, record: Record) -> Events:
        event = record.event
        if self._silent:
            mine = isinstance(event, PromptReceived) and event.turn == self._begun.turn
            self._silent = not mine
            return []
        told = self._told.events(record)
        if isinstance(event, TurnEnded) and self._begun.turn in (0, event.turn):
            self._over = True
            return [*told, *self._told.close(), self._end(event)]
        if self._may_wait(event) and (waiting := await self._waiting(record.seq)):
            self._over = True
            asked = [to_interrupt(_name(one), _asked(one)) for one in waiting]
            end = run_interrupted(self._given.thread, self._given.run, asked, self._told)
            return [*told, *self._told.close(), end]
        return told

    def _may_wait(self, event: Event) -> bool:
        """May a person have to answer from here on?"""
        match event:
            case ChildStarted(call_id=call_id, session_id=child):
                self._children[call_id] = child
            case ChildEnded(call_id=call_id):
                self._children.pop(call_id, None)
            case ApprovalAsked() | TurnParked():
                return True
            case ToolOutputDelta(call_id=call_id, text=text):
                return call_id in self._children and "? " in text  # a task's question
        return False

    async def _waiting(self, seq: int) -> list[ApprovalRequest]:
        """The questions that the run waits for; none while there are more to come."""
        kin = {self._id}
        found = []
        for one in (await self._sessions.pending()).approvals:
            if one.session_id in kin or one.parent in kin:
                kin.add(one.session_id)
                found.append(one)
        later = any(one.session_id == self._id and one.seq > seq for one in found)
        return [] if later else found

    def _end(self, ended: TurnEnded) -> core.BaseEvent:
        thread, run, usage = self._given.thread, self._given.run, self._told.usage()
        if ended.reason == "done":
            return core.RunFinishedEvent(thread_id=thread, run_id=run, usage=usage)
        if ended.reason == "interrupted":
            outcome = core.RunFinishedCancelledOutcome()
            return core.RunFinishedEvent(thread_id=thread, run_id=run, outcome=outcome, usage=usage)
        words = ended.detail or "the turn could not be finished"
        message = f"{words}. {ended.hint}" if ended.hint else words
        return core.RunErrorEvent(
            message=message, code=ended.error_kind or ended.reason, usage=usage
        )

    async def _stop(self) -> None:
        """The front end has gone. Another's turn is not ours to stop."""
        self._over = True
        with suppress(SessionError):
            if self._sessions.stopping:
                return
            view = await self._sessions.info(self._id)
            if view.state in ("running", "waiting") and self._begun.turn in (0, view.turn):
                await self._sessions.interrupt(self._id, self._by)


async def with_keep_alives(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same, with a comment where nothing was said for a while."""
    coming = asyncio.ensure_future(anext(pieces, b""))
    try:
        while True:
            done, _ = await asyncio.wait((coming,), timeout=QUIET)
            if not done:
                yield _KEEP_ALIVE
            elif piece := coming.result():
                yield piece
                coming = asyncio.ensure_future(anext(pieces, b""))
            else:
                return
    finally:
        coming.cancel()
        await asyncio.wait((coming,))


def _state(before: SessionDetail) -> dict[str, Any]:
    return {
        "sessionId": before.id,
        "title": before.title,
        "mode": before.mode,
        "todos": msgspec.to_builtins(before.todos),
        "usage": usage_meters(before.metrics),
    }


def _name(one: ApprovalRequest) -> str:
    return interrupt_id(one.session_id, one.call_id, one.shown)


def _asked(one: ApprovalRequest) -> ApprovalAsked:
    return msgspec.convert(one.asked, ApprovalAsked, strict=False)


def _frame(event: core.BaseEvent) -> bytes:
    return str(_encode(event)).encode("utf-8", "replace")
