"""Claude Code at the edges: broken gates, calls side by side, streams that break, a killed host."""

import asyncio
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from claude_rig import (
    USED,
    Gate,
    Heard,
    Whole,
    claude,
    command_lines,
    programs,
    runs,
    says,
    soak,
    until,
    uses,
    workspace,
)

from bridle.agents.claude_code.hooks import to_permission
from bridle.agents.claude_code.messages import MessageReader
from bridle.errors import ToolError
from bridle.events import TextDelta, ThinkingDelta
from bridle.protocols.agent import Permission
from bridle.testing import FakeAnthropic
from rig import PYTHON, a_mark, marked, run


@pytest.mark.parametrize(
    "error", [RuntimeError("it broke"), pytest.param(ToolError("it cannot be asked"), marks=soak)]
)
def test_a_gate_that_breaks_is_a_no_and_the_run_goes_on(tmp_path, error):
    async def work():
        async def breaks():
            raise error

        root, session = workspace(tmp_path), Whole(workspace(tmp_path))
        async with claude([runs("touch no"), says("ok")], tmp_path) as (agent, _):
            response = await agent.execute("go", session, can_use_tool=Gate(breaks))
        assert response.content == "ok" and list(root.iterdir()) == []

    run(work())


def test_a_no_that_stops_ends_the_run(tmp_path):
    async def work():
        root, stops = workspace(tmp_path), Permission(False, "the turn is over", stops=True)
        async with claude(lambda body: runs("touch no"), tmp_path) as (agent, server):
            await agent.execute("go", Whole(root), can_use_tool=Gate(stops))
            assert len(server.requests) == 1
        assert list(root.iterdir()) == []

    run(work())


def test_calls_of_one_reply_are_each_asked_about_and_answered(tmp_path):
    async def work():
        root = workspace(tmp_path)
        (root / "a").write_text("A")
        (root / "b").write_text("B")
        calls = [
            {"name": "Read", "arguments": {"file_path": str(root / "a")}},
            {"name": "Read", "arguments": {"file_path": str(root / "b")}},
            {"name": "Bash", "arguments": {"command": "echo C"}},
        ]
        session, gate, heard = Whole(root), Gate(), Heard()
        script = [{"text": "three", "calls": calls, "usage": USED}, says("ok")]
        async with claude(script, tmp_path) as (agent, _):
            await agent.execute(
                "go",
                session,
                can_use_tool=gate,
                on_text_chunk=heard.chunk,
                on_tool_activity=heard.tool,
            )
        assert sorted(gate.asked, key=str) == [
            ("read", {"path": "a"}),
            ("read", {"path": "b"}),
            ("shell", {"command": "echo C"}),
        ]
        assert sorted(text for _, text, _, _ in session.finished) == ["A", "B", "C"]
        assert heard.text == ["three", "ok"] and heard.activity[-1] is None

    run(work())


def test_a_call_that_the_program_itself_refuses_never_comes_to_the_gate(tmp_path):
    async def work():
        session, gate = Whole(workspace(tmp_path)), Gate()
        script = [uses("Nonsense", {"x": 1}), uses("Read", {"wrong": 1}), says("ok")]
        async with claude(script, tmp_path) as (agent, _):
            response = await agent.execute("go", session, can_use_tool=gate)
        assert response.content == "ok" and gate.asked == []
        assert [ok for _, _, ok, _ in session.finished] == [False, False]

    run(work())


def test_a_stream_that_breaks_in_the_middle_has_an_end(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        broken = {"text": "half of", "error": {"kind": "agent", "message": "x", "status": 529}}
        async with claude([broken] * 30, tmp_path) as (agent, server):
            response = await agent.execute("go", session)
            assert 2 <= len(server.requests) < 30
        assert response.is_error

    run(work())


def test_nothing_is_left_of_it_when_bridle_is_killed_P7(tmp_path):
    mark = a_mark()
    script = Path(__file__).with_name("claude_lonely.py")
    env = {**os.environ, "PYTHONPATH": str(script.parents[1])}
    host = subprocess.Popen([PYTHON, str(script), str(tmp_path), mark], env=env)
    try:
        asyncio.run(until(lambda: marked(f"sleep\0{mark}")))
        assert len(programs(tmp_path)) >= 3
    finally:
        host.kill()
        host.wait()
    asyncio.run(until(lambda: not marked(f"sleep\0{mark}") and not programs(tmp_path)))


SERVER = """
import sys, json
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, result = asked["method"], {}
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"n": {"type": "number"}}}
        result = {"tools": [{"name": "twice", "description": "d", "inputSchema": schema,
                             "annotations": {"readOnlyHint": True}}]}
    elif method == "tools/call":
        n = asked["params"]["arguments"]["n"]
        result = {"content": [{"type": "text", "text": f"it is {2 * n}"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_tools_of_an_mcp_server_are_asked_about_by_their_name_and_its_keys_are_not_shown(tmp_path):
    async def work():
        seen = []

        async def look():
            seen.extend(command_lines(tmp_path))
            return True

        server = {"command": PYTHON, "args": ["-c", SERVER], "env": {"TOKEN": "s3cr3t-token"}}
        call = uses("mcp__calc__twice", {"n": 21})
        session, gate = Whole(workspace(tmp_path)), Gate(look, False)
        async with claude([call, call, says("ok")], tmp_path, mcp_servers={"calc": server}) as (
            agent,
            _,
        ):
            response = await agent.execute("go", session, can_use_tool=gate)
        assert gate.asked == [("mcp__calc__twice", {"n": 21})] * 2
        assert [(text, ok) for _, text, ok, _ in session.finished] == [("it is 42", True)]
        assert response.content == "ok" and programs(tmp_path) == []
        assert seen and b"s3cr3t-token" not in b"".join(seen)

    run(work())


def test_a_reply_that_was_not_streamed_is_told_whole_and_a_helpers_is_not():
    def block(kind, **fields):
        return type(kind, (SimpleNamespace,), {})(**fields)

    words = block("TextBlock", text="hi"), block("ThinkingBlock", thinking="hm")
    given = {"error": None, "model": "m", "message_id": "1", "content": words}
    talk = MessageReader(("/w",))
    assert talk.read(block("AssistantMessage", parent_tool_use_id=None, **given)) == [
        TextDelta("hi"),
        ThinkingDelta("hm"),
    ]
    assert talk.read(block("AssistantMessage", parent_tool_use_id="t", **given)) == []
    start = {"type": "message_start", "message": {"id": "1"}}
    talk.read(block("StreamEvent", parent_tool_use_id=None, event=start))
    assert talk.read(block("AssistantMessage", parent_tool_use_id=None, **given)) == []


def test_a_gate_may_answer_in_the_sdks_words_or_with_yes_and_no():
    allow = SimpleNamespace(behavior="allow", updated_input={"a": 1})
    deny = SimpleNamespace(behavior="deny", message="no")
    assert to_permission(allow).updated_input == {"a": 1} and to_permission(allow)
    assert (to_permission(deny).allowed, to_permission(deny).message) == (False, "no")
    assert [bool(to_permission(each)) for each in (True, False, None, "yes")] == [
        *(True, False, False, False)
    ]


def test_the_fake_counts_tokens_where_the_program_asks_for_that():
    async def work():
        async with FakeAnthropic() as server, aiohttp.ClientSession() as session:
            address = f"{server.url}/v1/messages/count_tokens?beta=true"
            async with session.post(address, json={"messages": []}) as answer:
                assert await answer.json() == {"input_tokens": 3}
            async with session.post(f"{server.url}/v1/else", json={}) as answer:
                assert answer.status == 404

    run(work())
