"""The values of the chat's API: what a client sends, and what it is shown. No routes here."""

from typing import Literal

from msgspec import Struct


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """Something a user says. Without a conversation, a new one begins.

    `timezone` is where the user is, for "tomorrow at five"; `language` in which the answer comes,
    where the message alone does not tell.
    """

    message: str
    conversation_id: str | None = None
    timezone: str = "UTC"
    language: str = ""


class ChatAnswer(Struct, frozen=True):
    """The reply, and where the conversation goes on."""

    response: str
    conversation_id: str


class ToolUse(Struct, frozen=True):
    """A tool that was used for a reply, and whether it worked."""

    tool_name: str
    success: bool
    duration_ms: int


class MessageView(Struct, frozen=True):
    """One message of a conversation."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: str
    tool_calls: tuple[ToolUse, ...]


class ConversationView(Struct, frozen=True):
    """One conversation of a list."""

    id: str
    title: str
    created_at: str
    updated_at: str


class Conversations(Struct, frozen=True):
    """The newest first; `next` is the cursor of the page after, or empty."""

    conversations: tuple[ConversationView, ...]
    next: str


class ConversationPage(Struct, frozen=True):
    """The last messages, oldest first; `next` is the cursor of those before them, or empty."""

    conversation: ConversationView
    messages: tuple[MessageView, ...]
    next: str


class TaskView(Struct, frozen=True):
    """A task. `due` is a day, or a moment with its zone; null where there is none."""

    id: int
    title: str
    notes: str
    priority: str
    due: str | None
    tags: tuple[str, ...]
    completed: bool
    completed_at: str | None
    created_at: str


class Tasks(Struct, frozen=True):
    """The oldest first; `open` and `done` count all of them, `next` is the cursor, or empty."""

    tasks: tuple[TaskView, ...]
    open: int
    done: int
    next: str


class Me(Struct, frozen=True):
    """Whom the token names; `tasks` says whether there is a list of tasks beside the chat."""

    user_id: str
    assistant: str
    tasks: bool
    longest_message: int


class About(Struct, frozen=True):
    """What the page shows about the assistant, before sign-in too.

    `tasks`: there is a list of tasks beside the chat. `languages` are those that the assistant
    understands; empty: any.
    """

    title: str
    opening: str
    about: str
    suggestions: tuple[str, ...]
    tasks: bool
    languages: tuple[str, ...]


class HealthStatus(Struct, frozen=True):
    """How the server is."""

    status: str


class EmptyEvent(Struct, frozen=True):
    """An event that says all with its name."""


class ReplyText(Struct, frozen=True):
    """A part of the reply."""

    text: str
