"""A conversation that a vendor refuses for its length, over real sockets, in the middle of a turn.

The servers insist on their order: every call answered in place, sealed thoughts as they were.
"""

import pytest

from bridle.events import Compacted, TraceEvent
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.testing.anthropic import FakeAnthropic
from bridle.testing.openai import FakeOpenAI
from rig import events, is_valid, make_engine, run

SAID = {
    "anthropic": {"message": "prompt is too long: 208310 tokens > 200000 maximum"},
    "openai": {"message": "Your input exceeds it.", "code": "context_length_exceeded"},
    "chat": {"message": "This model's maximum context length is 4096 tokens. You asked for more."},
}
VENDORS = {
    "anthropic": (FakeAnthropic, Anthropic),
    "openai": (FakeOpenAI, OpenAIResponses),
    "chat": (FakeOpenAI, OpenAIChat),
}


async def look(size: int) -> str:
    """Look at so much."""
    return "line\n" * (size // 5)


def looks(number):
    return {
        "thinking": f"hm {number}",
        "signature": f"sig{number}==",
        "calls": [{"name": "look", "arguments": {"size": 20_000}, "id": f"call_{number}"}],
    }


@pytest.mark.parametrize("vendor", VENDORS)
def test_it_is_shortened_once_and_the_vendor_takes_it(vendor):
    async def story():
        fake, adapter = VENDORS[vendor]
        refused = {"error": {"kind": "invalid", "status": 400, **SAID[vendor]}}
        summary = {"text": "In short."}
        script = [*map(looks, range(4)), refused, summary, {"text": "done"}]
        async with fake(script) as server:
            model = adapter("m", api_key="k-k-k", base_url=server.url)
            async with make_engine(model, look, mode="auto") as engine:
                session = await engine.session()
                result = await session.wait(await session.send("go on"))
                assert is_valid(session.history.transcript)
                return engine, session, result, server.requests

    engine, session, result, requests = run(story())
    assert (result.text, result.reason, len(requests)) == ("done", "done", 7)
    (compacted,) = events(engine, session.id, Compacted)
    assert (compacted.summary, compacted.messages[1].content) == (True, "go on")
    newest = compacted.messages[-2:]
    assert (newest[0].reasoning, newest[0].tool_calls[0].id) == ("hm 3", "call_3")
    assert [one.kind for one in events(engine, session.id, TraceEvent)] == ["error", "shortening"]
