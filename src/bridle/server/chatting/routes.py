"""The routes of the chat: say something, look back, the list beside it, the page."""

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from litestar import Request, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from litestar.types import ASGIApp

from bridle.chat.service_values import ConversationInfo, MessageInfo, Setting
from bridle.server.caller import Caller
from bridle.server.chatting.faults import refused
from bridle.server.chatting.listing import Status, tasks
from bridle.server.chatting.room import ChatRoom
from bridle.server.chatting.speaking import spoken
from bridle.server.chatting.streaming import Streaming, events, wants_stream
from bridle.server.chatting.views import (
    ChatAnswer,
    ConversationPage,
    Conversations,
    ConversationView,
    Message,
    MessageView,
    Tasks,
    ToolUse,
)
from bridle.server.routes.declared import KEY, Declared, needs

Here = NamedDependency[ChatRoom]
Asking = Request[Caller, Any, Any]
User = FromPath[str]
Id = FromPath[str]
Cursor = Annotated[str, QueryParameter(max_length=500)]
Count = Annotated[int, QueryParameter(ge=1, le=100)]
Which = FromQuery[Status]
Key = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=255)]
_OWN = ("other_user", "server_stopping")
_FOUND = (*_OWN, "unknown_conversation")
STREAM = "text/event-stream"
_SAYING = Declared(
    role="watch",
    refuses=(*_FOUND, "message_refused", "idempotency_conflict"),
    streams="ReplyEvent",
)


@post("/api/{user_id:str}/chat", status_code=200, opt={KEY: _SAYING})
async def chat(
    user_id: User, data: JSONBody[Message], request: Asking, room: Here, key: Key = ""
) -> Response[ChatAnswer]:
    """Say something; the answer is the reply.

    With `Accept: text/event-stream` it comes as a stream: accepted, text, done. The same
    Idempotency-Key with the same message again is answered with the same reply, and nothing is done
    twice.
    """
    if room.stopping:
        raise refused("server_stopping", "The chat is being shut down.", "Try again in a moment.")
    said = data.message, data.conversation_id or None
    setting = Setting(_zone(data.timezone), _language(data.language))
    if wants_stream(request.headers.get("accept", "")):
        pieces = spoken(lambda tell: room.reply(user_id, said, key, setting, tell))
        return await Streaming.begun(pieces, room, request)
    reply = await room.reply(user_id, said, key, setting)
    headers = {"idempotent-replayed": "true"} if reply.replayed else {}
    return Response(
        ChatAnswer(reply.response, reply.conversation_id), status_code=200, headers=headers
    )


@get("/api/{user_id:str}/conversations", opt=needs("watch", *_OWN, "message_refused"))
async def conversations(
    user_id: User, room: Here, cursor: Cursor = "", limit: Count = 20
) -> Conversations:
    """Your conversations, the newest first."""
    found = await room.app.service.conversations(user_id, cursor, limit)
    return Conversations(tuple(map(_conversation, found.items)), found.next)


@get(
    "/api/{user_id:str}/conversations/{conversation_id:str}",
    opt=needs("watch", *_FOUND, "message_refused"),
)
async def conversation(
    user_id: User, conversation_id: Id, room: Here, cursor: Cursor = "", limit: Count = 50
) -> ConversationPage:
    """The last messages of a conversation; further pages go back in time."""
    about = await room.app.service.about(user_id, conversation_id)
    found = await room.app.service.conversation(user_id, conversation_id, cursor, limit)
    return ConversationPage(_conversation(about), tuple(map(_message, found.items)), found.next)


@delete("/api/{user_id:str}/conversations/{conversation_id:str}", opt=needs("watch", *_FOUND))
async def forget(user_id: User, conversation_id: Id, room: Here) -> None:
    """Delete a conversation and its messages. What was done in it stays done."""
    await room.app.service.delete(user_id, conversation_id)


@get("/api/{user_id:str}/tasks", opt=needs("watch", *_OWN, "not_found"))
async def listed(
    user_id: User, room: Here, status: Which = "all", cursor: Cursor = "", limit: Count = 100
) -> Tasks:
    """Your tasks, the oldest first."""
    _check_tasks(room)
    return await room.app.database.work(
        user_id, lambda session: tasks(session, status, cursor, limit), reads=True
    )


@get(
    "/api/{user_id:str}/tasks/events",
    opt=needs("watch", *_OWN, "not_found", "too_many_streams", media=STREAM, shape="TaskEvent"),
)
async def watched(user_id: User, request: Asking, room: Here) -> ASGIApp:
    """Your tasks as server-sent events: the list, and again whenever it has changed."""
    _check_tasks(room)
    return await events(room.watching.stream(user_id), room, request)


def _check_tasks(room: ChatRoom) -> None:
    if not room.has_tasks:
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


ROUTES = (chat, conversations, conversation, forget, listed, watched)
