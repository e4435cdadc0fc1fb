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
from bridle.server.chat.context import ChatRoom
from bridle.server.chat.problems import CODES, refused
from bridle.server.chat.schemas import (
    About,
    ChatAnswer,
    Condition,
    ConversationPage,
    Conversations,
    ConversationView,
    Me,
    Message,
    MessageView,
    Nothing,
    Piece,
    Tasks,
    ToolUse,
)
from bridle.server.chat.streaming import events, reply_events, wants_stream
from bridle.server.chat.task_events import Status, tasks
from bridle.server.openapi import REF, Book, Schema, description
from bridle.server.problems import Problem
from bridle.server.routes.info import page_response
from bridle.server.routing import JSON, Header, Reply, delete, get, post
from bridle.server.sse import Flow

Cursor = Annotated[str, Meta(max_length=500)]
Count = Annotated[int, Meta(ge=1, le=100)]
Key = Annotated[str, Meta(max_length=255), Header("Idempotency-Key")]
_OWN = ("other_user", "server_stopping")
_FOUND = (*_OWN, "unknown_conversation")
STREAM = "text/event-stream"


@post(
    "/api/{user_id}/chat",
    role="watch",
    is_prompt=True,
    answers=ChatAnswer,
    streams="ReplyEvent",
    refuses=(*_FOUND, "message_refused", "idempotency_conflict"),
)
async def send_message(
    context: ChatRoom, request: Request, user_id: str, body: Message, idempotency_key: Key = ""
) -> Reply | Flow:
    """Say something; the answer is the reply.

    With `Accept: text/event-stream` it comes as a stream: `accepted`, `text` as the model writes
    it, and `done` with the whole reply. The same Idempotency-Key with the same message is answered
    with the same reply, and nothing is done twice.
    """
    if context.stopping:
        raise refused("server_stopping", "The chat is being shut down.", "Try again in a moment.")
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


@get("/api/{user_id}/conversations", role="watch", refuses=(*_OWN, "message_refused"))
async def list_conversations(
    context: ChatRoom, user_id: str, cursor: Cursor = "", limit: Count = 20
) -> Conversations:
    """Your conversations, the newest first."""
    found = await context.app.service.conversations(user_id, cursor, limit)
    return Conversations(tuple(map(_conversation, found.items)), found.next)


@get(
    "/api/{user_id}/conversations/{conversation_id}",
    role="watch",
    refuses=(*_FOUND, "message_refused"),
)
async def get_conversation(
    context: ChatRoom,
    user_id: str,
    conversation_id: str,
    cursor: Cursor = "",
    limit: Count = 50,
) -> ConversationPage:
    """The last messages of a conversation; further pages go back in time."""
    about = await context.app.service.about(user_id, conversation_id)
    found = await context.app.service.conversation(user_id, conversation_id, cursor, limit)
    return ConversationPage(_conversation(about), tuple(map(_message, found.items)), found.next)


@delete("/api/{user_id}/conversations/{conversation_id}", role="watch", status=204, refuses=_FOUND)
async def delete_conversation(context: ChatRoom, user_id: str, conversation_id: str) -> None:
    """Delete a conversation and its messages. What was done in it stays done."""
    await context.app.service.delete(user_id, conversation_id)


@get("/api/{user_id}/tasks", role="watch", refuses=(*_OWN, "not_found"))
async def list_tasks(
    context: ChatRoom,
    user_id: str,
    status: Status = "all",
    cursor: Cursor = "",
    limit: Count = 100,
) -> Tasks:
    """Your tasks, the oldest first."""
    _check_tasks(context)
    return await context.app.database.run(
        user_id, lambda session: tasks(session, status, cursor, limit), reads=True
    )


@get(
    "/api/{user_id}/tasks/events",
    role="watch",
    media=STREAM,
    shape="TaskEvent",
    refuses=(*_OWN, "not_found", "too_many_streams"),
)
async def stream_tasks(context: ChatRoom, request: Request, user_id: str) -> Flow:
    """Your tasks as server-sent events: the list, and again whenever it has changed."""
    _check_tasks(context)
    return await events(context.watching.stream(user_id), context, request)


def _check_tasks(context: ChatRoom) -> None:
    if not context.has_tasks:
        raise refused("not_found", "This assistant keeps no tasks.", "Use the chat.")


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        raise refused(
            "invalid_request", "There is no such time zone.", "Name one as in Europe/Zurich."
        ) from None


def _language(name: str) -> str:
    if len(name) > 35 or not all(one.isalnum() or one in "-_" for one in name):
        raise refused(
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


@get("/api/chat/health", role=None)
async def get_health() -> Condition:
    """The server is there."""
    return Condition("ok")


@get("/api/chat/ready", role=None, refuses=("server_stopping",))
async def get_readiness(context: ChatRoom) -> Condition:
    """The server takes messages: its database answers."""
    if context.stopping:
        raise refused("server_stopping", "The chat is being shut down.", "Try again in a moment.")
    await context.app.database.run("ready", _look, reads=True)
    return Condition("ready")


def _look(session: OwnedSession) -> None:
    session.exec(select(col(Conversation.id)).limit(1)).first()


@get("/api/chat/me", role="watch")
async def get_current_user(context: ChatRoom, caller: Caller) -> Me:
    """Whom your token names."""
    profile = context.app.runner.profile
    longest = context.app.service.limits.message
    return Me(caller.name, profile.name, context.has_tasks, longest)


@get("/api/chat/about", role=None)
async def get_assistant(context: ChatRoom) -> About:
    """What the assistant calls itself, and how a conversation can begin."""
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
def _described(app: Starlette) -> bytes:
    """The description of an application's routes, made once."""
    return description(app.routes, CHAT)


@get("/api/chat/openapi.json", role="watch", shape="any")
async def get_openapi(request: Request) -> Response:
    """This description."""
    return Response(_described(request.app), media_type=JSON)


async def get_page(context: ChatRoom, request: Request) -> Response:
    """The page, and its files."""
    path = request.scope["path"].removeprefix(_PREFIX) or "/"
    leaf = context.logo if path == _LOGO else context.page.leaf(path)
    if leaf is None:
        raise refused("not_found", "There is no such file.", "Open /chat for the page.")
    return page_response(leaf, request)


@get("/", role=None, hidden=True)
async def redirect_to_page() -> Response:
    """Where the chat stands alone, its page is the first thing there."""
    return Response(status_code=307, headers={"location": _PREFIX}, media_type="text/html")


PAGE = tuple(
    get(path, role=None, media="text/html", shape="page", hidden=True)(get_page)
    for path in ("/chat", "/chat/favicon.svg", "/chat/assets/{name:path}")
)
ROUTES = (
    send_message,
    list_conversations,
    get_conversation,
    delete_conversation,
    list_tasks,
    stream_tasks,
    get_health,
    get_readiness,
    get_current_user,
    get_assistant,
    get_openapi,
    *PAGE,
)
ALONE = (redirect_to_page,)


_SENT = (
    *("ChatAnswer", "ToolUse", "MessageView", "ConversationView", "Conversations"),
    *("ConversationPage", "TaskView", "Tasks", "Me", "About", "Condition", "Piece"),
)
_SCHEMES: Schema = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JSON Web Token: `sub` is the user, `exp` until when it is good.",
    }
}


def _values() -> list[Any]:
    return [ChatAnswer, Nothing, Piece, Problem, Tasks]


def _adjusted(found: dict[str, Schema]) -> dict[str, Schema]:
    """What is sent has all of its fields; and the events."""
    whole = {
        name: {**schema, "required": list(schema["properties"])} if name in _SENT else schema
        for name, schema in found.items()
    }
    whole["Message"]["properties"]["message"] |= {"minLength": 1, "maxLength": 10_000}
    reply = (("accepted", Nothing), ("text", Piece), ("done", ChatAnswer), ("error", Problem))
    whole["ReplyEvent"] = {"oneOf": [_event(name, kind) for name, kind in reply]}
    lists = (("tasks", Tasks), ("stopping", Nothing))
    whole["TaskEvent"] = {"oneOf": [_event(name, kind) for name, kind in lists]}
    return whole


def _event(name: str, kind: type) -> Schema:
    data = {"$ref": REF.format(name=kind.__name__)}
    said = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    properties: Schema = {"event": {"const": name}, "data": said}
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


CHAT = Book(
    title="bridle chat",
    about="Many users talk to an assistant, each over their own data.",
    codes=CODES,
    schemes=_SCHEMES,
    security=[{"token": []}],
    values=_values,
    adjusted=_adjusted,
    who=lambda declared: "For the user whom the token names." if declared.role else "For anybody.",
)
