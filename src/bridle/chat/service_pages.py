"""Reading back: a user's conversations and their messages, page by page.

A cursor is opaque to its reader and holds nothing but a place in the user's own list; one that
cannot be read is refused, and one of another user leads nowhere, since only own rows are seen.
"""

import base64
import binascii
from datetime import UTC, datetime

from sqlmodel import and_, col, delete, or_, select

from bridle.chat.data import Conversation, OwnedSession, PendingConfirmation, StoredMessage, Turn
from bridle.chat.refusals import MessageRefused, UnknownConversation
from bridle.chat.service_values import ConversationInfo, MessageInfo, Page

_ID = 36  # characters
UNKNOWN = "I couldn't find that conversation. Please start a new one."


def list_conversations(session: OwnedSession, cursor: str, limit: int) -> Page[ConversationInfo]:
    """The newest first."""
    when, name = col(Conversation.updated_at), col(Conversation.id)
    asked = select(Conversation).order_by(when.desc(), name.desc()).limit(limit + 1)
    if cursor:
        at, after = _read_moment(cursor)
        asked = asked.where(or_(when < at, and_(when == at, name < after)))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = _write(f"{shown[-1].updated_at.isoformat()} {shown[-1].id}") if rows[limit:] else ""
    return Page(tuple(map(_info, shown)), more)


def list_messages(
    session: OwnedSession, conversation_id: str, cursor: str, limit: int
) -> Page[MessageInfo]:
    """The last ones, oldest first; the next page holds what was before them."""
    find_conversation(session, conversation_id)
    place = col(StoredMessage.position)
    mine = StoredMessage.conversation_id == conversation_id
    asked = select(StoredMessage).where(mine).order_by(place.desc()).limit(limit + 1)
    if cursor:
        asked = asked.where(place < _read_number(cursor))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = _write(str(shown[-1].position)) if rows[limit:] else ""
    return Page(tuple(_message(one) for one in reversed(shown)), more)


def plain_id(conversation_id: str) -> str:
    """An id as it could be one. Raise `UnknownConversation` for what no database should see."""
    if not conversation_id or len(conversation_id) > _ID or not _is_plain(conversation_id):
        raise UnknownConversation(UNKNOWN)
    return conversation_id


def find_conversation(session: OwnedSession, conversation_id: str) -> ConversationInfo:
    """One of them. Raise `UnknownConversation`."""
    row = session.get(Conversation, conversation_id)
    if row is None:
        raise UnknownConversation(UNKNOWN)
    return _info(row)


def delete_conversation(session: OwnedSession, conversation_id: str) -> None:
    """With everything in it. Raise `UnknownConversation`.

    Its turns are locked first, as whoever ends one of them does: so neither waits for the other.
    """
    here = col(Turn.conversation_id) == conversation_id
    session.exec(select(Turn.id).where(here).order_by(col(Turn.arrival)).with_for_update()).all()
    row = session.get(Conversation, conversation_id, with_for_update=True)
    if row is None:
        raise UnknownConversation(UNKNOWN)
    asked = col(PendingConfirmation.conversation_id) == conversation_id
    session.exec(delete(PendingConfirmation).where(asked))
    session.delete(row)


def _info(row: Conversation) -> ConversationInfo:
    return ConversationInfo(row.id, row.title, row.created_at, row.updated_at)


def _message(row: StoredMessage) -> MessageInfo:
    calls = tuple(row.tool_calls or ())
    return MessageInfo(row.id, row.role, row.content, row.created_at, calls)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _write(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _bad(error) from error


def _read_moment(cursor: str) -> tuple[datetime, str]:
    when, _, name = _read(cursor).partition(" ")
    if not _is_plain(name):
        raise _bad(None)
    try:
        return datetime.fromisoformat(when).astimezone(UTC), name
    except (ValueError, OverflowError) as error:
        raise _bad(error) from error


def _read_number(cursor: str) -> int:
    number = _read(cursor)
    if not number.isdecimal() or len(number) > 9:
        raise _bad(None)
    return int(number)


def _bad(cause: Exception | None) -> MessageRefused:
    return MessageRefused("This page cannot be found. Please start from the first one.", cause)
