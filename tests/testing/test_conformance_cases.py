"""The conformance suite finds what it is there to find: each defect, by the case that names it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from bridle.errors import AgentError, Overloaded, RequestRefused
from bridle.events import (
    ModelEvent,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking
from bridle.protocols.provider import Provider, Request
from bridle.providers.anthropic import Anthropic
from bridle.testing import KEY, FakeAnthropic, FakeServer
from bridle.testing.bench import serve
from bridle.testing.conformance import CASES
from bridle.usage import Usage

Spoil = Callable[[AsyncIterator[ModelEvent]], AsyncGenerator[ModelEvent, None]]


class Spoiled:
    """A provider that is right, and a defect between it and its caller."""

    def __init__(self, inner: Provider, spoil: Spoil) -> None:
        self.info = inner.info
        self.close = inner.close
        self._inner = inner
        self._spoil = spoil

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        async with (
            aclosing(self._inner.stream(request)) as events,
            aclosing(self._spoil(events)) as spoiled,
        ):
            async for event in spoiled:
                yield event


def changed(change: Callable[[ModelEvent], list[ModelEvent]]) -> Spoil:
    """A defect in single events."""

    async def spoil(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
        async for event in events:
            for told in change(event):
                yield told

    return spoil


def without(kind: type[ModelEvent]) -> Spoil:
    return changed(lambda event: [] if isinstance(event, kind) else [event])


def at_the_end(change: Callable[[ResponseCompleted], list[ModelEvent]]) -> Spoil:
    return changed(lambda event: change(event) if isinstance(event, ResponseCompleted) else [event])


def less(kind: type) -> Spoil:
    """The message lost its parts of this kind."""

    def change(done: ResponseCompleted) -> list[ModelEvent]:
        parts = done.message.parts if done.message else ()
        kept = tuple(part for part in parts if not isinstance(part, kind))
        return [replace(done, message=Message("assistant", kept))]

    return at_the_end(change)


async def in_one_piece(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    held = [event async for event in events]
    for event in held:
        yield event


async def swallowed(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    try:
        async for event in events:
            yield event
    except AgentError:
        yield ResponseCompleted("complete", Message("assistant"))


def raising(make: Callable[[AgentError], AgentError]) -> Spoil:
    async def spoil(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
        try:
            async for event in events:
                yield event
        except AgentError as error:
            raise make(error) from None

    return spoil


@pytest.mark.parametrize(
    ("case", "spoil"),
    [
        ("text_is_streamed", without(TextDelta)),
        ("text_is_streamed", at_the_end(lambda done: [done, done])),
        ("text_is_streamed", at_the_end(lambda done: [done, TextDelta("more")])),
        ("text_is_streamed", less(Text)),
        ("thinking_is_kept", without(ThinkingDelta)),
        ("thinking_is_kept", less(Thinking)),
        ("thinking_goes_back_in_a_tool_loop", less(Thinking)),
        ("arguments_grow_until_they_are_whole", without(ToolCallArgsDelta)),
        ("arguments_grow_until_they_are_whole", without(ToolCallReady)),
        ("the_message_is_what_was_streamed", less(Text)),
        ("usage_is_the_vendors", without(UsageReported)),
        ("usage_is_the_vendors", at_the_end(lambda done: [replace(done, usage=Usage(470, 42))])),
        ("stop_reasons_are_told", at_the_end(lambda done: [replace(done, stop_reason="complete")])),
        ("a_refusal_is_a_stop_reason", at_the_end(lambda d: [replace(d, stop_reason="complete")])),
        ("an_unknown_event_is_traced", without(TraceEvent)),
        ("a_tool_of_the_vendor_is_traced", without(TraceEvent)),
        ("a_broken_event_is_traced", without(TraceEvent)),
        ("a_cut_stream_is_retryable", swallowed),
        ("a_stream_cut_at_any_byte_is_retryable", swallowed),
        ("a_status_is_a_typed_error", swallowed),
        ("a_status_is_a_typed_error", raising(lambda error: RequestRefused(str(error)))),
        ("retry_after_is_kept", raising(lambda error: Overloaded(str(error)))),
        ("an_error_in_the_stream_is_typed", swallowed),
        ("a_closed_connection_is_a_network_error", raising(lambda _: Overloaded("?"))),
        ("a_line_without_end_is_a_typed_error", swallowed),
        ("the_key_is_in_no_error", raising(lambda _: RequestRefused(f"the key {KEY} is wrong"))),
        ("the_key_is_in_no_error", raising(lambda _: RequestRefused("no", hint=KEY))),
    ],
)
def test_a_defect_is_found(case: str, spoil: Spoil) -> None:
    def provider_for(server: FakeServer) -> Provider:
        return Spoiled(Anthropic("m", api_key=KEY, base_url=server.url), spoil)

    with pytest.raises(AssertionError):
        asyncio.run(CASES[case](serve(FakeAnthropic, provider_for)))


def test_a_reply_that_is_held_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def provider_for(server: FakeServer) -> Provider:
        return Spoiled(Anthropic("m", api_key=KEY, base_url=server.url), in_one_piece)

    monkeypatch.setattr("bridle.testing.bench.PATIENCE", 0.2)
    with pytest.raises(AssertionError, match="no text came while the reply was under way"):
        asyncio.run(CASES["deltas_come_before_the_end"](serve(FakeAnthropic, provider_for)))
