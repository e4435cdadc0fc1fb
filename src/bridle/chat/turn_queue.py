"""The queue of turns in the database. Each step is one transaction.

enqueue  store the message and give it a number; claim its turn too if nothing is before it
poll     has it been answered, and which turn is at the head of the queue?
claim    take the head of the queue: get a lease, and a fence higher than all before
renew    extend the lease: the worker is still alive
finish   store the reply if the fence is unchanged; exactly once, because its position is unique
release  the worker stops on purpose; another may continue at once

Everything here blocks, and runs in a session that belongs to the user.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import func
from sqlmodel import col, delete, select, update

from bridle.chat.db import (
    Conversation,
    Database,
    Operation,
    OwnedSession,
    StoredMessage,
    Turn,
    utc_now,
)
from bridle.chat.db.session import (
    owned_select,
    parameter,
    prepare_insert,
    prepare_select,
    prepare_update,
    table_of,
)
from bridle.chat.db.tables import new_id
from bridle.chat.errors import UNKNOWN_CONVERSATION, KeyReused, QueueFull, UnknownConversation
from bridle.chat.leases import is_dead
from bridle.chat.spending import charge_message, charge_money
from bridle.chat.values import (
    AgentContext,
    AgentResult,
    IncomingMessage,
    MessageHistory,
    Reply,
    ServiceLimits,
    ToolCallRecord,
)

_log = logging.getLogger(__name__)

OPEN_STATES = (
    "waiting",
    "running",
)  # named, so that an index finds them among thousands that are done
_CONVERSATION, _MESSAGE, _TURN = (table_of(one).c for one in (Conversation, StoredMessage, Turn))
_ARRIVES = prepare_update(
    Conversation,
    {"arrivals": _CONVERSATION.arrivals + 1, "updated_at": parameter("moment")},
    _CONVERSATION.id == parameter("place"),
    gives=_CONVERSATION.arrivals,
)
_WAITING = prepare_select(
    owned_select(
        Turn,
        (func.count(),),
        _TURN.conversation_id == parameter("place"),
        _TURN.state.in_(OPEN_STATES),
    )
)
_BEFORE = prepare_select(
    owned_select(
        StoredMessage,
        (_MESSAGE.role, _MESSAGE.content, _MESSAGE.created_at, _MESSAGE.tool_calls),
        _MESSAGE.conversation_id == parameter("place"),
        _MESSAGE.position < parameter("position_own"),
    )
    .order_by(_MESSAGE.position.desc())
    .limit(parameter("most"))
)
_DONE = prepare_update(
    Turn,
    {"state": "done", "success": parameter("went_well"), "finished_at": parameter("moment")},
    _TURN.id == parameter("turn"),
    _TURN.fence == parameter("fenced"),
    _TURN.state == "running",
)
_NEW_TURN, _NEW_MESSAGE = prepare_insert(Turn), prepare_insert(StoredMessage)


def count_arrival(session: OwnedSession, conversation_id: str) -> int | None:
    """Count one more message and lock the conversation. Return the count; None if there is none."""
    found = _ARRIVES.execute(session, {"place": conversation_id, "moment": utc_now()})
    arrivals: int | None = found.scalar_one_or_none()
    return arrivals


def count_open(session: OwnedSession, conversation_id: str) -> int:
    """Return how many turns of the conversation are not done."""
    return int(_WAITING.execute(session, {"place": conversation_id}).scalar_one())


def insert_turn(
    session: OwnedSession,
    asked: IncomingMessage,
    place: tuple[str, int],
    lease: tuple[str, float] | None,
) -> str:
    """Insert a turn, claimed at once if a lease is given. Return its id."""
    zone, language = locale_of(asked)
    worker, until = lease or ("", 0.0)
    row = {
        "id": new_id(),
        "conversation_id": place[0],
        "arrival": place[1],
        "key": asked.key or None,
        "body": asked.body,
        "state": "running" if lease else "waiting",
        "worker": worker,
        "lease_until": until,
        "fence": 1 if lease else 0,
        "attempts": 1 if lease else 0,
        "timezone": zone,
        "language": language,
        "success": True,
        "created_at": utc_now(),
        "finished_at": None,
    }
    _NEW_TURN.execute(session, row)
    return str(row["id"])


def insert_message(
    session: OwnedSession,
    conversation_id: str,
    position: int,
    role: str,
    content: str,
    calls: list[dict[str, Any]] | None = None,
) -> str:
    """Insert a message at its position; fail if there is one already. Return its id."""
    row = {
        "id": new_id(),
        "conversation_id": conversation_id,
        "position": position,
        "role": role,
        "content": content,
        "tool_calls": calls or None,
        "created_at": utc_now(),
    }
    _NEW_MESSAGE.execute(session, row)
    return str(row["id"])


def delete_expired(session: OwnedSession, days: float) -> None:
    """Delete the owner's operations and the keys of answered messages that are older than that.

    They only prevent that a message that is sent again is run again. The messages stay.
    """
    until = utc_now() - timedelta(days=days)
    running = session.exec(select(col(Turn.id)).where(col(Turn.state).in_(OPEN_STATES))).all()
    old = col(Operation.created_at) < until, col(Operation.turn_id).not_in(running)
    session.exec(delete(Operation).where(*old))
    answered = col(Turn.key).is_not(None), col(Turn.finished_at) < until
    session.exec(update(Turn).where(*answered).values(key=None))


def end_turn(session: OwnedSession, turn_id: str, fence: int, success: bool) -> bool:
    """Mark a turn as done. Return False if it no longer runs under that fence."""
    found = {"turn": turn_id, "fenced": fence, "went_well": success, "moment": utc_now()}
    return _DONE.execute(session, found).rowcount == 1


def messages_before(
    session: OwnedSession, conversation_id: str, arrival: int, count: int
) -> tuple[MessageHistory, ...]:
    """Return the last `count` messages before a turn's own, oldest first."""
    if arrival == 0:
        return ()
    asked = {"place": conversation_id, "position_own": 2 * arrival, "most": count}
    rows = _BEFORE.execute(session, asked).all()
    return tuple(
        MessageHistory(role, content, at, tuple(calls) if calls else None)
        for role, content, at, calls in reversed(rows)
    )


def locale_of(asked: IncomingMessage) -> tuple[str, str]:
    """Return the user's time zone and language in a form that can be stored."""
    return _plain_word(asked.setting.timezone, 64) or "UTC", _plain_word(asked.setting.language, 35)


def _plain_word(word: str, longest: int) -> str:
    """Return the word, or nothing if it cannot be stored."""
    return word if word.isascii() and word.isprintable() and len(word) <= longest else ""


_TITLE = 60


@dataclass(frozen=True)
class ClaimedTurn:
    """A turn that this worker has claimed, with everything needed to run it."""

    turn_id: str
    arrival: int
    fence: int
    attempts: int
    context: AgentContext
    message: str


@dataclass(frozen=True)
class QueuedTurn:
    """A message in the queue: its number in the conversation, and its turn if it was claimed."""

    turn_id: str
    conversation_id: str
    arrival: int
    known: bool  # its key had come before
    work: ClaimedTurn | None = None


@dataclass(frozen=True)
class QueueHead:
    """The first turn of a conversation's queue, and whether it can be claimed."""

    turn_id: str
    fence: int
    running: bool
    free: bool


@dataclass(frozen=True)
class WorkerContext:
    """The worker that does a step: its name, its turns, its limits, and the time for leases."""

    worker: str
    limits: ServiceLimits
    now: float
    held: frozenset[str] = frozenset()

    def may_take(self, turn: Turn) -> bool:
        """May this worker take over a turn that is marked as running?"""
        if turn.worker == self.worker:
            return turn.id not in self.held  # we lost it when the database was away
        return turn.lease_until < self.now or is_dead(turn.worker)


def enqueue(session: OwnedSession, asked: IncomingMessage, desk: WorkerContext) -> QueuedTurn:
    """Store the message and give it its number. Raise the errors of `bridle.chat.errors`."""
    known = _by_key(session, asked)
    if known is not None:
        return QueuedTurn(known.id, known.conversation_id, known.arrival, known=True)
    charge_message(session, desk.limits, desk.now)
    conversation_id, arrival = _conversation(session, asked)
    if asked.conversation_id is None:  # seldom enough, and never in the middle of a conversation
        delete_expired(session, desk.limits.keep_days)
    waiting = count_open(session, conversation_id) if arrival else 0
    if waiting >= desk.limits.waiting:
        raise QueueFull(
            "Many of your messages still wait for their answers here. Please wait a moment.",
            retry_after=5.0,
        )
    lease = (desk.worker, desk.now + desk.limits.lease) if waiting == 0 else None
    turn_id = insert_turn(session, asked, (conversation_id, arrival), lease)
    insert_message(session, conversation_id, 2 * arrival, "user", asked.message)
    work = None
    if lease is not None:
        history = messages_before(session, conversation_id, arrival, desk.limits.history)
        zone, language = locale_of(asked)
        context = AgentContext(
            asked.user_id,
            conversation_id,
            history,
            turn_id=turn_id,
            timezone=zone,
            language=language,
        )
        work = ClaimedTurn(turn_id, arrival, 1, 1, context, asked.message)
    return QueuedTurn(turn_id, conversation_id, arrival, known=False, work=work)


def poll(session: OwnedSession, place: QueuedTurn, desk: WorkerContext) -> Reply | QueueHead:
    """Return the reply if there is one, else the head of the queue. Raise `UnknownConversation`."""
    turn = session.get(Turn, place.turn_id)
    if turn is None:
        raise _unknown_conversation()
    if turn.state == "done":
        return _find_reply(session, turn)
    head = session.exec(_open_turns(turn.conversation_id).limit(1)).first()
    if head is None:  # another worker has ended it since the query before
        ended = session.get(Turn, turn.id, populate_existing=True)
        return _find_reply(session, ended or turn)
    running = head.state == "running"
    free = desk.may_take(head) if running else head.id == turn.id
    return QueueHead(head.id, head.fence, running, free)


def claim(head: QueueHead, session: OwnedSession, desk: WorkerContext) -> ClaimedTurn | None:
    """Claim the turn. Return None if another worker was faster."""
    turn = session.get(Turn, head.turn_id, with_for_update=True, populate_existing=True)
    if turn is None or turn.state == "done" or turn.fence != head.fence:
        return None
    if turn.state == "running" and not desk.may_take(turn):
        return None  # its worker was only slow, and has said so
    return _claim_turn(session, turn, desk)


def renew(session: OwnedSession, work: ClaimedTurn, desk: WorkerContext) -> bool:
    """Extend the lease. Return False if the turn is no longer ours."""
    turn = _held_turn(session, work)
    if turn is None:
        return False
    turn.lease_until = desk.now + desk.limits.lease
    return True


def finish(
    session: OwnedSession, work: ClaimedTurn, result: AgentResult, desk: WorkerContext
) -> Reply | None:
    """Store the reply. Return None if another worker holds the turn."""
    if not end_turn(session, work.turn_id, work.fence, result.success):
        return None
    # first: arrivals lock in this order, too
    charge_money(session, desk.limits, result.dollars, desk.now)
    place, said = work.context.conversation_id, result.response
    calls = _calls_to_json(result)
    its = 2 * work.arrival + 1
    message_id = insert_message(session, place, its, "assistant", said, calls)
    return Reply(said, place, message_id, False, result.success, tuple(calls))


def release(session: OwnedSession, work: ClaimedTurn) -> None:
    """Give the turn back: any worker may claim it at once."""
    turn = _held_turn(session, work)
    if turn is not None:
        turn.state, turn.lease_until, turn.worker = "waiting", 0.0, ""
        turn.attempts -= 1


def _by_key(session: OwnedSession, asked: IncomingMessage) -> Turn | None:
    if not asked.key:
        return None
    turn = session.exec(select(Turn).where(Turn.key == asked.key)).one_or_none()
    if turn is not None and turn.body != asked.body:
        raise KeyReused("This was sent before as another message, so it was not sent again.")
    return turn


def _conversation(session: OwnedSession, asked: IncomingMessage) -> tuple[str, int]:
    """Return the conversation's id and the message's number in it; lock its row."""
    if asked.conversation_id is None:
        title = " ".join(asked.message.split())[:_TITLE]
        found = Conversation(user_id=asked.user_id, title=title, arrivals=1)
        session.add(found)
        session.flush()
        return found.id, 0
    arrivals = count_arrival(session, asked.conversation_id)
    if arrivals is None:
        raise _unknown_conversation()
    return asked.conversation_id, arrivals - 1


def _unknown_conversation() -> UnknownConversation:
    return UnknownConversation(UNKNOWN_CONVERSATION)


def _open_turns(conversation_id: str) -> Any:
    mine = Turn.conversation_id == conversation_id
    return select(Turn).where(mine, col(Turn.state).in_(OPEN_STATES)).order_by(col(Turn.arrival))


def _claim_turn(session: OwnedSession, turn: Turn, desk: WorkerContext) -> ClaimedTurn:
    turn.state, turn.worker = "running", desk.worker
    turn.lease_until = desk.now + desk.limits.lease
    turn.fence += 1
    turn.attempts += 1
    mine = StoredMessage.conversation_id == turn.conversation_id
    its = StoredMessage.position == 2 * turn.arrival
    message = session.exec(select(StoredMessage.content).where(mine, its)).one()
    history = messages_before(session, turn.conversation_id, turn.arrival, desk.limits.history)
    context = AgentContext(
        turn.user_id,
        turn.conversation_id,
        history,
        turn_id=turn.id,
        timezone=turn.timezone,
        language=turn.language,
        retried=turn.fence > 1,
    )
    return ClaimedTurn(turn.id, turn.arrival, turn.fence, turn.attempts, context, message)


def _held_turn(session: OwnedSession, work: ClaimedTurn) -> Turn | None:
    turn = session.get(Turn, work.turn_id, with_for_update=True)
    ours = turn is not None and turn.state == "running" and turn.fence == work.fence
    return turn if ours else None


def _find_reply(session: OwnedSession, turn: Turn) -> Reply:
    mine = StoredMessage.conversation_id == turn.conversation_id
    its = StoredMessage.position == 2 * turn.arrival + 1
    row = session.exec(select(StoredMessage).where(mine, its)).one_or_none()
    if row is None:  # the conversation was deleted since the query before
        raise _unknown_conversation()
    return _to_reply(row, turn.success)


def _to_reply(row: StoredMessage, success: bool) -> Reply:
    calls = tuple(row.tool_calls or ())
    return Reply(row.content, row.conversation_id, row.id, False, success, calls)


def _calls_to_json(result: AgentResult) -> list[dict[str, Any]]:
    """Return the calls as they are stored."""
    return [
        {
            "tool_name": one.tool_name,
            "parameters": one.parameters,
            "result": one.result,
            "duration_ms": one.duration_ms,
        }
        for one in result.tool_calls
    ]


class _RollBack(Exception):
    """Rolls back the transaction of `warm_up`."""


def warm_up(database: Database, limits: ServiceLimits) -> None:
    """Run through a turn once and roll it back, so that the first message is fast. Blocks."""
    nobody = f"warm-up-{uuid4()}"
    call = ToolCallRecord("nothing", {}, {"success": True, "data": None})
    result = AgentResult(True, "Hello!", (call,))

    def turn(session: OwnedSession) -> None:
        desk = WorkerContext("warm-up", limits, database.now(session))
        place = enqueue(session, IncomingMessage(nobody, "Hello", key="warm-up"), desk)
        for _ in range(2):
            if place.work is not None:
                finish(session, place.work, result, desk)
                session.flush()
            place = enqueue(session, IncomingMessage(nobody, "Hello", place.conversation_id), desk)
        raise _RollBack

    try:
        with database.session_for(nobody) as session, session.begin():
            turn(session)
    except _RollBack:
        return
    except Exception as error:  # it is there for speed alone
        _log.warning("the chat could not warm up: %s", type(error).__name__)
