"""What the document of the sessions' API says besides the routes: events, examples, fields."""

from typing import Any

import msgspec
from msgspec import Struct

from bridle.protocols import session_values
from bridle.protocols.codec import data_types
from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    ApprovalRequest,
    ForkRequest,
    NewSession,
    PromptAccepted,
    PromptRequest,
    ResumeOptions,
    RewindRequest,
    RuleRequest,
    SessionInfo,
    SessionLimits,
    SessionPage,
    SessionUpdate,
    UndoRequest,
)
from bridle.server.openapi import REF, ApiInfo, Schema, one_of, reference
from bridle.server.problems import CODES
from bridle.server.server_events import ApprovalSettled, SessionChanged
from bridle.server.sse import NAMES, OTHER

_PLACE = {"type": "string", "pattern": "^[0-9]+$", "description": "The number of the record."}
_STREAMED, _RECORDED, _MESSAGE = data_types()
_RENAMED = {_MESSAGE.__name__: "MessageLine", "_Result": "MessageResult"}
_SECURITY: list[Schema] = [{"token": []}, {"cookie": [], "key": []}]
_SCHEMES: Schema = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The owner's token (`bridle serve --show-token`) or one that "
        "`bridle serve token add` made.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "bridle_8420",
        "description": "Set by `POST /api/v1/login`. The number is the server's port. It counts "
        "only together with the key.",
    },
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Bridle-Key",
        "description": "The key that `POST /api/v1/login` returned.",
    },
}
_TAGS = {
    "Sessions": "Create, list, resume, change, fork and delete sessions.",
    "Prompts": "Send prompts, interrupt turns, and watch what happens.",
    "Approvals": "Answer what needs a person's approval, and take back what was granted.",
    "History": "Read records and conversations, search them, undo changes to files.",
    "Server": "What the server offers, and how it is.",
    "Sign-in": "Sign in and out with a browser.",
    "AG-UI": "Run turns with the Agent User Interaction Protocol.",
}
_INFO = """
Sessions of agents: send prompts, watch what happens, and answer approval requests.

Each request needs a token (`Authorization: Bearer …`). Errors are problem details (RFC 9457) with a
stable `code`, a `detail` and a `hint`. Each response has the ID of its request in `X-Request-ID`;
a client may send its own. `POST` requests that create something take an `Idempotency-Key`: the same
key with the same body again returns what the first request created. All paths are also served
without `/v1`.
""".strip()
_FIELDS = {
    "/session_id": "The ID of the session.",
    "/call_id": "The ID of the tool call.",
    "/prompt": "The number of the prompt's record, as in `queued` of the session.",
    "/grant": "The ID of the grant.",
    "?query": "Words to look for.",
    "?q": "Words to look for.",
    "?limit": "The largest number of results.",
    "?cursor": "Where the page starts: `next` of the page before.",
    "?workspace": "A folder that the server works in.",
    "?state": "Only sessions in this state.",
    "?after": "Only records after this number.",
    "?before": "The last records before this number.",
    "?turn": "The number of the turn. 0: the newest one that changed a file.",
    "?format": "The format of the file.",
    "?wait": "Wait for the end of the turn and return its result.",
    "?idempotency-key": "Any text that is new for each request, such as a UUID. If the same key "
    "comes again with the same body, nothing is done twice.",
    "?last-event-id": "The `id` of the last event that was received. It counts before `after`.",
    "id": "The ID.",
    "prompt": "What the agent should do.",
    "parts": "Text, images and files that follow the prompt.",
    "sessionId": "The ID of the session.",
    "sessionTitle": "The title of the session.",
    "callId": "The ID of the tool call.",
    "title": "A short title.",
    "workspace": "The folder that the session works in.",
    "workspacePath": "The folder to work in. Empty: the server's first one.",
    "model": "The model, as PROVIDER/MODEL.",
    "provider": "The provider of the model.",
    "agent": "The agent that runs the turns, such as `loop`.",
    "mode": "The permission mode: plan, ask, edits or auto.",
    "state": "What the session is doing.",
    "turn": "The number of the turn.",
    "seq": "The number of the record in the session's log.",
    "tokens": "Tokens that were used.",
    "cost": "Cost in US dollars.",
    "createdAt": "When it was created (ISO 8601, UTC).",
    "updatedAt": "When it last changed (ISO 8601, UTC).",
    "timestamp": "When it happened (ISO 8601, UTC).",
    "tags": "Tags that a person gave it.",
    "parent": "The ID of the session that started this one as a subagent, or empty.",
    "shown": "The hash of what a person was shown. An answer has to name it.",
    "diff": "The change as a unified diff.",
    "expires": "When the request expires (ISO 8601, UTC), or empty.",
    "by": "Who did it.",
    "word": "A message to the model, such as what to do instead.",
    "rule": "A permission rule, as in `allow: shell pytest`.",
    "scope": "How far the answer reaches.",
    "allowed": "Whether the call may run.",
    "text": "The text.",
    "detail": "What happened, in a sentence.",
    "hint": "What to do next.",
    "code": "The stable code of the problem.",
    "status": "The HTTP status.",
    "type": "What kind it is.",
    "reason": "Why.",
    "path": "The path of the file, relative to the workspace.",
    "name": "The name.",
    "label": "The name as a person reads it.",
    "role": "The role of the caller.",
    "version": "The version of bridle.",
    "workspaces": "The folders that the server works in.",
    "token": "A token.",
    "key": "The half of the sign-in that the page sends as `X-Bridle-Key`.",
    "limits": "What may be used.",
    "metrics": "What was used.",
    "context": "How full the model's context window is.",
    "files": "The files.",
    "messages": "The messages, the oldest first.",
    "records": "The records, the oldest first.",
    "lines": "One finding per line.",
}
_EXAMPLES: dict[Any, Any] = {
    NewSession: NewSession(title="Fix the price test", mode="edits"),
    ResumeOptions: ResumeOptions(),
    SessionUpdate: SessionUpdate(title="Prices", tags=("bug",)),
    PromptRequest: PromptRequest("Fix the failing test in tests/test_prices.py"),
    PromptAccepted: PromptAccepted("20261119-101500-4f2a9c01d7", 1),
    ApprovalAnswer: ApprovalAnswer(True, "5f1d…", "once"),
    ApprovalOutcome: ApprovalOutcome("call_1", True, "ann"),
    ForkRequest: ForkRequest(12),
    RewindRequest: RewindRequest(0),
    RuleRequest: RuleRequest("allow: shell pytest"),
    SessionLimits: SessionLimits(max_cost=2.5),
    UndoRequest: UndoRequest(),
    SessionInfo: SessionInfo(
        id="20261119-101500-4f2a9c01d7",
        title="Fix the price test",
        workspace="/home/ann/shop",
        model="openai/gpt-5.4",
        agent="loop",
        mode="edits",
        state="done",
        reason="done",
        turn=1,
        seq=42,
        cost=0.03,
        tokens=12_840,
        created_at="2026-11-19T10:15:00Z",
        updated_at="2026-11-19T10:16:12Z",
    ),
}


def _types() -> list[Any]:
    """The values that streams carry."""
    return [*_STREAMED, *_RECORDED, _MESSAGE, ApprovalRequest, SessionChanged, ApprovalSettled]


def _adjust(found: dict[str, Schema]) -> dict[str, Schema]:
    """Say what the log adds to its values, and what the events of the streams are."""
    found = {name: _with_required(name, schema) for name, schema in found.items()}
    found["RecordPage"]["properties"]["records"]["items"] = reference("Record")
    found["ApprovalRequest"]["properties"]["asked"] = reference("ApprovalAsked")
    for kind in _STREAMED:
        found[kind.__name__] = _as_event_line(found[kind.__name__])
    for old, new in _RENAMED.items():
        found[new] = {**found.pop(old), "title": new}
    found["SilentReply"] = _silent_reply()
    found["UnknownRecord"] = _unknown_record()
    names = [kind.__name__ for kind in (*_STREAMED, *_RECORDED)]
    data = [*names, "MessageLine", "SilentReply", "UnknownRecord"]
    found["RecordData"] = {"oneOf": [reference(name) for name in data]}
    found["Record"] = _record("Record", reference("RecordData"))
    found |= _record_events() | _server_events()
    text = msgspec.json.encode(found).decode()
    for old, new in _RENAMED.items():
        text = text.replace(f'"{REF.format(name=old)}"', f'"{REF.format(name=new)}"')
    return msgspec.json.decode(text, type=dict[str, Schema])


def _with_required(name: str, schema: Schema) -> Schema:
    """A value that is sent has all of its fields, unless it leaves out defaults."""
    kind = getattr(session_values, name, None)
    if kind is None or kind is SessionLimits or not issubclass(kind, Struct):
        return schema  # limits are also read
    config = kind.__struct_config__
    if config.forbid_unknown_fields or config.omit_defaults:
        return schema
    return {**schema, "required": list(schema["properties"])}


def _as_event_line(schema: Schema) -> Schema:
    """A record of an event in the middle of a step: its line has the type `event`."""
    properties = {"type": {"type": "string", "const": "event"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": ["type", *schema["required"]]}


def _silent_reply() -> Schema:
    return {
        "title": "SilentReply",
        "description": "A reply of the model ended without a message.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "event"},
            "eventType": {"type": "string", "const": "ResponseCompleted"},
            "stopReason": {"type": "string"},
        },
        "required": ["type", "eventType", "stopReason"],
    }


def _unknown_record() -> Schema:
    known = [_tag(kind) for kind in _RECORDED] + ["message", "event"]
    events = [_tag(kind) for kind in _STREAMED] + ["ResponseCompleted"]
    return {
        "title": "UnknownRecord",
        "description": "A record of a type that this version does not know, as it is in the log.",
        "type": "object",
        "anyOf": [
            {"properties": {"type": {"not": {"enum": known}}}},
            {"properties": {"type": {"const": "event"}, "eventType": {"not": {"enum": events}}}},
        ],
    }


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _record(name: str, data: Schema) -> Schema:
    return {
        "title": name,
        "description": "A line of the log, without its hash.",
        "type": "object",
        "properties": {
            "seq": {"type": "integer", "minimum": 0},
            "timestamp": {"type": "string"},
            "data": data,
        },
        "required": ["seq", "timestamp", "data"],
        "additionalProperties": False,
    }


def _record_events() -> dict[str, Schema]:
    """Each event of a session's stream. A record without an event of its own is a `trace`."""
    own = {_key(kind): kind.__name__ for kind in (*_STREAMED, *_RECORDED)}
    carried = {name: own.get(key.decode(), "MessageLine") for key, name in NAMES.items()}
    carried |= {"completed": "TurnEnded", "error": "TurnEnded"}
    found: dict[str, Schema] = {f"{kind}Record": {} for kind in carried.values()}
    found = {name: _record(name, reference(name.removesuffix("Record"))) for name in found}
    data = {name: f"{kind}Record" for name, kind in carried.items()}
    data |= {OTHER: "Record", "resync": "Resync", "stopping": "Nothing"}
    found["Resync"] = {
        "title": "Resync",
        "description": "The stream ends here. Continue after this record.",
        "type": "object",
        "properties": {"after": {"type": "integer"}},
        "required": ["after"],
    }
    found["Nothing"] = {"title": "Nothing", "type": "object"}
    return found | one_of("RecordEvent", data, _PLACE)


def _key(kind: type[Struct]) -> str:
    return f"event/{_tag(kind)}" if kind in _STREAMED else f"{_tag(kind)}/"


def _server_events() -> dict[str, Schema]:
    data = {
        "sessions": SessionPage.__name__,
        "session": SessionChanged.__name__,
        "approval_required": ApprovalRequest.__name__,
        "approval_answered": ApprovalSettled.__name__,
        "resync": "Nothing",
        "stopping": "Nothing",
    }
    return one_of("ServerEvent", data)


SESSIONS_API = ApiInfo(
    title="bridle",
    description=_INFO,
    tags=_TAGS,
    codes=CODES,
    schemes=_SCHEMES,
    security=_SECURITY,
    types=_types,
    adjust=_adjust,
    served=lambda declared: (
        f"Needs the role `{declared.role}`." if declared.role else "Needs no token."
    ),
    fields=_FIELDS,
    examples=_EXAMPLES,
)
