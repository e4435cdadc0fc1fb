"""The steps of a turn in the database: each one transaction, so that a turn is never between two.

arrive   the message is kept and has its number; where nobody is before it, it is claimed as well
look     is it answered already, and who is at the head of the line?
claim    take the head of the line: its lease, and a fence that is higher than everybody's before
renew    the worker still lives
finish   the reply is kept, if the fence is still the same; exactly once, since its place is taken
release  the worker stops on purpose; another may go on at once

Everything blocks, and runs in a session that belongs to the user.
"""

from dataclasses import dataclass
from typing import Any

from sqlmodel import col, select

from bridle.chat import service_rows as rows
from bridle.chat.data import Conversation, OwnedSession, StoredMessage, Turn
from bridle.chat.leases import is_dead
from bridle.chat.refusals import Crowded, KeyReused, UnknownConversation
from bridle.chat.service_pages import UNKNOWN
from bridle.chat.service_values import Asked, Reply, ServiceLimits
from bridle.chat.spending import charge_message, charge_money
from bridle.chat.values import AgentContext, AgentResult

_TITLE = 60


@dataclass(frozen=True)
class Work:
    """A turn that this worker holds, with everything needed to run it."""

    turn_id: str
    arrival: int
    fence: int
    attempts: int
    context: AgentContext
    message: str


@dataclass(frozen=True)
class Place:
    """Where a message stands: its number in its conversation, and its work if it was its turn."""

    turn_id: str
    conversation_id: str
    arrival: int
    known: bool  # its key had come before
    work: Work | None = None


@dataclass(frozen=True)
class Head:
    """Who is first in the line of a conversation, and whether somebody may take its place."""

    turn_id: str
    fence: int
    running: bool
    free: bool


@dataclass(frozen=True)
class Desk:
    """Who does the steps: the worker's name, what it holds, its limits, and the leases' clock."""

    worker: str
    limits: ServiceLimits
    now: float
    held: frozenset[str] = frozenset()

    def may_take(self, turn: Turn) -> bool:
        """Is nobody at work on this turn, which says that it runs?"""
        if turn.worker == self.worker:
            return turn.id not in self.held  # we lost it when the database was away
        return turn.lease_until < self.now or is_dead(turn.worker)


def arrive(session: OwnedSession, asked: Asked, desk: Desk) -> Place:
    """Keep the message and give it its number. Raise what the service refuses."""
    known = _by_key(session, asked)
    if known is not None:
        return Place(known.id, known.conversation_id, known.arrival, known=True)
    charge_message(session, desk.limits, desk.now)
    conversation_id, arrival = _conversation(session, asked)
    if asked.conversation_id is None:  # seldom enough, and never in the middle of a conversation
        rows.sweep(session, desk.limits.keep_days)
    waiting = rows.count_open(session, conversation_id) if arrival else 0
    if waiting >= desk.limits.waiting:
        raise Crowded(
            "Many of your messages still wait for their answers here. Please wait a moment.",
            retry_after=5.0,
        )
    lease = (desk.worker, desk.now + desk.limits.lease) if waiting == 0 else None
    turn_id = rows.keep_turn(session, asked, (conversation_id, arrival), lease)
    rows.keep_message(session, conversation_id, 2 * arrival, "user", asked.message)
    work = None
    if lease is not None:
        history = rows.before(session, conversation_id, arrival, desk.limits.history)
        zone, language = rows.setting_of(asked)
        context = AgentContext(
            asked.user_id,
            conversation_id,
            history,
            turn_id=turn_id,
            timezone=zone,
            language=language,
        )
        work = Work(turn_id, arrival, 1, 1, context, asked.message)
    return Place(turn_id, conversation_id, arrival, known=False, work=work)


def look(session: OwnedSession, place: Place, desk: Desk) -> Reply | Head:
    """The reply if there is one, else the head of the line. Raise `UnknownConversation`."""
    turn = session.get(Turn, place.turn_id)
    if turn is None:
        raise _unknown()
    if turn.state == "done":
        return _reply(session, turn)
    head = session.exec(_open(turn.conversation_id).limit(1)).first()
    if head is None:  # another worker has ended it since the query before
        ended = session.get(Turn, turn.id, populate_existing=True)
        return _reply(session, ended or turn)
    running = head.state == "running"
    free = desk.may_take(head) if running else head.id == turn.id
    return Head(head.id, head.fence, running, free)


def claim(head: Head, session: OwnedSession, desk: Desk) -> Work | None:
    """Take it, unless somebody was faster."""
    turn = session.get(Turn, head.turn_id, with_for_update=True, populate_existing=True)
    if turn is None or turn.state == "done" or turn.fence != head.fence:
        return None
    if turn.state == "running" and not desk.may_take(turn):
        return None  # its worker was only slow, and has said so
    return _take(session, turn, desk)


def renew(session: OwnedSession, work: Work, desk: Desk) -> bool:
    """Is it still ours? Then for another while."""
    turn = _held(session, work)
    if turn is None:
        return False
    turn.lease_until = desk.now + desk.limits.lease
    return True


def finish(session: OwnedSession, work: Work, result: AgentResult, desk: Desk) -> Reply | None:
    """Keep the reply; nothing, if somebody else holds the turn by now."""
    if not rows.end_turn(session, work.turn_id, work.fence, result.success):
        return None
    # first: arrivals lock in this order, too
    charge_money(session, desk.limits, result.dollars, desk.now)
    place, said = work.context.conversation_id, result.response
    calls = _calls(result)
    its = 2 * work.arrival + 1
    message_id = rows.keep_message(session, place, its, "assistant", said, calls)
    return Reply(said, place, message_id, False, result.success, tuple(calls))


def release(session: OwnedSession, work: Work) -> None:
    """Let go of it: whoever comes next may take it at once."""
    turn = _held(session, work)
    if turn is not None:
        turn.state, turn.lease_until, turn.worker = "waiting", 0.0, ""
        turn.attempts -= 1


def _by_key(session: OwnedSession, asked: Asked) -> Turn | None:
    if not asked.key:
        return None
    turn = session.exec(select(Turn).where(Turn.key == asked.key)).one_or_none()
    if turn is not None and turn.body != asked.body:
        raise KeyReused("This was sent before as another message, so it was not sent again.")
    return turn


def _conversation(session: OwnedSession, asked: Asked) -> tuple[str, int]:
    """Its id and the message's number in it; its row is locked, so that arrivals queue up."""
    if asked.conversation_id is None:
        title = " ".join(asked.message.split())[:_TITLE]
        found = Conversation(user_id=asked.user_id, title=title, arrivals=1)
        session.add(found)
        session.flush()
        return found.id, 0
    arrivals = rows.count_arrival(session, asked.conversation_id)
    if arrivals is None:
        raise _unknown()
    return asked.conversation_id, arrivals - 1


def _unknown() -> UnknownConversation:
    return UnknownConversation(UNKNOWN)


def _open(conversation_id: str) -> Any:
    mine = Turn.conversation_id == conversation_id
    return select(Turn).where(mine, col(Turn.state).in_(rows.OPEN)).order_by(col(Turn.arrival))


def _take(session: OwnedSession, turn: Turn, desk: Desk) -> Work:
    turn.state, turn.worker = "running", desk.worker
    turn.lease_until = desk.now + desk.limits.lease
    turn.fence += 1
    turn.attempts += 1
    mine = StoredMessage.conversation_id == turn.conversation_id
    its = StoredMessage.position == 2 * turn.arrival
    message = session.exec(select(StoredMessage.content).where(mine, its)).one()
    history = rows.before(session, turn.conversation_id, turn.arrival, desk.limits.history)
    context = AgentContext(
        turn.user_id,
        turn.conversation_id,
        history,
        turn_id=turn.id,
        timezone=turn.timezone,
        language=turn.language,
        retried=turn.fence > 1,
    )
    return Work(turn.id, turn.arrival, turn.fence, turn.attempts, context, message)


def _held(session: OwnedSession, work: Work) -> Turn | None:
    turn = session.get(Turn, work.turn_id, with_for_update=True)
    ours = turn is not None and turn.state == "running" and turn.fence == work.fence
    return turn if ours else None


def _reply(session: OwnedSession, turn: Turn) -> Reply:
    mine = StoredMessage.conversation_id == turn.conversation_id
    its = StoredMessage.position == 2 * turn.arrival + 1
    row = session.exec(select(StoredMessage).where(mine, its)).one_or_none()
    if row is None:  # the conversation was deleted since the query before
        raise _unknown()
    return _to_reply(row, turn.success)


def _to_reply(row: StoredMessage, success: bool) -> Reply:
    calls = tuple(row.tool_calls or ())
    return Reply(row.content, row.conversation_id, row.id, False, success, calls)


def _calls(result: AgentResult) -> list[dict[str, Any]]:
    """The calls as they are kept: what was asked for and what came of it."""
    return [
        {
            "tool_name": one.tool_name,
            "parameters": one.parameters,
            "result": one.result,
            "duration_ms": one.duration_ms,
        }
        for one in result.tool_calls
    ]
