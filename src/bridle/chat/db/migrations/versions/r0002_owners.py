"""Every row stays with its user: row-level security on PostgreSQL, a trigger on SQLite."""

from alembic import op

from bridle.chat.db.row_security import secure

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = ("conversation", "message", "turn", "task", "confirmation", "operation", "spent")


def upgrade() -> None:
    """Guard the tables there are."""
    secure(op.get_bind(), [f"chat_{name}" for name in _TABLES])
