"""Whether a turn is over: a worker that was thought dead and comes back applies no more."""

from bridle.chat.data.fixed import given, read, reading, table_of
from bridle.chat.data.owned import OwnedSession
from bridle.chat.data.tables import Turn

_TURN = table_of(Turn).c
_STATE = read(reading(Turn, (_TURN.state,), _TURN.id == given("turn")).with_for_update(read=True))


def is_over(session: OwnedSession, turn_id: str) -> bool:
    """Was this turn answered already? Until the session's transaction ends, it will not be.

    What is no turn of the service's, such as a run by hand, is never over.
    """
    if not turn_id:
        return False
    return _STATE.said(session, {"turn": turn_id}).scalar_one_or_none() == "done"
