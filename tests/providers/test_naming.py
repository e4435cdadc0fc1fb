"""A history that began elsewhere is taken by every vendor (A1): ids and names are made to fit."""

import asyncio
import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.messages import Message, ToolCall, ToolOutput, user
from bridle.protocols.provider import Provider, Request, drain
from bridle.providers.anthropic import Anthropic
from bridle.providers.encoding_cache import fit_name
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.testing import FakeAnthropic, FakeOpenAI, FakeServer

STRANGE = (
    ToolCall("functions.look:0", "functions.look", {}),
    ToolCall("functions_look_0", "look", {}),
    ToolCall("functions.look;0", "läs fil", {}),
    ToolCall("x" * 200, "n" * 300, {}),
    ToolCall("é", "", {}),
)


@given(st.text(max_size=90), st.text(max_size=90))
def test_words_fit_stay_apart_and_are_kept_where_they_can_be(one: str, other: str) -> None:
    for word in (one, other):
        assert re.fullmatch("[a-zA-Z0-9_-]{1,40}", fit_name(word, 40))
        assert fit_name(word, 40) == fit_name(word, 40)
    assert (fit_name(one, 40) == fit_name(other, 40)) == (one == other)
    assert fit_name("call_1-B", 64) == "call_1-B"


@pytest.mark.parametrize(
    ("fake", "make"),
    [
        (FakeAnthropic, lambda url: Anthropic("m", api_key="k", base_url=url)),
        (FakeOpenAI, lambda url: OpenAIResponses("m", api_key="k", base_url=url)),
        (FakeOpenAI, lambda url: OpenAIChat("m", api_key="k", base_url=url)),
    ],
)
def test_ids_and_names_of_other_servers_are_no_reason_to_refuse(
    fake: Callable[..., FakeServer], make: Callable[[str], Provider]
) -> None:
    """The fakes check the patterns, and that each result belongs to its call."""
    outputs = tuple(ToolOutput(call.id, "ok", name=call.name) for call in STRANGE)
    told = [user("go"), Message("assistant", STRANGE), Message("tool", outputs), user("on")]

    async def main() -> str:
        async with fake(["fine"]) as server:
            provider = make(server.url)
            try:
                return (await drain(provider.stream(Request(told)))).content
            finally:
                await provider.close()

    assert asyncio.run(main()) == "fine"


def test_a_broken_call_goes_back_with_empty_arguments() -> None:
    """The vendors take objects only; what was wrong stands in the result."""
    broken = ToolCall("c", "look", {}, '{"a": ')
    told = [user("go"), Message("assistant", (broken,)), Message("tool", (ToolOutput("c", "no"),))]
    request = Request(told)
    for provider, wanted in (
        (Anthropic("m"), '"input":{}'),
        (OpenAIResponses("m"), '"arguments":"{}"'),
        (OpenAIChat("m"), '"arguments":"{}"'),
    ):
        body = provider.encode(request).decode()
        assert wanted in body
        assert "broken" not in json.dumps(body)
