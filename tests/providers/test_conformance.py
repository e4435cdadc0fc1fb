"""Every provider of ours keeps the promise, on the wire of its vendor."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridle.events import ModelEvent, ResponseCompleted, TextDelta
from bridle.messages import Message, Text
from bridle.protocols.provider import Provider, ProviderInfo, Request
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.providers.scripted import Scripted
from bridle.testing import FakeAnthropic, FakeOpenAI, FakeServer, ProviderConformance
from bridle.testing.conformance import CASES, KEY, Stage, check_provider
from bridle.testing.script import WireScriptable


class TestAnthropic(ProviderConformance):
    """(M5, A3) Anthropic Messages."""

    fake = FakeAnthropic

    def provider_for(self, server: FakeServer) -> Provider:
        return Anthropic("claude-test", api_key=KEY, base_url=server.url)


class TestOpenAIResponses(ProviderConformance):
    """(A3) OpenAI Responses."""

    fake = FakeOpenAI

    def provider_for(self, server: FakeServer) -> Provider:
        return OpenAIResponses("gpt-test", api_key=KEY, base_url=server.url)


class TestOpenAIChat(ProviderConformance):
    """(A3) OpenAI Chat Completions, which knows no tools of the vendor's own."""

    fake = FakeOpenAI
    lacks = frozenset({"a_tool_of_the_vendor_is_traced"})

    def provider_for(self, server: FakeServer) -> Provider:
        return OpenAIChat("gpt-test", api_key=KEY, base_url=server.url)


class TestScripted(ProviderConformance):
    """A provider without a wire: what can only happen on one is left out."""

    lacks = frozenset(
        {
            "deltas_come_before_the_end",
            "thinking_goes_back_in_a_tool_loop",
            "pings_say_nothing",
            "an_unknown_event_is_traced",
            "a_tool_of_the_vendor_is_traced",
            "bytes_may_be_split_anywhere",
            "a_page_from_between_is_a_typed_error",
            "a_stream_cut_at_any_byte_is_retryable",
            "a_broken_event_is_traced",
            "broken_arguments_are_never_ready",
            "a_line_without_end_is_a_typed_error",
            "closing_ends_the_request",
            "cancelling_ends_the_request",
            "the_key_is_in_no_error",
            "an_error_in_the_stream_is_typed",
        }
    )

    @asynccontextmanager
    async def setting(self, *script: WireScriptable) -> AsyncIterator[Stage]:
        yield Stage(Scripted(script), None)


class Forgetful:
    """A provider that keeps little of the promise."""

    info = ProviderInfo("forgetful")

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta("hello")
        yield ResponseCompleted("complete", Message("assistant", (Text("goodbye"),)))

    async def close(self) -> None:
        pass


def test_a_provider_that_breaks_the_promise_is_told_every_case() -> None:
    waits = {"cancelling_ends_the_request", "closing_ends_the_request"}
    with pytest.raises(AssertionError) as caught:
        asyncio.run(check_provider(FakeAnthropic, lambda _: Forgetful(), lacks=waits))
    told = str(caught.value)
    assert "text_is_streamed: the text came in one piece" in told
    assert "a_status_is_a_typed_error: a failed stream has a ResponseCompleted" in told
    assert "usage_is_the_vendors: fresh input:\n  got    0\n  wanted 70" in told


def test_the_suite_runs_without_pytest() -> None:
    def provider_for(server: FakeServer) -> Provider:
        return OpenAIResponses("gpt-test", api_key=KEY, base_url=server.url)

    slow = {"a_line_without_end_is_a_typed_error", "bytes_may_be_split_anywhere"}
    ran = asyncio.run(check_provider(FakeOpenAI, provider_for, lacks=slow))
    assert ran == [name for name in CASES if name not in slow]


def test_a_case_that_does_not_exist_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="no_such_case"):
        type("TestTypo", (ProviderConformance,), {"lacks": frozenset({"no_such_case"})})
