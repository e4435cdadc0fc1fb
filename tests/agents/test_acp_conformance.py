"""The agent conformance suite, on an ACP agent whose program is scripted."""

import json
import sys

import pytest

from bridle.agents.acp import AcpAgent
from bridle.testing.agents import AgentConformance, Fail, Say, Wait, Write


def steps_of(act):
    """An act of the suite in the words of the scripted program."""
    match act:
        case Say(text):
            return [{"say": text}]
        case Wait():
            return [{"wait": 1}]
        case Fail():
            return [{"fail": {"message": "it broke"}}]
        case Write(path, content):
            call = {"id": path, "kind": "edit", "diffs": [{"path": path, "new": content}]}
            put = {"put": {"path": path, "content": content}}
            made = [put, {"update": {"id": path, "status": "completed"}}]
            left = [{"update": {"id": path, "status": "failed"}}]
            return [{"call": call}, {"ask": call, "then": made, "else": left}]
    raise AssertionError(act)


class TestAcp(AgentConformance):
    """Every case. (P7)"""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.folder = tmp_path

    def agent_for(self, script):
        prompts = {
            word: [step for act in acts for step in steps_of(act)] for word, acts in script.items()
        }
        agent = {"load": True, "remember": str(self.folder / "sessions.json")}
        place = self.folder / "script.json"
        place.write_text(json.dumps({"agent": agent, "prompts": prompts}))
        return AcpAgent([sys.executable, "-m", "bridle.testing.acp_agent", str(place)])
