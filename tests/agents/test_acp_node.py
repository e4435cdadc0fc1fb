"""ACP with the official TypeScript library on the other side, in a real Node.js process."""

import json
import subprocess
from pathlib import Path

from agents.acp_rig import acp_engine, scripted
from bridle.events import AgentAttached, TextDelta, TraceEvent
from bridle.protocols.session import Answer
from node.rig import node, package
from rig import conversation, endings, events, results, run, until

HERE = Path(__file__).parent.parent / "node" / "acp"


def library():
    place = package("@agentclientprotocol/sdk") / "dist" / "v1" / "stable" / "acp.js"
    return place.as_uri()


def test_an_agent_on_the_typescript_library_is_gated_resumed_and_stopped(tmp_path):
    """The journey: one question for the edit that it then has us write; printf asks nothing."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    command = [node(), str(HERE / "agent.mjs"), library(), str(root)]
    asked = []

    async def approve(question):
        asked.append((question.call.name, question.call.arguments))
        return Answer(True, by="tester")

    async def first():
        async with acp_engine(root, command, approver=approve) as engine:
            session = await engine.session()
            await session.wait(await session.send("edit"))
            return engine, session.id

    async def second(session_id):
        async with acp_engine(root, command, approver=approve) as engine:
            session = await engine.session(session_id)
            turn = await session.send("wait")
            await until(session, lambda event: "waiting" in getattr(event, "text", ""))
            await session.interrupt()
            await session.wait(turn)
            return engine

    engine, session_id = run(first())
    assert asked == [("edit", {"path": "a.txt", "old": "one\n", "new": "two\n"})]
    assert (root / "a.txt").read_text() == "two\n"
    said = "".join(one.text for one in events(engine, session_id, TextDelta))
    assert said == 'chosen=proceed_once read="two\\n" ran=0:from a terminal'
    assert [failed for _, _, failed in results(engine, session_id)] == [False, False, False]
    assert conversation(engine, session_id)[-1][0] == "assistant"

    engine = run(second(session_id))
    assert endings(engine, session_id) == ["done", "interrupted"]
    ids = {one.session_id for one in events(engine, session_id, AgentAttached)} - {""}
    assert ids == {"typed-1"}
    assert [one for one in events(engine, session_id, TraceEvent) if one.kind == "notice"] == []


def test_the_typescript_client_is_the_referee_of_our_scripted_agent(tmp_path):
    """Every message that the scripted agent sends fits the schema of the official client."""
    place = str(tmp_path / "a.txt")
    call = {"id": "c1", "title": "Edit", "kind": "edit"}
    turns = (
        [
            *({"think": "hm"}, {"say": "Hello"}, {"plan": [{"content": "one"}]}),
            {"call": {**call, "status": "pending", "diffs": [{"path": place, "new": "x"}]}},
            {
                "ask": {**call, "diffs": [{"path": place, "new": "x"}]},
                "then": [
                    {"write": {"path": place, "content": "x"}},
                    {"update": {"id": "c1", "status": "completed", "text": "ok"}},
                ],
            },
            *({"read": {"path": place}}, {"say": "{result}"}),
            *({"run": {"command": "ls", "args": ["-l"]}}, {"say": "{result}"}),
            *({"usage": {"cost": 0.5}}, {"mode": "auto"}, {"commands": ["help"]}),
            {"tokens": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}},
        ],
        [{"say": "waiting"}, {"wait": 1}, {"say": "never said"}],
    )
    command = scripted(tmp_path, *turns, load=True, modes=["auto", "default"])
    words = [node(), str(HERE / "client.mjs"), library(), str(tmp_path), *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["hello"]["protocolVersion"] == 1
    assert seen["modes"]["currentModeId"] == "auto"
    assert [one["toolCallId"] for one in seen["asked"]] == ["c1"]
    assert seen["files"] == {place: "x"}
    assert [one["stopReason"] for one in seen["ends"]] == ["end_turn", "cancelled"]
    assert [one["sessionUpdate"] for one in seen["updates"]] == [
        *("agent_thought_chunk", "agent_message_chunk", "plan", "tool_call", "tool_call_update"),
        *("agent_message_chunk", "agent_message_chunk", "usage_update", "current_mode_update"),
        *("available_commands_update", "agent_message_chunk"),
        *("user_message_chunk", "agent_message_chunk"),  # what was said before, on load
    ]
    texts = [one["content"]["text"] for one in seen["updates"] if "message" in one["sessionUpdate"]]
    assert texts[:3] == ["Hello", f"text of {place}", "0 False ran"]
    assert seen["stale"] == -32002
    assert "error" not in done.stderr.lower()
