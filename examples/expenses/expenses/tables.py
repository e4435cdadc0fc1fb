"""The table. `OwnedRow` gives every row its user, and sessions see the rows of one user only."""

from datetime import UTC, datetime

from bridle.chat import OwnedRow
from sqlmodel import Field


def now() -> datetime:
    return datetime.now(UTC)


class Expense(OwnedRow, table=True):
    """Money that somebody has spent."""

    id: int | None = Field(default=None, primary_key=True)
    what: str = Field(max_length=200)
    cents: int
    created_at: datetime = Field(default_factory=now)
