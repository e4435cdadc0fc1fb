"""What the chat remembers, in SQLite or PostgreSQL: its tables, and sessions that belong to a user.

Importing this package imports SQLModel; nothing above imports it before it is needed.
"""

from bridle.chat.db.database import Database as Database
from bridle.chat.db.session import OwnedRow as OwnedRow
from bridle.chat.db.session import OwnedSession as OwnedSession
from bridle.chat.db.tables import Conversation as Conversation
from bridle.chat.db.tables import Moment as Moment
from bridle.chat.db.tables import Operation as Operation
from bridle.chat.db.tables import PendingConfirmation as PendingConfirmation
from bridle.chat.db.tables import Spending as Spending
from bridle.chat.db.tables import StoredMessage as StoredMessage
from bridle.chat.db.tables import Task as Task
from bridle.chat.db.tables import Turn as Turn
from bridle.chat.db.tables import utc_now as utc_now
