"""The ledger: what is encoded step by step is what would be encoded from the beginning."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Transcript,
    user,
)
from bridle.protocols.provider import Request, RequestConfig
from bridle.providers.anthropic import Anthropic, MessagesScript
from bridle.providers.encoding_cache import cache_of
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses

PROVIDERS = [Anthropic("m"), OpenAIResponses("m"), OpenAIChat("m")]
METAS = {
    "anthropic": {"api": "anthropic", "model": "m", "signature": "sig"},
    "openai": {"api": "openai", "model": "m", "id": "rs", "encrypted_content": "enc"},
    "chat": {"api": "openai-chat", "model": "m", "field": "reasoning_content"},
    "other": {"api": "anthropic", "model": "another", "signature": "sig"},
}
CALL = ToolCall("c1", "read", {"path": "a"})
ANSWER = Message("tool", (ToolOutput("c1", "text"),))


def thinking(api: str, *more: Any) -> Message:
    return Message("assistant", (Thinking("hm", METAS[api]), *more))


MESSAGES = st.sampled_from(
    [
        user("a prompt"),
        user("two", "parts"),
        user(""),
        Message("system", (Text("a rule"),)),
        Message("assistant", (Text("an answer"),)),
        Message("assistant", ()),
        ANSWER,
        *(thinking(api, Text("said"), CALL) for api in METAS),
        *(thinking(api) for api in METAS),
    ]
)
STEPS = st.lists(st.tuples(MESSAGES, st.integers(0, 40), st.booleans()), max_size=25)


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
@given(steps=STEPS)
def test_growing_branching_and_new_turns_encode_as_from_the_beginning(provider, steps) -> None:
    """(M5): any growth, any branch, any order of requests."""
    known = [Transcript()]
    for message, pick, asks in steps:
        known.append(known[pick % len(known) if pick > 20 else -1].plus(message))
        if asks:
            for transcript in (known[-1], known[pick % len(known)]):
                fresh = Request(Transcript(transcript))
                assert provider.encode(Request(transcript)) == provider.encode(fresh)
    for transcript in known:
        body = provider.encode(Request(transcript))
        assert body == provider.encode(Request(list(transcript)))
        json.loads(body)


def sent(provider: Any, messages: Any, key: str = "messages") -> Any:
    return json.loads(provider.encode(Request(messages)))[key]


def test_only_new_messages_are_encoded() -> None:
    """A request costs the messages that are new: the rest is not even looked at."""
    looked: list[Message] = []

    class Watched(MessagesScript):
        def write(self, message, thinking):
            looked.append(message)
            return super().write(message, thinking)

    script = Watched("m")
    transcript = Transcript()
    for step in range(50):
        transcript = transcript.plus(user(f"{step}"))
        transcript = transcript.plus(Message("assistant", (Text("yes"),)))
        cache_of(transcript, script).join(transcript, b"[", b"]")
    assert looked == list(transcript)


def test_thinking_goes_back_inside_its_turn_and_not_after() -> None:
    """(M5): word for word, first in its message, to the model that thought it."""
    first = Transcript([user("go"), thinking("anthropic", CALL), ANSWER])
    block = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
    assert sent(Anthropic("m"), first)[1]["content"] == [block, call]
    assert sent(Anthropic("another"), first)[1]["content"] == [call]
    later = first.plus(Message("assistant", (Text("done"),))).plus(user("more"))
    assert sent(Anthropic("m"), later)[1]["content"] == [call]
    assert sent(Anthropic("m"), first)[1]["content"] == [block, call]


def test_a_redacted_thought_goes_back_as_it_came() -> None:
    meta = {"api": "anthropic", "model": "m", "redacted": "data"}
    messages = [user("go"), Message("assistant", (Thinking("", meta), CALL)), ANSWER]
    block = {"type": "redacted_thinking", "data": "data"}
    assert sent(Anthropic("m"), messages)[1]["content"][0] == block


def test_results_and_a_word_of_the_person_become_one_message() -> None:
    """(M5): roles take turns, and an empty message is left out."""
    messages = [user("go"), Message("assistant", (CALL,)), ANSWER, user(" "), user("and hurry")]
    roles = [entry["role"] for entry in sent(Anthropic("m"), messages)]
    assert roles == ["user", "assistant", "user"]
    assert sent(Anthropic("m"), messages)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "text"},
        {"type": "text", "text": "and hurry"},
    ]


def test_pictures_and_failures_of_a_tool_are_said_where_the_api_can() -> None:
    image = Image("image/png", "aGk=")
    result = Message("tool", (ToolOutput("c1", "seen", is_error=True, media=(image,)),))
    messages = [user("go"), Message("assistant", (CALL,)), result]
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert sent(Anthropic("m"), messages)[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": source}],
            "is_error": True,
        }
    ]
    url = "data:image/png;base64,aGk="
    assert sent(OpenAIResponses("m"), messages, "input")[2] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "seen"},
            {"type": "input_image", "detail": "auto", "image_url": url},
        ],
    }
    told = "seen\n[left out, because this API takes none here: image/png]"
    assert sent(OpenAIChat("m"), messages)[2]["content"] == told


def test_documents_reach_each_api_in_its_own_words() -> None:
    pdf, note = File("application/pdf", "aGk=", "a.pdf"), File("text/plain", "aGk=", "a.txt")
    assert sent(Anthropic("m"), [user(pdf, note)])[0]["content"] == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
            "title": "a.txt",
        },
    ]
    assert sent(OpenAIChat("m"), [user(note)])[0]["content"] == [
        {"type": "text", "text": "a.txt\n\nhi"}
    ]


def test_a_system_prompt_comes_first_in_chat_with_or_without_messages() -> None:
    entry = {"role": "system", "content": "be kind"}
    for messages, count in (([], 1), ([user("")], 1), ([user("go")], 2)):
        body = OpenAIChat("m").encode(Request(messages, system="be kind"))
        assert json.loads(body)["messages"][0] == entry
        assert len(json.loads(body)["messages"]) == count


def test_a_head_is_encoded_anew_when_settings_or_tools_change() -> None:
    provider = Anthropic("m")
    tools: list[Any] = []
    first = Request([user("go")], tools, RequestConfig(max_tokens=5))
    assert json.loads(provider.encode(first))["max_tokens"] == 5
    second = Request([user("go")], tools, RequestConfig(max_tokens=6))
    assert json.loads(provider.encode(second))["max_tokens"] == 6
