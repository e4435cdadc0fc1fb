"""Calls that a small model wrote into its text: recognised, held back, never shown raw."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import collected, saying, served

from bridle.events import ModelEvent, ResponseCompleted, TextDelta, ToolCallReady, ToolCallStarted
from bridle.messages import Message, Text, ToolCall, user
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.text_tool_calls import TextCalls

NAMES = frozenset({"read", "look"})
CALL = '{"name": "read", "arguments": {"path": "a\\n```b"}}'
PATH = {"path": "a\n```b"}
LOOK = '{"tool": "look", "args": {}}'
READS = [("read", PATH)]
LABELLED = f"```json{' ' * 30}\n{CALL}\n```\n"  # the label of no language


def watched(*pieces: str) -> tuple[str, list[str], list[tuple[str, dict]]]:
    """All text that was shown, the part of it that came early, and the calls."""
    watch = TextCalls(NAMES)
    early = [shown for piece in pieces if (shown := watch.feed(piece))]
    rest, calls = watch.finish()
    return "".join(early) + rest, early, [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize(
    ("text", "shown", "calls"),
    [
        (CALL, "", READS),
        (f"  \n{CALL}\n", "", READS),
        (f"```json\n{CALL}\n```", "", READS),
        (f"```\n{CALL}\n```\n", "", READS),
        (f"<tool_call>\n{CALL}\n</tool_call>", "", READS),
        (f"<tool_call>{CALL}", "", READS),
        (f"```json\n<tool_call>{CALL}", "", READS),
        (f"```xml\n <tool_call>\n{CALL}\n</tool_call>\n```", "", READS),
        (f"I look.\n```json\n{CALL}\n```", "I look.\n", READS),
        (f"I look.\n{CALL}", "I look.\n", READS),
        (f"{LABELLED}{CALL}", LABELLED, READS),
        (f"[{CALL}, {LOOK}]", "", [*READS, ("look", {})]),
        (f"{CALL}\n{LOOK}", "", [*READS, ("look", {})]),
        (
            f"<tool_call>{CALL}</tool_call>\n<tool_call>{LOOK}</tool_call>",
            "",
            [*READS, ("look", {})],
        ),
        ('{"name": "look"}', "", [("look", {})]),
        ('{"name": "look", "arguments": "{\\"deep\\": true}"}', "", [("look", {"deep": True})]),
        ('{"name": "look", "parameters": {"deep": true}}', "", [("look", {"deep": True})]),
        (
            '{"type": "function", "function": {"name": "look", "arguments": {}}}',
            "",
            [("look", {})],
        ),
    ],
)
def test_a_call_in_the_text_becomes_a_call(text: str, shown: str, calls: list) -> None:
    assert watched(text)[::2] == (shown, calls)
    assert watched(*text)[::2] == (shown, calls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Just words.",
        '{"name": "unknown", "arguments": {}}',
        '{"name": "Ada", "age": 36}',
        '{"name": "read", "arguments": [1]}',
        '{"name": "read", "arguments": {"path"',
        f"{CALL} is how one would do it.",
        f"```python\n{CALL}\n```",
        f"```json\n<tool_cal>{CALL}\n```",
        f"```\nplain\n{CALL}\n```\n",
        f"Write {CALL} for it.",
        "[a link](https://example.org)",
        "{ok}",
        "```",
        "<tool",
        "[" * 5000 + CALL,
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert watched(text)[::2] == (text, [])
    assert watched(*text)[::2] == (text, [])


def test_text_that_cannot_be_a_call_is_let_go_at_once() -> None:
    """Held only while it can still become one."""
    pieces = ["{", '"na', 'tion"', ": 1}", "\n", "x", "``", "`"]
    watch = TextCalls(NAMES)
    shown = [watch.feed(piece) for piece in pieces]
    assert shown == ["", "", '{"nation"', ": 1}", "\n", "x", "``", "`"]


PIECES = st.sampled_from(
    [
        *(CALL, LOOK, "```json\n", "```", "\n", "<tool_call>", " ", "word", "{", '"'),
        *("```json", "</tool_call>", "<tool", " " * 12, "["),
    ]
)


@given(st.lists(PIECES, max_size=8), st.integers(1, 7))
def test_no_split_changes_what_is_found_and_no_text_is_lost(pieces, width) -> None:
    text = "".join(pieces)
    whole, _, calls = watched(text)
    parts = [text[at : at + width] for at in range(0, len(text), width)]
    assert watched(*parts)[::2] == (whole, calls)
    assert whole == text if not calls else text.startswith(whole)


class Read:
    """A tool, as much of it as a model is told."""

    name = "read"
    description = "Reads a file."
    parameters = {"type": "object"}


def streamed(text: str, info: ProviderInfo | None = None, **options: bool) -> list[ModelEvent]:
    chunks = [{"choices": [{"delta": {"content": letter}}]} for letter in text]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    data = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)

    async def main() -> list[ModelEvent]:
        async with served(saying(data)) as place:
            provider = OpenAIChat("m", base_url=place.url, info=info, **options)
            return await collected(provider, Request([user("go")], (Read(),)))

    return asyncio.run(main())


def test_a_provider_that_reads_calls_in_text_makes_real_calls_of_them() -> None:
    """(A2): the person sees the text before, and never the JSON."""
    events = streamed(f"I look.\n{CALL}", calls_in_text=True)
    done = events[-1]
    assert isinstance(done, ResponseCompleted)
    assert done.message is not None
    (call,) = done.message.tool_calls
    assert call == ToolCall(call.id, "read", PATH)
    assert done.message == Message("assistant", (Text("I look.\n"), call))
    assert done.stop_reason == "tool_use"
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == "I look.\n"
    assert events[-3:-1] == [ToolCallStarted(call.id, "read"), ToolCallReady(call)]


def test_it_is_on_for_local_servers_and_off_for_others() -> None:
    local = streamed(CALL, ProviderInfo("ollama", "m", local=True))[-1]
    remote = streamed(CALL)[-1]
    assert (local.stop_reason, remote.stop_reason) == ("tool_use", "complete")
    assert remote.message == Message("assistant", (Text(CALL),))
