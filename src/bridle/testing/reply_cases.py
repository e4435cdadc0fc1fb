"""Conformance, first half: what a provider makes of replies that go well.

Each case is a function of a setting; its docstring is the promise that it checks.
"""

import asyncio

import msgspec

from bridle.events import (
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.provider import Request
from bridle.testing.bench import (
    Listing,
    Setting,
    expect,
    first_words,
    heard,
    joined,
    listen,
    same,
)
from bridle.usage import Usage

WORDS = "Grüße, 世界! Two words 🐎 and\nanother line."
CALLS = (
    ToolCall("one", "read", {"path": "a/b.txt", "lines": [1, 2], "deep": {"é": None}}),
    ToolCall("two", "shell", {"command": 'echo "hi" \\ there'}),
    ToolCall("three", "todo", {}),
)


def _scripted(*calls: ToolCall) -> list[dict[str, object]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


async def text_is_streamed(setting: Setting) -> None:
    """Text comes in deltas, and the message holds the same text."""
    said = await heard(setting, {"text": WORDS})
    expect(len(said.of(TextDelta)) > 1, "the text came in one piece")
    same("the deltas, joined", joined(said.of(TextDelta)), WORDS)
    same("the message", said.message, Message("assistant", (Text(WORDS),)))
    same("the stop reason", said.done.stop_reason, "complete")


async def deltas_come_before_the_end(setting: Setting) -> None:
    """A delta is told when it comes, not when the reply is over."""
    async with setting({"text": "first words", "silent": True}) as stage:
        await first_words(stage)


async def thinking_is_kept(setting: Setting) -> None:
    """Thinking comes in deltas of its own and stays on the message, apart from the text."""
    said = await heard(setting, {"thinking": "let me see", "text": "so"})
    same("the thinking deltas", joined(said.of(ThinkingDelta)), "let me see")
    same("the message's reasoning", said.message.reasoning, "let me see")
    same("the message's text", said.message.content, "so")


async def thinking_goes_back_in_a_tool_loop(setting: Setting) -> None:
    """Inside a tool loop the vendor gets its thinking back unmodified, and every call's answer."""
    first = {"thinking": "hm", "calls": _scripted(*CALLS), "redacted": "c2VjcmV0"}
    async with setting(first, {"text": "done"}) as stage:
        message = (await listen(stage.provider)).message
        outputs = tuple(ToolOutput(call.id, "ok", name=call.name) for call in message.tool_calls)
        again = Request([user("go"), message, Message("tool", outputs)])
        same("the second reply", (await listen(stage.provider, again)).message.content, "done")


async def arguments_grow_until_they_are_whole(setting: Setting) -> None:
    """Each call starts, grows, and is ready once, when its arguments are whole and parse."""
    said = await heard(setting, {"text": "now", "calls": _scripted(*CALLS), "chunk": 3})
    same("the ready calls", [event.call for event in said.of(ToolCallReady)], list(CALLS))
    same("the message's calls", said.message.tool_calls, CALLS)
    same("the stop reason", said.done.stop_reason, "tool_use")
    for call in CALLS:
        _check_growth(said, call)


def _check_growth(said: Listing, call: ToolCall) -> None:
    events = said.events
    start = events.index(ToolCallStarted(call.id, call.name))
    ready = events.index(ToolCallReady(call))
    pieces = [
        (index, event)
        for index, event in enumerate(events)
        if isinstance(event, ToolCallArgsDelta) and event.call_id == call.id
    ]
    inside = all(start < index < ready for index, _ in pieces)
    expect(inside, f"arguments of {call.id} came outside of its start and its end")
    text = "".join(event.text for _, event in pieces) or "{}"
    same(f"the arguments of {call.id}", msgspec.json.decode(text), call.arguments)
    expect(len(pieces) > 1 or not call.arguments, f"the arguments of {call.id} did not grow")


async def the_message_is_what_was_streamed(setting: Setting) -> None:
    """Thinking, text and calls of the message are those of the stream, in their order."""
    reply = {"thinking": "hm", "text": WORDS, "calls": _scripted(*CALLS[:2])}
    said = await heard(setting, reply)
    kinds = [type(part) for part in said.message.parts]
    same("the kinds of the parts", kinds, [Thinking, Text, ToolCall, ToolCall])
    same("the text", said.message.content, joined(said.of(TextDelta)))
    same("the thinking", said.message.reasoning, joined(said.of(ThinkingDelta)))
    ready = tuple(event.call for event in said.of(ToolCallReady))
    same("the calls", said.message.tool_calls, ready)


async def usage_is_the_vendors(setting: Setting) -> None:
    """The figures are the vendor's own, the cache's apart, and are reported before the end."""
    wanted = Usage(70, 42, 300, 100)
    said = await heard(setting, {"text": "hi", "usage": msgspec.to_builtins(wanted)})
    got = said.done.usage
    same("fresh input", got.fresh_tokens, 70)
    same("output", got.output_tokens, 42)
    same("cache reads", got.cache_read_tokens, 300)
    same("cache writes", got.cache_write_tokens, 100)
    same("everything read", got.context_tokens, 470)
    reports = said.of(UsageReported)
    expect(bool(reports), "no UsageReported came")
    same("the last report", reports[-1].usage, got)


async def stop_reasons_are_told(setting: Setting) -> None:
    """Complete, tool use, and a reply that hit its limit."""
    cut_off = await heard(setting, {"text": "and so", "stop_reason": "max_tokens"})
    same("the stop reason", cut_off.done.stop_reason, "max_tokens")
    same("what was said until then", cut_off.message.content, "and so")
    complete = await heard(setting, {"text": "and so"})
    same("the stop reason", complete.done.stop_reason, "complete")


async def a_refusal_is_a_stop_reason(setting: Setting) -> None:
    """The model's refusal is a reply, not an error."""
    said = await heard(setting, {"text": "I cannot do that.", "stop_reason": "refusal"})
    same("the stop reason", said.done.stop_reason, "refusal")


async def an_empty_reply_is_a_reply(setting: Setting) -> None:
    """A model may say nothing."""
    said = await heard(setting, {})
    same("the message", said.message, Message("assistant"))


async def pings_say_nothing(setting: Setting) -> None:
    """Signs of life are no events."""
    plain = await heard(setting, {"text": WORDS})
    pinged = await heard(setting, {"text": WORDS, "pings": 3})
    same("the events", pinged.events, plain.events)


async def an_unknown_event_is_traced(setting: Setting) -> None:
    """An event of a kind that is not known is a TraceEvent, and the reply goes on."""
    strange = {"type": "brand_new_event", "detail": 7}
    reply = {"text": WORDS, "calls": _scripted(CALLS[0]), "unknown": [strange]}
    said = await heard(setting, reply)
    expect(bool(said.of(TraceEvent)), "the unknown event left no trace")
    same("the text", said.message.content, WORDS)
    same("the calls", said.message.tool_calls, CALLS[:1])


async def a_tool_of_the_vendor_is_traced(setting: Setting) -> None:
    """What the vendor's own tools did is a trace, and never a call for us."""
    tool = {"name": "web_search", "input": {"query": "horses"}}
    said = await heard(setting, {"text": "found", "server_tool": tool})
    expect(bool(said.of(TraceEvent)), "the vendor's own tool left no trace")
    same("the calls", said.message.tool_calls, ())
    same("the text", said.message.content, "found")


async def bytes_may_be_split_anywhere(setting: Setting) -> None:
    """The same events come however the network cuts the bytes, and whatever ends a line."""
    reply = {"thinking": "hm", "text": WORDS, "calls": _scripted(*CALLS), "pings": 1}
    whole = await heard(setting, reply)
    same("the text", whole.message.content, WORDS)
    for change in ({"split": 1}, {"split": 2}, {"split": 7}, {"newline": "\r\n", "split": 1}):
        same(f"the events with {change}", (await heard(setting, {**reply, **change})), whole)


async def streams_do_not_mix(setting: Setting) -> None:
    """Two streams of one provider at once each say their own."""
    script = [{"text": letter * 20, "chunk": 1, "pause": 0.001} for letter in "ab"]
    async with setting(*script) as stage:
        both = await asyncio.gather(listen(stage.provider), listen(stage.provider))
    same("the two texts", sorted(said.message.content for said in both), ["a" * 20, "b" * 20])
    for said in both:
        same("the deltas", joined(said.of(TextDelta)), said.message.content)


async def a_closed_provider_can_be_used_again(setting: Setting) -> None:
    """`close` lets go of connections; the next stream makes new ones."""
    async with setting("one", "two") as stage:
        same("the first reply", (await listen(stage.provider)).message.content, "one")
        await stage.provider.close()
        same("the second reply", (await listen(stage.provider)).message.content, "two")


CASES = (
    text_is_streamed,
    deltas_come_before_the_end,
    thinking_is_kept,
    thinking_goes_back_in_a_tool_loop,
    arguments_grow_until_they_are_whole,
    the_message_is_what_was_streamed,
    usage_is_the_vendors,
    stop_reasons_are_told,
    a_refusal_is_a_stop_reason,
    an_empty_reply_is_a_reply,
    pings_say_nothing,
    an_unknown_event_is_traced,
    a_tool_of_the_vendor_is_traced,
    bytes_may_be_split_anywhere,
    streams_do_not_mix,
    a_closed_provider_can_be_used_again,
)
