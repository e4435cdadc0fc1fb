"""The first message of a worker, made as quick as the others: its queries, gone through once.

A turn is taken from its arrival to its reply and then taken back, so that tables are mapped,
queries compiled and a connection opened before anybody waits. Nothing of it is kept.
"""

import logging
from uuid import uuid4

from bridle.chat.data import Database, OwnedSession
from bridle.chat.service_steps import Desk, arrive, finish
from bridle.chat.service_values import Asked, ServiceLimits
from bridle.chat.values import AgentResult, ToolCallRecord

_log = logging.getLogger(__name__)


class _TakenBack(Exception):
    """It was only to warm up."""


def warm_up(database: Database, limits: ServiceLimits) -> None:
    """Go through a turn, and take it back. Blocks."""
    nobody = f"warm-up-{uuid4()}"
    call = ToolCallRecord("nothing", {}, {"success": True, "data": None})
    result = AgentResult(True, "Hello!", (call,))

    def turn(session: OwnedSession) -> None:
        desk = Desk("warm-up", limits, database.now(session))
        place = arrive(session, Asked(nobody, "Hello", key="warm-up"), desk)
        for _ in range(2):
            if place.work is not None:
                finish(session, place.work, result, desk)
                session.flush()
            place = arrive(session, Asked(nobody, "Hello", place.conversation_id), desk)
        raise _TakenBack

    try:
        with database.owned(nobody) as session, session.begin():
            turn(session)
    except _TakenBack:
        return
    except Exception as error:  # it is there for speed alone
        _log.warning("the chat could not warm up: %s", type(error).__name__)
