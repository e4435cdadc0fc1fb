"""What the chat's API says of itself beside its routes: its events, its problems, its tokens."""

from typing import Any

from bridle.server.chatting.faults import CODES
from bridle.server.chatting.views import ChatAnswer, Nothing, Piece, Tasks
from bridle.server.described import REF, Schema
from bridle.server.openapi import Book
from bridle.server.problems import Problem

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
