"""Count what each user uses up: messages a minute and dollars a day, in the user's own rows.

A user is charged in the transaction that accepts the message, so the limits hold for any number
of processes. A message that is answered again because of its key costs nothing.
"""

from sqlmodel import col, delete

from bridle.chat.db import OwnedSession, Spending
from bridle.chat.db.session import parameter, prepare_update, table_of
from bridle.chat.errors import AllowanceSpent, TooManyMessages
from bridle.chat.values import ServiceLimits

_MINUTE, _DAY = 60.0, 86_400.0
_SPENT = table_of(Spending).c
_COUNT = prepare_update(
    Spending,
    {"messages": _SPENT.messages + 1},
    _SPENT.period == parameter("stretch"),
    _SPENT.messages < parameter("most"),
)


def charge_message(session: OwnedSession, limits: ServiceLimits, now: float) -> None:
    """Count one more message. Raise `TooManyMessages` or `AllowanceSpent`, and count nothing."""
    if limits.dollars_a_day:
        day = _period_row(session, "day", _DAY, now)
        if day.dollars >= limits.dollars_a_day:
            raise AllowanceSpent(
                "You've used up today's allowance. Everything of yours is kept; "
                "please come back tomorrow.",
                retry_after=max(1.0, day.until - now),
            )
    if limits.messages_a_minute and not _count_in_minute(session, limits.messages_a_minute, now):
        minute = _period_row(session, "minute", _MINUTE, now)
        if minute.messages >= limits.messages_a_minute:
            raise TooManyMessages(
                "That's a lot of messages at once. Please wait a moment and send it again.",
                retry_after=max(1.0, minute.until - now),
            )
        minute.messages += 1


def _count_in_minute(session: OwnedSession, most: int, now: float) -> bool:
    """Count one more in this minute, in one query. Return False if it is the first or too many."""
    here = {"stretch": f"minute:{int(now // _MINUTE)}", "most": most}
    return _COUNT.execute(session, here).rowcount == 1


def charge_money(
    session: OwnedSession, limits: ServiceLimits, dollars: float | None, now: float
) -> None:
    """Charge what a turn cost. An unknown cost uses up the user's allowance for the day."""
    if dollars is None:
        if limits.dollars_a_day:
            day = _period_row(session, "day", _DAY, now)
            day.dollars = max(day.dollars, limits.dollars_a_day)
    elif dollars > 0:
        _period_row(session, "day", _DAY, now).dollars += dollars


def _period_row(session: OwnedSession, name: str, length: float, now: float) -> Spending:
    """Return the row of the current period, and delete old ones when a new one begins."""
    assert session.owner is not None
    number = int(now // length)
    key = (session.owner, f"{name}:{number}")
    found = session.get(Spending, key, with_for_update=True)
    if found is None:
        session.exec(delete(Spending).where(col(Spending.until) < now - _DAY))
        found = Spending(user_id=session.owner, period=key[1], until=(number + 1) * length)
        session.add(found)
        session.flush()
    return found
