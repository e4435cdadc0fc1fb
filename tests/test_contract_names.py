"""The names that the contracts give, as literal strings: a renaming never touches this file.

Where something may be imported from, what its methods and fields are called, the keys of the
records in people's logs, the routes and the names of the events on the wire.
"""

import ast
import asyncio
import inspect
import json
import typing
from importlib import import_module
from pathlib import Path

import pytest
from aiohttp import ClientSession
from msgspec.structs import fields as struct_fields

import bridle
from bridle import build_engine, events
from bridle.events import Recorded, Streamed
from bridle.server import open_server
from bridle.testing import Scripted

SRC = Path(bridle.__file__).parent

IMPORTED_FROM = {
    "bridle": (
        "AgentError",
        "EmptyPrompt",
        "ExecutionMetrics",
        "Message",
        "Request",
        "RequestConfig",
        "Response",
        "SendOptions",
        "SessionBusy",
        "SessionStore",
        "StreamCallbacks",
        "ToolCall",
        "ToolContext",
        "ToolPolicy",
        "ToolResult",
        "Usage",
        "build_engine",
    ),
    "bridle.agents.base": ("AgentResponse", "BaseAgent", "ToolActivity"),
    "bridle.agents.claude_code": ("ClaudeCodeAgent",),
    "bridle.chat": (
        "AgentContext",
        "AgentResult",
        "AgentRunner",
        "MCPToolServer",
        "MessageHistory",
        "ToolCallRecord",
    ),
    "bridle.events": (
        "ApprovalAnswered",
        "ApprovalAsked",
        "ResponseCompleted",
        "TextDelta",
        "ThinkingDelta",
        "ToolCallArgsDelta",
        "ToolCallReady",
        "ToolCallStarted",
        "ToolResultEvent",
        "TraceEvent",
        "TurnEnded",
        "UsageReported",
    ),
}

DEFINED_SOMEWHERE = ("Hub", "PolicyEngine", "Session", "Workspace")

FIELDS = {
    "bridle.agents.base:AgentResponse": (
        "content session_id cost duration_ms num_turns tools_used is_error"
    ),
    "bridle.agents.base:ToolActivity": "tool_name description",
    "bridle:AgentError": "kind message cause",
    "bridle:ExecutionMetrics": "total_input_tokens total_output_tokens invocations",
    "bridle:Message": (
        "id role content reasoning reasoning_metadata tool_calls tool_results created_at"
    ),
    "bridle:Request": "messages tools config",
    "bridle:RequestConfig": "max_tokens temperature",
    "bridle:Response": "content tool_calls usage stop_reason",
    "bridle:SendOptions": "session_id temperature max_tokens",
    "bridle:StreamCallbacks": "on_text_delta on_tool_call on_tool_result on_complete on_error",
    "bridle:ToolCall": "id name arguments",
    "bridle:ToolPolicy": "read_only requires_approval risk",
    "bridle:ToolResult": "success failure",
    "bridle:Usage": "input_tokens output_tokens cache_read_tokens cache_write_tokens",
    "bridle.chat:AgentContext": "user_id conversation_id message_history from_request",
    "bridle.chat:AgentResult": "success response tool_calls error has_tool_calls",
    "bridle.chat:MessageHistory": "role content timestamp tool_calls",
    "bridle.chat:ToolCallRecord": "tool_name parameters result duration_ms",
}

METHODS = {  # with the names of their parameters, `self` left out
    "bridle.agents.base:BaseAgent.execute": (
        "prompt session can_use_tool on_text_chunk on_tool_activity"
    ),
    "bridle.agents.base:BaseAgent.cancel": "session_id",
    "bridle.agents.base:BaseAgent.shutdown": "",
    "bridle.agents.claude_code:ClaudeCodeAgent.execute": (
        "prompt session can_use_tool on_text_chunk on_tool_activity"
    ),
    "bridle.agents.claude_code:ClaudeCodeAgent.cancel": "session_id",
    "bridle.agents.claude_code:ClaudeCodeAgent.shutdown": "",
    "bridle.chat:AgentContext.from_request": "user_id conversation_id messages",
    "bridle.chat:AgentRunner.run": "context message",
    "bridle:Assistant.send": "prompt options callbacks",
    "bridle:Assistant.set_system_prompt": "prompt",
    "bridle:Assistant.set_tools": "tools",
    "bridle:Assistant.history": "",
    "bridle:Assistant.clear": "",
    "bridle:Assistant.cancel": "",
    "bridle:Assistant.is_busy": "",
    "bridle:SessionStore.create": "title",
    "bridle:SessionStore.get": "session_id",
    "bridle:SessionStore.current": "",
    "bridle:SessionStore.set_current": "session_id",
    "bridle:SessionStore.list": "",
    "bridle:SessionStore.delete": "session_id",
    "bridle:SessionStore.add_message": "session_id message",
    "bridle:SessionStore.get_messages": "session_id",
    "bridle:SessionStore.clear_messages": "session_id",
    "bridle:SessionStore.update_title": "session_id title",
}

WORDS = {  # the values of a literal type
    "bridle.events:StopReason": "complete tool_use max_tokens",
    "bridle.errors:Kind": "agent tool timeout rate_limit network invalid",
    "bridle.messages:Role": "user assistant system tool",
}

RECORDS = {  # the keys under `data`, besides `type`
    "agent": "agent sessionId state",
    "agent_response": ("agent turn sessionId content cost durationMs numTurns toolsUsed isError"),
    "approval_answered": "callId allowed by scope word shown letter cwd rule until",
    "approval_asked": (
        "call shown reason rule cwd expires commands paths covers proposal times group lasting "
        "sandbox hosts network"
    ),
    "checkpoint": (
        "previous messages title tags workspace turn running parked metrics todos waiting asked "
        "answered grants opened outputs intents letters before steps mode granted times attached "
        "parent"
    ),
    "child_end": "callId sessionId reason metrics",
    "child_of": "parent callId",
    "child_start": "callId sessionId agent prompt mode",
    "compaction": "messages dropped shortened summary before after",
    "files": "turn callId files uncovered",
    "fork": "sessionId at",
    "grant_revoked": "grant by letter",
    "intent": "callId name readOnly argumentsHash network",
    "message:assistant": "stopReason message usage model requestId stopDetail grows",
    "message:tool": "output",
    "message:user": "message prompt turn by",
    "mode": "mode by reason",
    "prompt_withdrawn": "prompt turn by",
    "repair": "torn broken",
    "rewind": "to by messages todos",
    "session_start": "sessionId mode resumed format workspace model version effort",
    "tags": "tags",
    "title": "title",
    "todo": "todos",
    "turn_end": "turn reason detail errorKind hint",
    "turn_parked": "turn calls",
    "undo": "turn by files undo",
    "usage": "usage model cost purpose priced estimated",
    "user_prompt": "content turn by when parts letter",
    "AgentActivity": "toolName description",
    "ReplyDiscarded": "reason",
    "TextDelta": "text",
    "ThinkingDelta": "text",
    "ToolCallArgsDelta": "callId text",
    "ToolCallReady": "call",
    "ToolCallStarted": "callId name",
    "ToolOutputDelta": "callId text",
    "TraceEvent": "kind detail",
}

ROUTES = {
    "/api/sessions": "post",
    "/api/sessions/{id}/stream": "get",
    "/api/sessions/{id}/chat": "post",
    "/api/sessions/{id}/approvals/{callId}": "post",
    "/api/sessions/{id}/resume": "post",
}
RESUME = "workspacePath provider model"
SSE = (
    "text_delta",
    "thinking_delta",
    "tool_call",
    "tool_result",
    "approval_required",
    "approval_answered",
    "usage",
    "completed",
    "error",
    "trace",
)


def named(path):
    """What `module:Class.method` leads to."""
    module, _, name = path.partition(":")
    value = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("module", IMPORTED_FROM)
def test_each_name_is_imported_from_where_the_contracts_say(module):
    """P1, M1, M7, M8, S1, S4, A2, T1, T2: programs import these."""
    missing = [name for name in IMPORTED_FROM[module] if not hasattr(import_module(module), name)]
    assert missing == []


def test_classes_whose_module_is_ours_to_choose_keep_their_names():
    """A5, A6, S6: any module may define them."""
    defined = set()
    for path in SRC.rglob("*.py"):
        tree = ast.parse(path.read_text())
        defined |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(DEFINED_SOMEWHERE) - defined == set()


@pytest.mark.parametrize("path", FIELDS)
def test_each_value_has_the_fields_of_the_contracts(path):
    """P2, M1, M3, M7, M8, S2, S4, S11, A4, T1."""
    kind = named(path)
    known = set(dir(kind)) | set(getattr(kind, "__annotations__", ()))
    known |= set(inspect.signature(kind).parameters)
    assert set(FIELDS[path].split()) - known == set()


@pytest.mark.parametrize("path", METHODS)
def test_each_method_takes_the_parameters_of_the_contracts(path):
    """P1, S1, S3, T1, T2: their names, in this order."""
    wanted = METHODS[path].split()
    given = [name for name in inspect.signature(named(path)).parameters if name != "self"]
    assert given[: len(wanted)] == wanted


@pytest.mark.parametrize("path", WORDS)
def test_each_word_of_the_contracts_is_still_a_value(path):
    """M3, M8, S2."""
    assert set(WORDS[path].split()) <= set(typing.get_args(named(path)))


def test_the_keys_of_records_stay_as_they_are_written():
    """A7: they are in people's logs. Keys may be added and never renamed."""
    kinds = [
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, Recorded | Streamed)
    ]
    written = {
        kind.__struct_config__.tag: {field.encode_name for field in struct_fields(kind)}
        for kind in kinds
        if kind not in (Recorded, Streamed)
    }
    for name, keys in RECORDS.items():
        assert set(keys.split()) - written[name] == set(), name


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The OpenAPI document of a running server."""

    async def fetch():
        async with (
            build_engine(
                Scripted("done"), on_ask="wait", state=tmp_path_factory.mktemp("state")
            ) as engine,
            open_server(engine) as server,
            ClientSession(headers={"Authorization": f"Bearer {server.token}"}) as client,
            client.get(f"{server.url}/api/openapi.json") as answer,
        ):
            return await answer.json()

    return asyncio.run(fetch())


def test_the_routes_and_event_names_of_the_http_server_stay(described):
    """A10."""
    # each path is described with its version and served without it, too (test_http_requests.py)
    paths = {
        path.replace("/api/v1/", "/api/", 1): verbs for path, verbs in described["paths"].items()
    }
    assert [path for path, verb in ROUTES.items() if verb not in paths.get(path, {})] == []
    words = json.dumps(described)
    assert [name for name in (*SSE, *RESUME.split()) if f'"{name}"' not in words] == []
