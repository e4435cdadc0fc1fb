"""The tool operations that were applied to a user's data, each under its key."""

from dataclasses import dataclass
from typing import Any

from bridle.chat.data.fixed import adding, given, read, reading, table_of
from bridle.chat.data.moment import utc_now
from bridle.chat.data.owned import OwnedSession
from bridle.chat.data.tables import Operation

_OPERATION = table_of(Operation).c
_KNOWN = read(
    reading(
        Operation,
        (_OPERATION.tool, _OPERATION.arguments, _OPERATION.result),
        _OPERATION.key == given("operation"),
    )
)
_NEW = adding(Operation)


@dataclass(frozen=True, slots=True)
class Known:
    """What was called with what (a hash of it), and what it answered."""

    tool: str
    arguments: str
    result: dict[str, Any]


def known_operation(session: OwnedSession, key: str) -> Known | None:
    """The owner's operation of that key, if it was applied."""
    row = _KNOWN.said(session, {"operation": key}).one_or_none()
    return None if row is None else Known(row.tool, row.arguments, row.result)


def keep_operation(session: OwnedSession, key: str, turn_id: str, done: Known) -> None:
    """It was applied. A key that is there already fails, and everything with it."""
    row = {"key": key, "turn_id": turn_id, "tool": done.tool, "arguments": done.arguments}
    _NEW.said(session, row | {"result": done.result, "created_at": utc_now()})
