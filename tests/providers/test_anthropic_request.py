"""What is sent to Anthropic: the request as the server gets it."""

import asyncio
import json
from typing import Any

import pytest
from loopback import Exchange, collected, recording, saying, served

from bridle.events import TraceEvent
from bridle.messages import Message, Text, user
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, Thinks
from bridle.providers.anthropic import Anthropic

CACHED = {"type": "ephemeral"}
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


class Read:
    """A tool, as much of it as a model is told."""

    name = "read"
    description = "Reads a file."
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}


class Look(Read):
    name = "look"


def received(request: Request, info: ProviderInfo | None = None) -> Exchange:
    async def main() -> Exchange:
        async with served(saying(recording("anthropic-refusal.sse"))) as place:
            provider = Anthropic("m", api_key="sk-1", base_url=place.url + "/", info=info)
            await collected(provider, request)
            return place.asked[0]

    return asyncio.run(main())


def body(request: Request, info: ProviderInfo | None = None) -> Any:
    return json.loads(received(request, info).body)


def test_a_request_says_everything_in_the_apis_own_words() -> None:
    """(M1) (M5): messages, system prompt, tools and settings, and the cache is asked for."""
    config = RequestConfig(100, 0.5, "high", "required", ("END",), SCHEMA)
    asked = received(Request([user("go on")], (Read(), Look()), config, "be kind"))
    assert asked.line == "POST /v1/messages HTTP/1.1"
    headers = {"x-api-key": "sk-1", "anthropic-version": "2023-06-01"}
    assert headers.items() <= asked.headers.items()
    assert asked.headers["content-type"] == "application/json"
    schema = Read.parameters
    assert json.loads(asked.body) == {
        "model": "m",
        "max_tokens": 100,
        "stream": True,
        "cache_control": CACHED,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {
            "effort": "high",
            "format": {"type": "json_schema", "schema": SCHEMA},
        },
        "tools": [
            {"name": "read", "description": "Reads a file.", "input_schema": schema},
            {
                "name": "look",
                "description": "Reads a file.",
                "input_schema": schema,
                "cache_control": CACHED,
            },
        ],
        "system": [{"type": "text", "text": "be kind", "cache_control": CACHED}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go on"}]}],
    }


def test_what_is_left_out_is_not_sent() -> None:
    """(M1): zero tokens means the default; no temperature means the vendor's."""
    assert body(Request([user("go on")])) == {
        "model": "m",
        "max_tokens": 32_000,
        "stream": True,
        "cache_control": CACHED,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go on"}]}],
    }


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("read", {"type": "tool", "name": "read"}),
    ],
)
def test_a_tool_can_be_chosen(choice: str, sent: dict[str, str]) -> None:
    config = RequestConfig(tool_choice=choice)
    assert body(Request([user("go on")], (Read(),), config))["tool_choice"] == sent


def test_thinking_can_be_switched_off() -> None:
    sent = body(Request([user("go on")], config=RequestConfig(effort="none")))
    assert sent["thinking"] == {"type": "disabled"}
    assert "output_config" not in sent


def test_a_small_model_is_asked_for_no_more_than_it_can_write() -> None:
    info = ProviderInfo("anthropic", "m", max_output=4096)
    assert body(Request([user("go on")]), info)["max_tokens"] == 4096


def test_a_word_from_the_system_in_the_middle_keeps_its_role() -> None:
    messages = [user("a"), Message("assistant", (Text("b"),)), Message("system", (Text("c"),))]
    sent = body(Request(messages))["messages"]
    assert [entry["role"] for entry in sent] == ["user", "assistant", "system"]


@pytest.mark.parametrize(
    ("effort", "max_tokens", "limit", "budget"),
    [
        ("low", 0, 32_000, 2048),
        ("high", 0, 32_000, 16384),
        ("max", 0, 32_000, 24_000),
        ("high", 2000, 2000, 1500),
        ("low", 1200, 1200, 1024),
        ("high", 1024, 1024, None),
        ("none", 500, 500, 0),
    ],
)
def test_an_older_model_is_given_a_budget_for_its_thinking(
    effort: str, max_tokens: int, limit: int, budget: int | None
) -> None:
    """Below max_tokens, which it is part of, and never under the least that the API takes.

    Without max_tokens a reply may have 32,000, thinking included.
    """
    info = ProviderInfo("anthropic", "m", max_output=40000, thinks="budget")
    config = RequestConfig(max_tokens, effort=effort)
    sent = body(Request([user("go on")], config=config), info)
    wanted = {"type": "enabled", "budget_tokens": budget} if budget else {"type": "disabled"}
    assert sent["max_tokens"] == limit
    assert sent.get("thinking") == (None if budget is None else wanted)
    assert "output_config" not in sent


@pytest.mark.parametrize(
    ("thinks", "max_tokens", "why"),
    [
        ("none", 0, "m does not think before it answers"),
        ("budget", 1024, "m needs max_tokens over 1024 to think"),
    ],
)
def test_a_model_that_cannot_think_is_not_asked_to_and_the_trace_says_so(
    thinks: Thinks, max_tokens: int, why: str
) -> None:
    async def main() -> tuple[list[Any], Any]:
        async with served(saying(recording("anthropic-refusal.sse"))) as place:
            info = ProviderInfo("anthropic", "m", thinks=thinks)
            provider = Anthropic("m", base_url=place.url, info=info)
            config = RequestConfig(max_tokens, effort="high")
            events = await collected(provider, Request([user("go on")], config=config))
            return events, json.loads(place.asked[0].body)

    events, sent = asyncio.run(main())
    assert not {"thinking", "output_config"} & set(sent)
    assert events[0] == TraceEvent("setting_left_out", {"setting": "effort", "why": why})
