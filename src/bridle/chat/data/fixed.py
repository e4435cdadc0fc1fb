"""Statements that are built once, for the way that every message takes.

Each is about one table and says in itself whose rows it is about: the owner is bound by the session
in which it is said, and never by who says it. There is no ORM in its way, so that it costs little
more than the driver. On PostgreSQL the database checks the rows again, like everybody's.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, Select, Table, bindparam, insert, select, update
from sqlalchemy.sql.base import Executable

from bridle.chat.data.owned import Owned, OwnedSession
from bridle.chat.refusals import ForeignRow

_WHOSE = "whose"


class Fixed:
    """A statement over the owner's rows of one table. Made by the functions below."""

    def __init__(self, statement: Executable, owner: str) -> None:
        self._statement = statement
        self._owner = owner  # the name under which it takes the owner

    def said(self, session: OwnedSession, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Say it in the session's transaction, about the session's owner and nobody else."""
        if session.owner is None:
            raise ForeignRow("a session of nobody sees and writes no rows")
        bound = {**values, self._owner: session.owner}
        return session.bare().execute(self._statement, bound)


def reading(kind: type[Owned], columns: tuple[Any, ...], *where: Any) -> Select[Any]:
    """A query over the owner's rows; `Fixed` once it is ordered and limited."""
    return select(*columns).where(_mine(kind), *where)


def read(query: Select[Any]) -> Fixed:
    """A query of `reading`, as a statement that is kept. One that asks for nobody is a mistake."""
    if _WHOSE not in query.compile().params:
        raise ForeignRow("a fixed query has to say whose rows it is about")
    return Fixed(query, _WHOSE)


def changing(kind: type[Owned], values: Mapping[str, Any], *where: Any, gives: Any = None) -> Fixed:
    """A change of the owner's rows; `gives` is a column that it answers with."""
    change = update(table_of(kind)).where(_mine(kind), *where).values(dict(values))
    return Fixed(change if gives is None else change.returning(gives), _WHOSE)


def adding(kind: type[Owned]) -> Fixed:
    """A new row of the owner's. Every column is given; there are no defaults here."""
    return Fixed(insert(table_of(kind)), "user_id")


def table_of(kind: type[Owned]) -> Table:
    """The table of a class."""
    table: Table = kind.__table__  # type: ignore[attr-defined]
    return table


def given(name: str) -> Any:
    """A place in a statement that is filled when it is said."""
    return bindparam(name)


def _mine(kind: type[Owned]) -> ColumnElement[bool]:
    mine: ColumnElement[bool] = table_of(kind).c.user_id == bindparam(_WHOSE)
    return mine
