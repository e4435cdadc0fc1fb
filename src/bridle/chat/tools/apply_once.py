"""Apply a tool call once, in one transaction, for one user.

The operation's row is written in the same transaction as the tool's changes: either both are stored
or neither is. If the same operation is requested again, that row gives the answer. Everything here
blocks and is called in a worker thread. Whatever goes wrong, the answer is a typed result with a
sentence for a person.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlmodel import Session

from bridle.chat.db.engine import READ_ONLY
from bridle.chat.db.session import (
    OwnedSession,
    owned_select,
    owned_session,
    parameter,
    prepare_insert,
    prepare_select,
    table_of,
)
from bridle.chat.db.tables import Operation, Turn, utc_now
from bridle.chat.errors import TROUBLE, Unavailable
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.source import failure, owner_words, success
from bridle.chat.tools.toolbox import Call, Tool, Toolbox, ToolFailed
from bridle.errors import ToolError
from bridle.workspace.text import one_line

_log = logging.getLogger(__name__)

_OPERATION = table_of(Operation).c
_FIND_OPERATION = prepare_select(
    owned_select(
        Operation,
        (_OPERATION.tool, _OPERATION.arguments, _OPERATION.result),
        _OPERATION.key == parameter("operation"),
    )
)
_INSERT_OPERATION = prepare_insert(Operation)


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """An applied operation: the tool, a hash of its arguments, and its result."""

    tool: str
    arguments: str
    result: dict[str, Any]


def find_operation(session: OwnedSession, key: str) -> RecordedOperation | None:
    """Return the owner's operation of that key, if it was applied."""
    row = _FIND_OPERATION.execute(session, {"operation": key}).one_or_none()
    return None if row is None else RecordedOperation(row.tool, row.arguments, row.result)


def record_operation(
    session: OwnedSession, key: str, turn_id: str, done: RecordedOperation
) -> None:
    """Store an applied operation. Fail if the key exists, which rolls back everything."""
    row = {"key": key, "turn_id": turn_id, "tool": done.tool, "arguments": done.arguments}
    _INSERT_OPERATION.execute(session, row | {"result": done.result, "created_at": utc_now()})


_TURN = table_of(Turn).c
_TURN_STATE = prepare_select(
    owned_select(Turn, (_TURN.state,), _TURN.id == parameter("turn")).with_for_update(read=True)
)


def is_turn_done(session: OwnedSession, turn_id: str) -> bool:
    """Is this turn answered? It cannot become so until the session's transaction ends.

    A turn that the service does not know, such as a run by hand, is never done.
    """
    if not turn_id:
        return False
    return _TURN_STATE.execute(session, {"turn": turn_id}).scalar_one_or_none() == "done"


Factory = Callable[[], Session]
_LARGEST = 1 << 18  # characters of a call's arguments
_NOT_YOURS = "A request cannot choose the user."


class ApplyOnce:
    """Applies the calls of a toolbox, each in a session of its own."""

    def __init__(self, toolbox: Toolbox, factory: Factory) -> None:
        self.toolbox = toolbox
        self._factory = factory

    def __call__(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Return the typed result of one call. Errors of tools and databases are not raised."""
        try:
            return self._apply(name, arguments, binding)
        except (DBAPIError, PoolTimeout, Unavailable) as error:
            _log.warning(
                "the tool %s found no database: %s", _short_name(name), type(error).__name__
            )
            if (kept := self._find_committed(name, arguments, binding)) is not None:
                return kept
        except Exception as error:  # the edge: a person reads a sentence, our own people find it
            _log.warning("the tool %s broke: %s", _short_name(name), type(error).__name__)
            _log.debug("the tool %s broke", _short_name(name), exc_info=True)
        return failure("processing_error", TROUBLE)

    def _apply(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        tool = self.toolbox.get(name)
        if tool is None:
            return failure("invalid_input", f"There is no tool {_short_name(name)!r}.")
        digest = _digest(arguments)
        if not digest:
            return failure("invalid_input", "The arguments cannot be read, or are too long.")
        if words := owner_words(arguments):
            return self._refuse(tool, digest, words, binding)
        if tool.info.reads:
            return self._read(tool, arguments, binding)
        try:
            return self._written(tool, arguments, digest, binding)
        except IntegrityError:
            if not binding.operation:
                raise
        return self._stored_result(tool, digest, binding)  # another worker was first with the same

    @contextmanager
    def _session(self, binding: Binding, *, reads: bool = False) -> Iterator[OwnedSession]:
        """Open a session, and close it even if its transaction could not begin."""
        with owned_session(self._factory(), binding.user_id) as session:
            if reads:
                session.connection(execution_options={READ_ONLY: True})
            yield session

    def _read(self, tool: Tool, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        with self._session(binding, reads=True) as session:
            found = _run_tool(tool, arguments, Call(session, binding))
            session.rollback()
            return found

    def _written(
        self, tool: Tool, arguments: dict[str, Any], digest: str, binding: Binding
    ) -> dict[str, Any]:
        with self._session(binding) as session:
            if binding.operation:
                known = find_operation(session, binding.operation)
                if known is not None:
                    return _replay(known, tool, digest)
                if is_turn_done(session, _turn_of(binding.operation)):
                    return failure("processing_error", TROUBLE)  # another worker ended the turn
            found = _run_tool(tool, arguments, Call(session, binding))
            if not found["success"]:
                session.rollback()
            if binding.operation:
                turn, done = (
                    _turn_of(binding.operation),
                    RecordedOperation(tool.info.name, digest, found),
                )
                record_operation(session, binding.operation, turn, done)
            session.commit()
            return found

    def _stored_result(self, tool: Tool, digest: str, binding: Binding) -> dict[str, Any]:
        with self._session(binding, reads=True) as session:
            known = find_operation(session, binding.operation)
            if known is None:
                raise Unavailable(TROUBLE)
            return _replay(known, tool, digest)

    def _find_committed(
        self, name: str, arguments: dict[str, Any], binding: Binding
    ) -> dict[str, Any] | None:
        """Return the stored result if a connection that was lost during commit did commit."""
        tool = self.toolbox.get(name)
        if tool is None or tool.info.reads or not binding.operation:
            return None
        try:
            return self._stored_result(tool, _digest(arguments), binding)
        except (DBAPIError, PoolTimeout, Unavailable):
            return None

    def _refuse(
        self, tool: Tool, digest: str, words: list[str], binding: Binding
    ) -> dict[str, Any]:
        """Refuse arguments that name a user, and record the attempt."""
        names = ", ".join(sorted({_short_name(word) for word in words})[:5])
        _log.warning("a call of %s tried to set %s and was refused", tool.info.name, names)
        found = failure(
            "invalid_input", _NOT_YOURS, refused=sorted({_short_name(one) for one in words})
        )
        key = f"refused:{uuid4()}"
        with self._session(binding) as session:
            done = RecordedOperation(tool.info.name, digest, found)
            record_operation(session, key, _turn_of(binding.operation), done)
            session.commit()
        return found


def _run_tool(tool: Tool, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    """Run the tool. What it wrote is in the session, but not committed."""
    try:
        data = tool.run(arguments, call)
        call.session.flush()
        return success(_to_json_value(data))
    except ToolFailed as error:
        about = {"field": error.field, "hint": error.hint}
        about = {name: text for name, text in about.items() if text}
        return failure(error.code, error.message, **about)
    except ToolError as error:
        return failure("invalid_input", one_line(error.message, 300))
    except UnicodeError:  # half a character, which nothing can keep
        return failure("invalid_input", "The arguments cannot be read.")


def _to_json_value(data: Any) -> Any:
    """Return a JSON value. Anything else is a mistake of the tool's author and fails here."""
    return json.loads(json.dumps(data, allow_nan=False))


def _replay(known: RecordedOperation, tool: Tool, digest: str) -> dict[str, Any]:
    if (known.tool, known.arguments) != (tool.info.name, digest):
        _log.warning("an operation of %s came again as another call", tool.info.name)
        return failure(
            "invalid_input", "This operation was requested before, with other arguments."
        )
    return dict(known.result)


def _turn_of(operation: str) -> str:
    """Return the turn of an operation: operations are named `turn:number`."""
    return operation.rpartition(":")[0]


def _digest(arguments: dict[str, Any]) -> str:
    """Return a hash of the arguments; empty if they are too long or not JSON."""
    try:
        text = json.dumps(arguments, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest() if len(text) <= _LARGEST else ""


def _short_name(name: str) -> str:
    return one_line(name, 60)
