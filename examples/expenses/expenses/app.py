"""The application. `bridle chat-server --app expenses.app:app` serves it."""

from bridle.chat import ChatApp

from expenses.profile import PROFILE
from expenses.tables import Expense
from expenses.tools import toolbox


def app(database: str = "expenses.db", provider: str | None = None) -> ChatApp:
    """Build it on a SQLite file or a PostgreSQL URL, with a model such as `anthropic/MODEL`."""
    return ChatApp(PROFILE, toolbox, database, tables=[Expense], provider=provider)
