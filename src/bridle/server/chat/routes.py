"""The routes of the chat: say something, look back, the list beside it, the page."""

from functools import lru_cache, partial
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta
from sqlmodel import col, select
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from bridle.chat.db import Conversation, OwnedSession
from bridle.chat.values import ConversationInfo, Locale, MessageInfo
from bridle.server.auth import Caller
from bridle.server.chat.context import ChatContext
from bridle.server.chat.problems import CODES, problem_error
from bridle.server.chat.schemas import (
    About,
    ChatAnswer,
    ConversationPage,
    Conversations,
    ConversationView,
    EmptyEvent,
    HealthStatus,
    Me,
    Message,
    MessageView,
    ReplyText,
    Tasks,
    ToolUse,
)
from bridle.server.chat.streaming import events, reply_events, wants_stream
from bridle.server.chat.task_events import Status, tasks
from bridle.server.openapi import ApiInfo, Schema, one_of, openapi_document
from bridle.server.problems import Problem
from bridle.server.routes.info import page_response
from bridle.server.routing import JSON, Header, Reply, Routes
from bridle.server.sse import StreamResponse

routes = Routes("Chat")
stand_alone_routes = Routes("Chat")

Cursor = Annotated[str, Meta(max_length=500)]
Count = Annotated[int, Meta(ge=1, le=100)]
Key = Annotated[str, Meta(max_length=255), Header("Idempotency-Key")]
_OWN = ("other_user", "server_stopping")
_FOUND = (*_OWN, "unknown_conversation")
STREAM = "text/event-stream"


@routes.post(
    "/api/{user_id}/chat",
    role="watch",
    is_prompt=True,
    answers=ChatAnswer,
    streams="ReplyEvent",
    refuses=(*_FOUND, "message_refused", "idempotency_conflict"),
)
async def send_message(
    context: ChatContext, request: Request, user_id: str, body: Message, idempotency_key: Key = ""
) -> Reply | StreamResponse:
    """Send a message and get the reply.

    With `Accept: text/event-stream` the reply comes as a stream: `accepted`, `text` as the model
    writes it, and `done` with the whole reply. The same Idempotency-Key with the same message again
    gets the same reply, and nothing is done twice.
    """
    if context.stopping:
        raise problem_error(
            "server_stopping", "The chat is being shut down.", "Try again in a moment."
        )
    reply_to_message = partial(
        context.reply,
        user_id,
        body.message,
        body.conversation_id or None,
        key=idempotency_key,
        locale=Locale(_zone(body.timezone), _language(body.language)),
    )
    if wants_stream(request.headers.get("accept", "")):
        return await events(reply_events(reply_to_message), context, request)
    reply = await reply_to_message()
    headers = {"idempotent-replayed": "true"} if reply.replayed else {}
    return Reply(ChatAnswer(reply.response, reply.conversation_id), headers=headers)


@routes.get("/api/{user_id}/conversations", role="watch", refuses=(*_OWN, "message_refused"))
async def list_conversations(
    context: ChatContext, user_id: str, cursor: Cursor = "", limit: Count = 20
) -> Conversations:
    """List your conversations, the newest first."""
    found = await context.app.service.conversations(user_id, cursor, limit)
    return Conversations(tuple(map(_conversation, found.items)), found.next)


@routes.get(
    "/api/{user_id}/conversations/{conversation_id}",
    role="watch",
    refuses=(*_FOUND, "message_refused"),
)
async def get_conversation(
    context: ChatContext,
    user_id: str,
    conversation_id: str,
    cursor: Cursor = "",
    limit: Count = 50,
) -> ConversationPage:
    """Get the last messages of a conversation.

    Further pages go back in time.
    """
    about = await context.app.service.about(user_id, conversation_id)
    found = await context.app.service.conversation(user_id, conversation_id, cursor, limit)
    return ConversationPage(_conversation(about), tuple(map(_message, found.items)), found.next)


@routes.delete(
    "/api/{user_id}/conversations/{conversation_id}", role="watch", status=204, refuses=_FOUND
)
async def delete_conversation(context: ChatContext, user_id: str, conversation_id: str) -> None:
    """Delete a conversation and its messages.

    What was done in it stays done.
    """
    await context.app.service.delete(user_id, conversation_id)


@routes.get("/api/{user_id}/tasks", role="watch", refuses=(*_OWN, "not_found"))
async def list_tasks(
    context: ChatContext,
    user_id: str,
    status: Status = "all",
    cursor: Cursor = "",
    limit: Count = 100,
) -> Tasks:
    """List your tasks, the oldest first."""
    _check_tasks(context)
    return await context.app.database.run(
        user_id, lambda session: tasks(session, status, cursor, limit), reads=True
    )


@routes.get(
    "/api/{user_id}/tasks/events",
    role="watch",
    media=STREAM,
    shape="TaskEvent",
    refuses=(*_OWN, "not_found", "too_many_streams"),
)
async def stream_tasks(context: ChatContext, request: Request, user_id: str) -> StreamResponse:
    """Watch your tasks.

    The list comes as a server-sent event, and again whenever it has changed.
    """
    _check_tasks(context)
    return await events(context.watching.stream(user_id), context, request)


def _check_tasks(context: ChatContext) -> None:
    if not context.has_tasks:
        raise problem_error("not_found", "This assistant keeps no tasks.", "Use the chat.")


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        raise problem_error(
            "invalid_request", "There is no such time zone.", "Name one as in Europe/Zurich."
        ) from None


def _language(name: str) -> str:
    if len(name) > 35 or not all(one.isalnum() or one in "-_" for one in name):
        raise problem_error(
            "invalid_request", "There is no such language.", "Name one as in en or pt-BR."
        )
    return name


def _conversation(one: ConversationInfo) -> ConversationView:
    return ConversationView(
        one.id, one.title, one.created_at.isoformat(), one.updated_at.isoformat()
    )


def _message(one: MessageInfo) -> MessageView:
    used = tuple(
        ToolUse(
            str(call.get("tool_name", "")),
            bool((call.get("result") or {}).get("success")),
            int(call.get("duration_ms") or 0),
        )
        for call in one.tool_calls
    )
    role = "assistant" if one.role == "assistant" else "user"
    return MessageView(one.id, role, one.content, one.created_at.isoformat(), used)  # type: ignore[arg-type] # one of two words


_PREFIX = "/chat"
_LOGO = "/favicon.svg"


@routes.get("/api/chat/health", role=None)
async def get_health() -> HealthStatus:
    """Check whether the server is running."""
    return HealthStatus("ok")


@routes.get("/api/chat/ready", role=None, refuses=("server_stopping",))
async def get_readiness(context: ChatContext) -> HealthStatus:
    """Check whether the server accepts messages."""
    if context.stopping:
        raise problem_error(
            "server_stopping", "The chat is being shut down.", "Try again in a moment."
        )
    await context.app.database.run("ready", _look, reads=True)
    return HealthStatus("ready")


def _look(session: OwnedSession) -> None:
    session.exec(select(col(Conversation.id)).limit(1)).first()


@routes.get("/api/chat/me", role="watch")
async def get_current_user(context: ChatContext, caller: Caller) -> Me:
    """Get the user that the token names."""
    profile = context.app.runner.profile
    longest = context.app.service.limits.message
    return Me(caller.name, profile.name, context.has_tasks, longest)


@routes.get("/api/chat/about", role=None)
async def get_assistant(context: ChatContext) -> About:
    """Get the name of the assistant, and how a conversation can begin."""
    profile = context.app.runner.profile
    return About(
        context.title,
        profile.opening,
        profile.about,
        profile.suggestions,
        context.has_tasks,
        context.app.runner.languages,
    )


@lru_cache(4)
def _document(app: Starlette) -> bytes:
    """The OpenAPI document of an application, made once."""
    return openapi_document(app.routes, CHAT_API)


@routes.get("/api/chat/openapi.json", role="watch", shape="any")
async def get_openapi(request: Request) -> Response:
    """Get this document."""
    return Response(_document(request.app), media_type=JSON)


@routes.get("/chat", role=None, media="text/html", shape="page", hidden=True)
@routes.get("/chat/favicon.svg", role=None, media="text/html", shape="page", hidden=True)
@routes.get("/chat/assets/{name:path}", role=None, media="text/html", shape="page", hidden=True)
async def get_page(context: ChatContext, request: Request) -> Response:
    """The page, and its files."""
    path = request.scope["path"].removeprefix(_PREFIX) or "/"
    leaf = context.logo if path == _LOGO else context.page.leaf(path)
    if leaf is None:
        raise problem_error("not_found", "There is no such file.", "Open /chat for the page.")
    return page_response(leaf, request)


@stand_alone_routes.get("/", role=None, hidden=True)
async def redirect_to_page() -> Response:
    """The page is the first thing where the chat stands alone."""
    return Response(status_code=307, headers={"location": _PREFIX}, media_type="text/html")


_SENT = (
    *("ChatAnswer", "ToolUse", "MessageView", "ConversationView", "Conversations"),
    *("ConversationPage", "TaskView", "Tasks", "Me", "About", "HealthStatus", "ReplyText"),
)
_SCHEMES: Schema = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JSON Web Token. `sub` is the user, and `exp` says how long it is valid.",
    }
}
_INFO = """
A chat for many users, each with their own data.

Each request needs a JSON Web Token (`Authorization: Bearer …`) that names the user in the path.
Errors are problem details (RFC 9457) with a stable `code`, a `detail` and a `hint`. Each response
has the ID of its request in `X-Request-ID`; a client may send its own. Sending a message takes an
`Idempotency-Key`. All paths are also served without `/v1`.
""".strip()
_FIELDS = {
    "/user_id": "The user that the token names.",
    "/conversation_id": "The ID of the conversation.",
    "user_id": "The user that the token names.",
    "conversation_id": "The ID of the conversation. Without one, a new conversation begins.",
    "?limit": "The largest number of results.",
    "?cursor": "Where the page starts: `next` of the page before.",
    "?status": "Only tasks that are open, or only those that are done.",
    "?idempotency-key": "Any text that is new for each message, such as a UUID. If the same key "
    "comes again with the same message, the same reply is returned and nothing is done twice.",
    "id": "The ID.",
    "title": "A short title.",
    "message": "What the user says.",
    "response": "The reply.",
    "role": "Who said it.",
    "content": "The text of the message.",
    "created_at": "When it was created (ISO 8601).",
    "updated_at": "When it last changed (ISO 8601).",
    "tool_name": "The name of the tool.",
    "success": "Whether it worked.",
    "duration_ms": "How long it took, in milliseconds.",
    "messages": "The messages, the oldest first.",
    "conversations": "The conversations, the newest first.",
    "tasks": "The tasks, the oldest first.",
    "due": "The day or moment when the task is due, or null.",
    "completed": "Whether the task is done.",
    "text": "The next part of the reply.",
    "detail": "What happened, in a sentence.",
    "hint": "What to do next.",
    "code": "The stable code of the problem.",
    "status": "The HTTP status, or how the server is.",
    "assistant": "The name of the assistant.",
}
_EXAMPLES: dict[Any, Any] = {
    Message: Message("add buy milk tomorrow at 5pm", timezone="Europe/Berlin"),
    ChatAnswer: ChatAnswer("Got it! Added 'buy milk'.", "6f8a2c1e"),
}


def _adjust(found: dict[str, Schema]) -> dict[str, Schema]:
    """Say that what is sent has all of its fields, and what the events of the streams are."""
    whole = {
        name: {**schema, "required": list(schema["properties"])} if name in _SENT else schema
        for name, schema in found.items()
    }
    whole["Message"]["properties"]["message"] |= {"minLength": 1, "maxLength": 10_000}
    replies = {"accepted": EmptyEvent, "text": ReplyText, "done": ChatAnswer, "error": Problem}
    lists = {"tasks": Tasks, "stopping": EmptyEvent}
    for title, data in (("ReplyEvent", replies), ("TaskEvent", lists)):
        whole |= one_of(title, {name: kind.__name__ for name, kind in data.items()})
    return whole


CHAT_API = ApiInfo(
    title="bridle chat",
    description=_INFO,
    tags={"Chat": "Talk to the assistant, look back, and see the tasks beside the conversation."},
    codes=CODES,
    schemes=_SCHEMES,
    security=[{"token": []}],
    types=lambda: [ChatAnswer, EmptyEvent, ReplyText, Problem, Tasks],
    adjust=_adjust,
    served=lambda declared: (
        "Serves the user that the token names." if declared.role else "Needs no token."
    ),
    fields=_FIELDS,
    examples=_EXAMPLES,
)
