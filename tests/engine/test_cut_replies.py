"""A reply that is cut off at its token limit: the model hears of it, and nothing is lost (M3)."""

import pytest

from bridle.engine.budget import Limits
from bridle.events import CallIntended, ToolResultEvent, TurnEnded
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.testing.anthropic import FakeAnthropic
from bridle.testing.openai import FakeOpenAI
from rig import call, events, is_valid, make_engine, run

VENDORS = {
    "anthropic": (FakeAnthropic, Anthropic, "max_tokens"),
    "openai": (FakeOpenAI, OpenAIResponses, "max_output_tokens"),
    "chat": (FakeOpenAI, OpenAIChat, "max_tokens"),
}
CUT = {"name": "save", "id": "one", "text": '{"text": "line 1\\nli'}
SENTENCE = (
    "Not run: your reply was cut off in the middle of this call at 4,096 tokens. "
    "Send it again in smaller parts."
)


def cut(**reply):
    return {**reply, "stop_reason": "max_tokens"}


def parts(*texts, **more):
    """A cut reply whose last call is `CUT`, after whole calls with these texts."""
    whole = [{"name": "save", "arguments": {"text": text}} for text in texts]
    return cut(calls=[*whole, CUT], **more)


async def told(script, *, vendor="anthropic", info=None, config=None, **rest):
    """The turn's result, what was saved, and the requests that the vendor got."""
    saved = []

    async def save(text: str) -> str:
        """Save it."""
        saved.append(text)
        return "saved"

    fake, adapter, _ = VENDORS[vendor]
    async with fake(script) as server:
        model = adapter("m", api_key="k-k-k", base_url=server.url, info=info)
        given = {"config": config or RequestConfig(max_tokens=4096), **rest}
        async with make_engine(model, save, mode="auto", **given) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert is_valid(session.history.transcript)
            return engine, session, result, saved, server.requests


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_call_that_was_cut_off_stays_in_the_history_and_the_turn_goes_on(vendor):
    """The vendors' fakes refuse a request whose calls are not answered or are not JSON."""
    usage = {"input_tokens": 10, "output_tokens": 4096}
    script = [parts("a", text="Two files.", usage=usage), call("save", text="b"), {"text": "done"}]
    engine, session, result, saved, requests = run(told(script, vendor=vendor))
    assert (result.reason, result.ok, result.text) == ("done", True, "done")
    assert (saved, len(requests)) == (["a", "b"], 3)
    outputs = [one.output for one in events(engine, session.id, ToolResultEvent)]
    assert [(one.text, one.is_error) for one in outputs if one.call_id == "one"] == [
        (SENTENCE, True)
    ]
    assert len(events(engine, session.id, CallIntended)) == 2
    assert session.history.transcript[1].tool_calls[-1].id == "one"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_call_of_whose_arguments_nothing_came_does_not_run(vendor):
    script = [cut(calls=[{"name": "save", "id": "one", "text": ""}]), {"text": "done"}]
    engine, session, result, saved, _ = run(told(script, vendor=vendor))
    (output,) = [one.output for one in events(engine, session.id, ToolResultEvent)]
    assert (result.reason, saved, output.is_error) == ("done", [], True)
    assert "cut off in the middle of this call" in output.text


def test_a_model_that_is_always_cut_off_in_a_call_ends_the_turn():
    *_, result, saved, requests = run(told([parts()] * 9, limits=Limits(repeats=3)))
    assert (result.reason, result.ok, saved, len(requests)) == ("max_tokens", False, [], 3)


@pytest.mark.parametrize("vendor", VENDORS)
def test_text_that_was_cut_off_is_gone_on_with_once(vendor):
    script = [cut(text="One, two, "), {"text": "three."}]
    _, session, result, _, requests = run(told(script, vendor=vendor))
    assert (result.reason, result.text, len(requests)) == ("done", "One, two, three.", 2)
    roles = [one.role for one in session.history.transcript]
    assert roles == ["user", "assistant", "user", "assistant"]


def test_text_that_is_still_cut_off_ends_the_turn_as_that():
    script = [cut(text="One, "), cut(text="two, "), {"text": "three."}]
    engine, session, result, _, requests = run(told(script))
    assert (result.reason, result.ok, result.text) == ("max_tokens", False, "One, two, ")
    assert len(requests) == 2
    (end,) = events(engine, session.id, TurnEnded)
    assert (end.reason, "--max-tokens" in end.hint) == ("max_tokens", True)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("most", "sent"), [(128_000, 32_000), (4_000, 4_000)])
def test_without_a_limit_the_smaller_of_the_models_and_32000_is_sent(vendor, most, sent):
    info = ProviderInfo("m", "m", max_output=most)
    *_, requests = run(told(["ok"], vendor=vendor, info=info, config=RequestConfig()))
    assert requests[0].body[VENDORS[vendor][2]] == sent
