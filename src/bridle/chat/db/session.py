"""Rows that belong to one user, and a session that never reads or writes anybody else's.

A session has one owner for its whole life. Every query through it is restricted to that owner's
rows, every row it writes must be the owner's, and a session without an owner sees no rows at all.
Anything but a query over mapped classes is refused, because it could not be restricted. On
PostgreSQL the database checks all of it again (see `row_security`).

Statements of the way that every message takes are built once (`Statement`) and bypass the ORM: they
cost little more than the driver. The session binds their owner; the caller cannot.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    Table,
    TableClause,
    TextClause,
    bindparam,
    event,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.orm import ORMExecuteState, UOWTransaction, with_loader_criteria
from sqlalchemy.sql.base import Executable, ExecutableOption
from sqlalchemy.sql.elements import BinaryExpression, ColumnClause
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import custom_op
from sqlalchemy.sql.selectable import (
    AliasedReturnsRows,
    HasHints,
    HasPrefixes,
    HasSuffixes,
    SelectBase,
)
from sqlalchemy.sql.visitors import iterate
from sqlmodel import Field, Session, SQLModel

from bridle.chat.errors import ForeignRow

LONGEST_USER = 200  # characters of a user's name
# functions of a database that run what they are told, or change for whom they run
_RUNS = re.compile(
    r"set_config|(?:query|table|cursor|schema|database)_to_xml|dblink|load_ext", re.I
)


def _no_owner() -> Any:
    """Give a new row no owner; the session sets it."""
    return None


class OwnedRow(SQLModel):
    """A table in which each row belongs to a user. Inherit from it with `table=True`."""

    user_id: str = Field(default_factory=_no_owner, max_length=LONGEST_USER, index=True)


_BEGINS = text(
    "SELECT set_config('app.user_id', :owner, true), extract(epoch FROM clock_timestamp())"
)


class OwnedSession(Session):
    """A session over the rows of one user; of no user until `own` is called."""

    owner: str | None = None
    clock: Any = None  # the server's, when the transaction began; None where it was not asked

    def scope(self, tables: set[str] | None) -> list[ExecutableOption]:
        """Return the options that restrict a query over these tables, or over any."""
        return [
            _restrict(one, self.owner)
            for one in _mapped_classes(OwnedRow)
            if tables is None or one.__tablename__ in tables
        ]

    def own(self, user_id: str) -> "OwnedSession":
        """Set the owner of this session. It cannot be changed afterwards."""
        if not user_id or len(user_id) > LONGEST_USER or not _is_storable(user_id):
            raise ForeignRow("a database session must belong to a user")
        if self.owner not in (None, user_id):
            raise ForeignRow("the owner of a database session cannot be changed")
        self.owner = user_id
        if self.in_transaction():
            _set_database_user(self)
        return self

    def bulk_save_objects(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: bulk methods bypass the check of the rows' owner."""
        raise ForeignRow("add rows one by one, so that the owner of each can be checked")

    def connection(self, bind_arguments: Any = None, execution_options: Any = None) -> Connection:
        """Begin a transaction with options. Refuse a connection for other SQL."""
        if not execution_options:
            raise ForeignRow("only queries over mapped classes can be restricted to a user")
        return super().connection(bind_arguments, execution_options)

    def bare(self) -> Connection:
        """Return the connection itself, for what is not about a user's rows, such as the clock."""
        return super().connection()

    bulk_insert_mappings = bulk_save_objects
    bulk_update_mappings = bulk_save_objects


def owned_session(made: Session, user_id: str) -> OwnedSession:
    """Restrict a session to one user's rows; replace a plain one by a session on its database."""
    if isinstance(made, OwnedSession):
        return made.own(user_id)
    bind = made.get_bind()
    made.close()
    return OwnedSession(bind, expire_on_commit=False).own(user_id)


def _is_storable(name: str) -> bool:
    """Can a database store the name? Zero bytes and half characters cannot be stored."""
    return "\0" not in name and not any("\ud800" <= character <= "\udfff" for character in name)


def _mapped_classes(kind: type[OwnedRow]) -> Iterator[type[OwnedRow]]:
    """Yield every mapped class below it, including those of applications."""
    for one in kind.__subclasses__():
        if hasattr(one, "__table__"):
            yield one
        yield from _mapped_classes(one)


def _restrict(kind: type[OwnedRow], owner: str | None) -> ExecutableOption:
    """Restrict a class to its owner's rows, including its aliases in joins."""
    if owner is None:
        return with_loader_criteria(kind, lambda cls: cls.user_id.is_(None), include_aliases=True)
    return with_loader_criteria(kind, lambda cls: cls.user_id == owner, include_aliases=True)


def _queried_tables(statement: Any) -> set[str] | None:
    """Return the tables of a query if all are queried by their classes; otherwise None.

    `get` names columns and so their table without the class. That is allowed if the class is in
    the same query.
    """
    by_class: set[str] = set()
    plain: set[str] = set()
    inner = columns = False
    for one in iterate(statement):
        if isinstance(one, TextClause) or _is_raw_sql(one):
            return None
        if isinstance(one, SelectBase | AliasedReturnsRows) and one is not statement:
            inner = True
        if isinstance(one, Column | TableClause):
            name = _table_name(one if isinstance(one, TableClause) else one.table)
            known = "parententity" in one._annotations
            (by_class if known else plain).add(name)
            columns |= not known and isinstance(one, Column)
    return by_class if plain <= by_class and not (columns and inner) else None


def _table_name(source: Any) -> str:
    """Return the name of the table behind any number of aliases."""
    while isinstance(source, AliasedReturnsRows):
        source = source.element
    return str(getattr(source, "name", ""))


def _is_raw_sql(one: Any) -> bool:
    """Is it raw SQL, or a subquery on a table without its class?"""
    if isinstance(one, ColumnClause):
        return bool(one.is_literal and one.name != "*")
    if isinstance(one, BinaryExpression):
        return isinstance(one.operator, custom_op) and "(" in one.operator.opstring
    if isinstance(one, FunctionElement):
        return _RUNS.match(str(getattr(one, "name", ""))) is not None
    if isinstance(one, TableClause):
        return not isinstance(one, Table)  # a table by its name alone
    if isinstance(one, HasPrefixes | HasSuffixes | HasHints) and _has_raw_text(one):
        return True
    if not isinstance(one, Select) or one._propagate_attrs.get("compile_state_plugin") == "orm":
        return False
    return any(isinstance(source, TableClause) for source in one.get_final_froms())


def _has_raw_text(query: Any) -> bool:
    """Does the query contain prefixes, suffixes or hints in raw SQL?"""
    places = ("_prefixes", "_suffixes", "_hints", "_statement_hints")
    return any(getattr(query, place, ()) for place in places)


def _set_database_user(session: OwnedSession) -> None:
    """Set the user for this transaction on PostgreSQL."""
    connection = session.bare()
    if connection.dialect.name == "postgresql":
        scope = text("SELECT set_config('app.user_id', :owner, true)")
        connection.execute(scope, {"owner": getattr(session, "owner", None) or ""})


@event.listens_for(OwnedSession, "after_begin")
def _after_begin(session: OwnedSession, transaction: Any, connection: Any) -> None:
    if session.owner is not None and connection.dialect.name == "postgresql":
        session.clock = connection.execute(_BEGINS, {"owner": session.owner}).one()[1]


@event.listens_for(OwnedSession, "do_orm_execute")
def _restrict_query(state: ORMExecuteState) -> None:
    """Restrict every select, update and delete to the owner's rows."""
    many = state.is_executemany or "dml_strategy" in state.execution_options  # rows by their keys
    known = state.is_orm_statement and not state.is_insert and not many
    asked = _queried_tables(state.statement) if known else None
    if asked is None:
        raise ForeignRow("only queries over mapped classes can be restricted to a user")
    assert isinstance(state.session, OwnedSession)
    more = state.statement._with_options
    state.statement = state.statement.options(*state.session.scope(None if more else asked))


@event.listens_for(OwnedSession, "before_attach")
def _check_attached(session: OwnedSession, instance: object) -> None:
    """Refuse to attach a row of another user."""
    if not isinstance(instance, OwnedRow):
        return
    if session.owner is None:
        raise ForeignRow("a session without an owner cannot write rows")
    whose = inspect(instance).dict.get("user_id")
    if whose not in (None, session.owner):
        raise ForeignRow("this row belongs to another user")


@event.listens_for(OwnedSession, "before_flush")
def _check_flushed(session: OwnedSession, context: UOWTransaction, instances: Any) -> None:
    for row in (*session.new, *session.dirty, *session.deleted):
        if not isinstance(row, OwnedRow):
            continue
        known = inspect(row)
        if known.dict.get("user_id") is None and row in session.new:
            row.user_id = session.owner or ""
        before = known.attrs.user_id.history.deleted
        if row.user_id != session.owner or any(owner != session.owner for owner in before):
            raise ForeignRow("this row belongs to another user")


_OWNER = "whose"


class Statement:
    """A prepared statement over the owner's rows of one table."""

    def __init__(self, statement: Executable, owner: str) -> None:
        self._statement = statement
        self._owner = owner  # the name under which it takes the owner

    def execute(self, session: OwnedSession, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Execute it in the session's transaction, for the session's owner."""
        if session.owner is None:
            raise ForeignRow("a session without an owner cannot read or write rows")
        bound = {**values, self._owner: session.owner}
        return session.bare().execute(self._statement, bound)


def owned_select(kind: type[OwnedRow], columns: tuple[Any, ...], *where: Any) -> Select[Any]:
    """Return a query over the owner's rows, for `prepare_select`."""
    return select(*columns).where(_owned_by_parameter(kind), *where)


def prepare_select(query: Select[Any]) -> Statement:
    """Prepare a query of `owned_select`. Raise `ForeignRow` if it does not name the owner."""
    if _OWNER not in query.compile().params:
        raise ForeignRow("a prepared query must name the owner of the rows")
    return Statement(query, _OWNER)


def prepare_update(
    kind: type[OwnedRow], values: Mapping[str, Any], *where: Any, gives: Any = None
) -> Statement:
    """Prepare a change of the owner's rows; `gives` is a column to return."""
    change = update(table_of(kind)).where(_owned_by_parameter(kind), *where).values(dict(values))
    return Statement(change if gives is None else change.returning(gives), _OWNER)


def prepare_insert(kind: type[OwnedRow]) -> Statement:
    """Prepare the insertion of a row of the owner. Every column must be given."""
    return Statement(insert(table_of(kind)), "user_id")


def table_of(kind: type[OwnedRow]) -> Table:
    """Return the table of a class."""
    table: Table = kind.__table__  # type: ignore[attr-defined]
    return table


def parameter(name: str) -> Any:
    """Return a parameter that is bound when the statement is executed."""
    return bindparam(name)


def _owned_by_parameter(kind: type[OwnedRow]) -> ColumnElement[bool]:
    mine: ColumnElement[bool] = table_of(kind).c.user_id == bindparam(_OWNER)
    return mine
