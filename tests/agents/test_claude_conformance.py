"""Claude Code passes the suite that every agent has to pass."""

from contextlib import asynccontextmanager

import pytest
from claude_rig import USED, claude

from bridle.testing.agents import AgentConformance, Fail, Say, Wait, Write, acts_for


def replies_for(acts):
    """The model's replies that bring Claude Code to do that."""
    replies, reply = [], {"usage": USED, "chunk": 4}
    for act in acts:
        if isinstance(act, Say):
            reply["text"] = reply.get("text", "") + act.text
        elif isinstance(act, Write):
            given = {"file_path": act.path, "content": act.content}
            replies.append({**reply, "calls": [{"name": "Write", "arguments": given}]})
            reply = {"usage": USED}
        elif isinstance(act, Wait):
            reply["silent"] = True
        elif isinstance(act, Fail):
            reply = {"error": {"kind": "agent", "message": "it is broken", "status": 401}}
    return [*replies, reply]


def vendor(script):
    """A model that does as the script says for the last prompt that it was sent."""

    def answer(body):
        prompt, results = "", 0
        for message in body["messages"]:
            if message["role"] != "user":
                continue
            blocks = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            texts = [one["text"] for one in blocks if one["type"] == "text"]
            if any(key in text for key in script for text in texts):
                prompt, results = " ".join(texts), 0
            results += sum(one["type"] == "tool_result" for one in blocks)
        return replies_for(acts_for(script, prompt))[results]

    return answer


class TestClaudeCode(AgentConformance):
    @pytest.fixture(autouse=True)
    def home(self, tmp_path):
        self.folder = tmp_path  # the same for another process: conversations are kept there

    @asynccontextmanager
    async def setting(self, script):
        async with claude(vendor(script), self.folder) as (agent, _):
            yield agent
