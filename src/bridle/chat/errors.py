"""Errors of the chat: one branch each of the tree in `bridle.errors`.

SessionError
├── UnknownConversation   it does not exist, or belongs to another user: nobody learns which
├── MessageRefused        the message is empty, too long, or contains unreadable characters
├── KeyReused             the same Idempotency-Key came with another message
└── ForeignRow            code tried to read or write rows of another user; never a person's fault
BudgetReached
├── TooManyMessages       the user's rate limit; `retry_after` says when     (rate_limit, retryable)
├── QueueFull             too many messages wait for their turn              (rate_limit, retryable)
└── AllowanceSpent        the user's money for the day; `retry_after` says when (rate_limit)
StoreFailed
└── Unavailable           the database cannot be reached                       (retryable)

The message of each error is a sentence for the person who chats; details go to the log only.
"""

from bridle.errors import BudgetReached, SessionError, StoreFailed

UNKNOWN_CONVERSATION = "I couldn't find that conversation. Please start a new one."
TROUBLE = "I'm having a bit of trouble right now. Please try again."


class UnknownConversation(SessionError):
    """The conversation does not exist, or belongs to another user."""

    hint = "Leave the conversation out to start a new one."


class MessageRefused(SessionError):
    """The message cannot be answered as it is."""


class KeyReused(SessionError):
    """The same idempotency key came with another message."""

    hint = "Use a new Idempotency-Key for each new message."


class ForeignRow(SessionError):
    """Code tried to read or write another user's rows."""


class TooManyMessages(BudgetReached):
    """The user sends faster than allowed."""

    class_kind = "rate_limit"
    retryable = True


class QueueFull(BudgetReached):
    """Too many messages are waiting."""

    class_kind = "rate_limit"
    retryable = True


class AllowanceSpent(BudgetReached):
    """The user's money for the day is spent."""

    class_kind = "rate_limit"


class Unavailable(StoreFailed):
    """The database cannot be reached, or did not answer in time."""

    retryable = True
    hint = "Nothing was half done. Send the message again with the same Idempotency-Key."
