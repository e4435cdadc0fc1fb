"""Whether a turn is over: a worker that was thought dead and comes back applies no more."""

from bridle.chat.data.owned import OwnedSession
from bridle.chat.data.tables import Turn


def is_over(session: OwnedSession, turn_id: str) -> bool:
    """Was this turn answered already? Until the session's transaction ends, it will not be.

    What is no turn of the service's, such as a run by hand, is never over.
    """
    if not turn_id:
        return False
    turn = session.get(Turn, turn_id, with_for_update={"read": True})
    return turn is not None and turn.state == "done"
