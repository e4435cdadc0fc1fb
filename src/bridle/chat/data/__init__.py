"""What the chat remembers, in SQLite or PostgreSQL: its tables, and sessions that belong to a user.

Importing this package imports SQLModel; nothing above imports it before it is needed.
"""

from bridle.chat.data.database import Database as Database
from bridle.chat.data.moment import Moment as Moment
from bridle.chat.data.moment import utc_now as utc_now
from bridle.chat.data.owned import Owned as Owned
from bridle.chat.data.owned import OwnedSession as OwnedSession
from bridle.chat.data.tables import Conversation as Conversation
from bridle.chat.data.tables import Operation as Operation
from bridle.chat.data.tables import PendingConfirmation as PendingConfirmation
from bridle.chat.data.tables import Spent as Spent
from bridle.chat.data.tables import StoredMessage as StoredMessage
from bridle.chat.data.tables import Task as Task
from bridle.chat.data.tables import Turn as Turn
