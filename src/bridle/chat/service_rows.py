"""The rows that every message writes and reads, in statements that are built once.

What happens seldom (a lease that is broken, a reply that is asked for again) goes through the ORM,
in `service_steps`. Everything blocks, and is about the session's owner only.
"""

from datetime import timedelta
from typing import Any

from sqlalchemy import func
from sqlmodel import col, delete, select, update

from bridle.chat.data import Conversation, Operation, OwnedSession, StoredMessage, Turn, utc_now
from bridle.chat.data.fixed import adding, changing, given, read, reading, table_of
from bridle.chat.data.tables import new_id
from bridle.chat.service_values import Asked
from bridle.chat.values import MessageHistory

OPEN = ("waiting", "running")  # named, so that an index finds them among thousands that are done
_TALK, _SAID, _TURN = (table_of(one).c for one in (Conversation, StoredMessage, Turn))
_ARRIVES = changing(
    Conversation,
    {"arrivals": _TALK.arrivals + 1, "updated_at": given("moment")},
    _TALK.id == given("place"),
    gives=_TALK.arrivals,
)
_WAITING = read(
    reading(Turn, (func.count(),), _TURN.conversation_id == given("place"), _TURN.state.in_(OPEN))
)
_BEFORE = read(
    reading(
        StoredMessage,
        (_SAID.role, _SAID.content, _SAID.created_at, _SAID.tool_calls),
        _SAID.conversation_id == given("place"),
        _SAID.position < given("position_own"),
    )
    .order_by(_SAID.position.desc())
    .limit(given("most"))
)
_DONE = changing(
    Turn,
    {"state": "done", "success": given("went_well"), "finished_at": given("moment")},
    _TURN.id == given("turn"),
    _TURN.fence == given("fenced"),
    _TURN.state == "running",
)
_NEW_TURN, _NEW_MESSAGE = adding(Turn), adding(StoredMessage)


def count_arrival(session: OwnedSession, conversation_id: str) -> int | None:
    """One more message in it, whose row is locked from here on; how many, or no conversation."""
    found = _ARRIVES.said(session, {"place": conversation_id, "moment": utc_now()})
    arrivals: int | None = found.scalar_one_or_none()
    return arrivals


def count_open(session: OwnedSession, conversation_id: str) -> int:
    """How many of its turns are not done."""
    return int(_WAITING.said(session, {"place": conversation_id}).scalar_one())


def keep_turn(
    session: OwnedSession, asked: Asked, place: tuple[str, int], lease: tuple[str, float] | None
) -> str:
    """The turn of a message at its place; with a lease it is that worker's at once. Its id."""
    zone, language = setting_of(asked)
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
    _NEW_TURN.said(session, row)
    return str(row["id"])


def keep_message(
    session: OwnedSession,
    conversation_id: str,
    position: int,
    role: str,
    content: str,
    calls: list[dict[str, Any]] | None = None,
) -> str:
    """A message at its place; where there is one already, it fails. Its id."""
    row = {
        "id": new_id(),
        "conversation_id": conversation_id,
        "position": position,
        "role": role,
        "content": content,
        "tool_calls": calls or None,
        "created_at": utc_now(),
    }
    _NEW_MESSAGE.said(session, row)
    return str(row["id"])


def sweep(session: OwnedSession, days: float) -> None:
    """Forget the owner's operations, and the keys of answered messages, that are older than that.

    They are there so that a message that is sent again is not done again. The messages stay.
    """
    until = utc_now() - timedelta(days=days)
    running = session.exec(select(col(Turn.id)).where(col(Turn.state).in_(OPEN))).all()
    old = col(Operation.created_at) < until, col(Operation.turn_id).not_in(running)
    session.exec(delete(Operation).where(*old))
    answered = col(Turn.key).is_not(None), col(Turn.finished_at) < until
    session.exec(update(Turn).where(*answered).values(key=None))


def end_turn(session: OwnedSession, turn_id: str, fence: int, success: bool) -> bool:
    """It is answered, if it still runs under that fence."""
    found = {"turn": turn_id, "fenced": fence, "went_well": success, "moment": utc_now()}
    return _DONE.said(session, found).rowcount == 1


def before(
    session: OwnedSession, conversation_id: str, arrival: int, count: int
) -> tuple[MessageHistory, ...]:
    """The last messages before a turn's own, oldest first: never more than `count`."""
    if arrival == 0:
        return ()
    asked = {"place": conversation_id, "position_own": 2 * arrival, "most": count}
    rows = _BEFORE.said(session, asked).all()
    return tuple(
        MessageHistory(role, content, at, tuple(calls) if calls else None)
        for role, content, at, calls in reversed(rows)
    )


def setting_of(asked: Asked) -> tuple[str, str]:
    """The caller's zone and language, as they can be kept."""
    return _plain(asked.setting.timezone, 64) or "UTC", _plain(asked.setting.language, 35)


def _plain(word: str, longest: int) -> str:
    """A word of the caller's as it can be kept, or nothing."""
    return word if word.isascii() and word.isprintable() and len(word) <= longest else ""
