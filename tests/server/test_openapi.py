"""The description of the API against the wire: a whole journey, every answer and event judged."""

import json
import re

from jsonschema import Draft202012Validator
from rig_openapi import Judge, Judged
from rig_server import LIMITS, server, write_note

from bridle.events import Recorded, Streamed
from bridle.protocols import codec
from bridle.protocols.codec import encode_data
from bridle.server.problems import CODES
from rig import run

NAMES = {  # the contract's own, and ours beside them
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
    "resync",
    "stopping",
}


def described(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            return (await there.get("/api/openapi.json")).body

    return run(work())


def shapes(found, name):
    events = (found[one["$ref"].rpartition("/")[2]] for one in found[name]["oneOf"])
    return {one["properties"]["event"]["const"]: one for one in events}


def test_every_event_of_a_stream_is_typed_by_its_name(tmp_path):
    """(A10)"""
    found = described(tmp_path)["components"]["schemas"]
    assert set(shapes(found, "RecordEvent")) == NAMES
    told = {"sessions", "session", "approval_required", "approval_answered", "resync", "stopping"}
    assert set(shapes(found, "ServerEvent")) == told
    for shape in shapes(found, "RecordEvent").values():
        assert shape["properties"]["data"]


def test_every_kind_of_record_has_its_shape_and_no_two_fit_the_same(tmp_path):
    schemas = described(tmp_path)["components"]["schemas"]
    known = {one["$ref"].rpartition("/")[2] for one in schemas["RecordData"]["oneOf"]}
    streamed, recorded, _ = codec.data_types()
    assert known == {kind.__name__ for kind in (*streamed, *recorded)} | {
        "MessageLine",
        "SilentReply",
        "UnknownRecord",
    }
    whole = {"$ref": "#/components/schemas/RecordData", "components": {"schemas": schemas}}
    judge = Draft202012Validator(whole)
    for kind in (*streamed, *recorded):
        tag = kind.__struct_config__.tag
        assert issubclass(kind, Streamed | Recorded)
        bare = {"type": "event", "eventType": tag} if kind in streamed else {"type": tag}
        missing = set(schemas[kind.__name__]["required"]) - set(bare)
        assert judge.is_valid(bare) == (not missing), kind
    assert judge.is_valid({"type": "from_the_future", "x": 1})
    assert judge.is_valid({"type": "event", "eventType": "FromTheFuture"})
    assert not judge.is_valid({"type": "turn_end", "turn": "one"})
    silent = codec.decode_data(
        b'{"type":"event","eventType":"ResponseCompleted","stopReason":"error"}'
    )
    assert judge.is_valid(json.loads(encode_data(silent)))


def test_every_route_says_what_it_refuses_and_who_may_ask(tmp_path):
    found = described(tmp_path)
    assert found["openapi"] == "3.1.0"
    assert not re.search(r"\((?:[AMPST]\d+(?:, )?)+\)", str(found))  # ids of contracts are ours
    assert set(found["components"]["securitySchemes"]) == {"token", "cookie", "key"}
    said = set()
    for path, place in found["paths"].items():
        for method, operation in place.items():
            statuses = set(operation["responses"])
            assert {"400", "403", "413", "421", "429", "500"} <= statuses, path
            assert ("401" in statuses) == bool(operation["security"]) or path == "/api/v1/login"
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    problem = response["content"]["application/problem+json"]["schema"]
                    assert problem == {"$ref": "#/components/schemas/Problem"}
                    said |= set(response["x-codes"])
            if "requestBody" in operation:
                assert "415" in statuses, (method, path)
    assert said == set(CODES) - {"method_not_allowed"}
    chat = found["paths"]["/api/v1/sessions/{id}/chat"]["post"]["parameters"]
    stream = found["paths"]["/api/v1/sessions/{id}/stream"]["get"]["parameters"]
    assert [one["name"] for one in chat] == ["id", "wait", "Idempotency-Key"]
    assert [one["name"] for one in stream] == ["id", "after", "Last-Event-ID"]
    assert {one["name"]: one["in"] for one in stream}["Last-Event-ID"] == "header"


def test_the_document_says_in_words_what_everything_is(tmp_path):
    found = described(tmp_path)
    tags = {one["name"] for one in found["tags"]}
    ids = []
    for path, place in found["paths"].items():
        assert path.startswith("/api/v1/")
        for operation in place.values():
            ids.append(operation["operationId"])
            assert set(operation["tags"]) <= tags and operation["summary"], path
            assert operation["description"].endswith(".")
            for parameter in operation["parameters"]:
                assert parameter["description"], (path, parameter)
            for response in operation["responses"].values():
                assert response["description"]
    assert len(set(ids)) == len(ids)
    assert {"listSessions", "createSession", "sendPrompt", "answerApproval"} <= set(ids)
    schemas = found["components"]["schemas"]
    for name in ("SessionInfo", "NewSession", "PromptRequest", "ApprovalAnswer", "Problem"):
        described_ones = [one.get("description") for one in schemas[name]["properties"].values()]
        assert all(described_ones), name


def test_examples_fit_their_schemas(tmp_path):
    found = described(tmp_path)
    judge = Judge(found)
    count = 0
    for place in found["paths"].values():
        for operation in place.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (one for body in bodies for one in body.get("content", {}).values()):
                if "example" in media:
                    judge.fits(media["schema"], media["example"])
                    count += 1
    assert count > 12


NOTE = {"name": "write_note", "arguments": {"text": "x"}}
SCRIPT = [
    {"thinking": "hm", "text": "first", "calls": [NOTE]},
    {"text": "done", "usage": {"input": 10, "output": 5}},
    {"text": "and on"},
]


def test_a_whole_journey_fits_the_description(tmp_path):
    """(A10, A11) Every route is asked, every answer and every event is judged."""

    async def work():
        async with server(tmp_path, SCRIPT, write_note, limits=LIMITS) as there:
            there = await Judged.of(there)
            (tmp_path / "workspace" / "a.txt").write_text("a\n")
            for path in (
                "health",
                "ready",
                "me",
                "models",
                "agents",
                "doctor",
                "workspaces",
                "workspaces/files?query=a",
                "metrics",
                "openapi.json",
            ):
                assert (await there.get(f"/api/{path}")).status == 200, path
            code = there.room.door.code()
            assert (await there.post("/api/login", {"code": code}, token="")).status == 200
            assert (await there.post("/api/logout")).status == 204
            first = await there.until("/api/events", lambda event: True)
            assert [event.name for event in first] == ["sessions"]
            await _talk(there, f"/api/sessions/{await there.made(title='a talk')}")
            missed = {
                (method.upper(), path)
                for path, place in there.judge.description["paths"].items()
                for method in place
            } - {(method, path) for method, path, _ in there.judge.seen}
            assert missed == {
                ("GET", "/api/v1/sessions/{id}/stream"),
                ("GET", "/api/v1/events"),
                ("POST", "/api/v1/agui"),  # its own client judges it: tests/bridges
            }  # those were judged event by event
            names = {name for path, name in there.judge.events if path.endswith("/stream")}
            assert names == NAMES - {"error", "resync", "stopping"}

    run(work())


async def _talk(there, path):
    await there.post(f"{path}/chat", {"prompt": "go"})
    asked = (await there.until(f"{path}/stream", lambda e: e.name == "approval_required"))[-1]
    question = asked.data["data"]
    yes = {"allowed": True, "shown": question["shown"], "scope": "session"}
    where = f"{path}/approvals/{question['call']['id']}"
    assert (await there.post(where, yes)).status == 200
    for turn in (1, 2):
        if turn == 2:
            assert (await there.post(f"{path}/chat", {"prompt": "more"})).status == 202
        await there.until(f"{path}/stream", lambda e, turn=turn: is_end(e, turn))
    await _look(there, path)
    await _change(there, path)


def is_end(event, turn):
    return event.name == "completed" and event.data["data"]["turn"] == turn


async def _look(there, path):
    for more in ("", "/records", "/records?after=2&limit=3", "/records?before=5", "/history"):
        assert (await there.get(path + more)).status == 200, more
    for more in (
        "/tools",
        "/mcp",
        "/rules",
        "/budget",
        "/grants",
        "/files?query=a",
        "/export",
        "/export?format=markdown",
    ):
        assert (await there.get(path + more)).status == 200, more
    exported = await there.get(f"{path}/export")
    assert exported.headers["content-disposition"].startswith("attachment; filename=")
    assert (await there.get(f"{path}/undo")).code == "not_found"
    assert (await there.get("/api/sessions?query=talk&limit=1&state=done")).status == 200
    assert (await there.get("/api/approvals")).body == {"approvals": []}
    assert (await there.get("/api/search?q=done")).status == 200
    rule = {"rule": "allow: write_note"}
    assert len((await there.post(f"{path}/preview-rule", rule)).body["calls"]) == 1


async def _change(there, path):
    changed = await there.call("PATCH", path, {"title": "renamed", "tags": ["x"], "mode": "plan"})
    assert (changed.status, changed.body["title"], changed.body["tags"]) == (200, "renamed", ["x"])
    narrowed = await there.call("PUT", f"{path}/budget", {"maxSteps": 5})
    assert (narrowed.status, narrowed.body["limits"]["maxSteps"]) == (200, 5)
    (grant,) = (await there.get(f"{path}/grants")).body["grants"]
    assert (await there.call("DELETE", f"{path}/grants/none")).code == "not_found"
    assert (await there.call("DELETE", f"{path}/grants/{grant['id']}")).status == 204
    assert (await there.call("DELETE", f"{path}/grants")).status == 204
    assert (await there.post(f"{path}/undo", {})).code == "not_found"
    assert (await there.call("DELETE", f"{path}/queue/1")).code == "not_found"
    assert (await there.post(f"{path}/interrupt")).status == 202
    assert (await there.post(f"{path}/fork")).status == 201
    assert (await there.post(f"{path}/rewind", {"to": 0})).status == 200
    assert (await there.post(f"{path}/compact")).status == 200
    assert (await there.post(f"{path}/resume")).status == 200
    assert (await there.call("DELETE", path)).status == 204
