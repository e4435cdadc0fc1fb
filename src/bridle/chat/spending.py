"""What a user may use up: messages a minute, dollars a day. Counted in the user's own rows.

A user is charged in the same transaction in which the message is accepted, so that no number of
processes lets more through. A message that is answered again from its key costs nothing.
"""

from sqlmodel import col, delete

from bridle.chat.data import OwnedSession, Spent
from bridle.chat.data.fixed import changing, given, table_of
from bridle.chat.refusals import SpentOut, TooManyMessages
from bridle.chat.service_values import ServiceLimits

_MINUTE, _DAY = 60.0, 86_400.0
_SPENT = table_of(Spent).c
_COUNT = changing(
    Spent,
    {"messages": _SPENT.messages + 1},
    _SPENT.period == given("stretch"),
    _SPENT.messages < given("most"),
)


def charge_message(session: OwnedSession, limits: ServiceLimits, now: float) -> None:
    """One more message. Raise `TooManyMessages` or `SpentOut`, and charge nothing."""
    if limits.dollars_a_day:
        day = _row(session, "day", _DAY, now)
        if day.dollars >= limits.dollars_a_day:
            raise SpentOut(
                "You've used up today's allowance. Everything of yours is kept; "
                "please come back tomorrow.",
                retry_after=max(1.0, day.until - now),
            )
    if limits.messages_a_minute and not _counted(session, limits.messages_a_minute, now):
        minute = _row(session, "minute", _MINUTE, now)
        if minute.messages >= limits.messages_a_minute:
            raise TooManyMessages(
                "That's a lot of messages at once. Please wait a moment and send it again.",
                retry_after=max(1.0, minute.until - now),
            )
        minute.messages += 1


def _counted(session: OwnedSession, most: int, now: float) -> bool:
    """One more in this minute, in one query; not where it is the first or one too many."""
    here = {"stretch": f"minute:{int(now // _MINUTE)}", "most": most}
    return _COUNT.said(session, here).rowcount == 1


def charge_money(
    session: OwnedSession, limits: ServiceLimits, dollars: float | None, now: float
) -> None:
    """What a turn cost. Where nobody knows it, nothing is left of the user's day."""
    if dollars is None:
        if limits.dollars_a_day:
            day = _row(session, "day", _DAY, now)
            day.dollars = max(day.dollars, limits.dollars_a_day)
    elif dollars > 0:
        _row(session, "day", _DAY, now).dollars += dollars


def _row(session: OwnedSession, name: str, length: float, now: float) -> Spent:
    """The row of the stretch of time that it is now; those of the past go."""
    assert session.owner is not None
    number = int(now // length)
    key = (session.owner, f"{name}:{number}")
    found = session.get(Spent, key, with_for_update=True)
    if found is None:
        session.exec(delete(Spent).where(col(Spent.until) < now - _DAY))
        found = Spent(user_id=session.owner, period=key[1], until=(number + 1) * length)
        session.add(found)
        session.flush()
    return found
