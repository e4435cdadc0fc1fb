"""Providers by name: what is made, which key and address it gets, and what is refused (M9)."""

import json

import pytest

from bridle.errors import ConfigError, MissingKey
from bridle.providers.anthropic import Anthropic
from bridle.providers.offline import Offline
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.providers.retry import Retrying
from bridle.providers.scripted import Scripted
from bridle.runtime import provider
from bridle.runtime.providers import find_key, split
from bridle.usage import Price


def wire(found):
    """Where a provider would go, and with which key, as its own wire has it."""
    inside = found.provider if isinstance(found, Retrying) else found
    transport = inside._transport
    return json.dumps({key: str(value) for key, value in vars(transport).items()})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic/claude-x", Anthropic),
        ("claude-x", Anthropic),
        ("openai/gpt-x", OpenAIResponses),
        ("gpt-x", OpenAIResponses),
        ("openai-chat/gpt-x", OpenAIChat),
        ("openrouter/some/model", OpenAIChat),
        ("ollama/llama", OpenAIChat),
        ("llamacpp/any", OpenAIChat),
        ("lmstudio/any", OpenAIChat),
    ],
)
def test_a_name_is_a_vendor_and_a_model(name, kind):
    found = provider(name, api_key="k")
    assert isinstance(found, Retrying)
    assert isinstance(found.provider, kind)


def test_without_retries_it_is_the_provider_itself():
    assert isinstance(provider("anthropic/m", api_key="k", retries=0), Anthropic)


def test_the_two_without_a_network(tmp_path):
    script = tmp_path / "a.json"
    script.write_text('{"replies": ["hi"], "model": "m"}')
    assert isinstance(provider("offline"), Offline)
    assert isinstance(provider(f"scripted:{script}"), Scripted)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wizard/merlin", "there is no provider for 'wizard/merlin'"),
        ("", "there is no provider for ''"),
        ("merlin", "there is no provider for 'merlin'"),
        ("anthropic", "'anthropic' names no model"),
        ("anthropic/", "'anthropic/' names no model"),
        ("ollama", "'ollama' names no model"),
        ("scripted:", "a scripted model needs a file"),
    ],
)
def test_a_name_that_means_nothing_says_what_to_write(name, said):
    with pytest.raises(ConfigError) as caught:
        provider(name, api_key="k")
    assert caught.value.message == said
    assert caught.value.hint.startswith("Write ")


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic/m", "ANTHROPIC_API_KEY"),
        ("openai/m", "OPENAI_API_KEY"),
        ("openai-chat/m", "OPENAI_API_KEY"),
        ("openrouter/m", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_names_the_variable_to_set(name, variable):
    """M9."""
    with pytest.raises(MissingKey) as caught:
        provider(name)
    assert caught.value.kind == "invalid"
    assert variable in caught.value.hint


def test_local_servers_and_other_peoples_addresses_need_no_key():
    provider("ollama/m")
    provider("openai-chat/m", base_url="http://127.0.0.1:9/v1")


def test_the_order_of_keys_is_given_then_ours_then_the_vendors(monkeypatch):
    """M9."""
    environ = {"ANTHROPIC_API_KEY": "theirs"}
    assert find_key("anthropic", environ) == ("theirs", "ANTHROPIC_API_KEY")
    environ["BRIDLE_API_KEY"] = "ours"
    assert find_key("anthropic", environ) == ("ours", "BRIDLE_API_KEY")
    assert find_key("openai", {"ANTHROPIC_API_KEY": "theirs"}) == ("", "")
    for name, value in environ.items():
        monkeypatch.setenv(name, f"{value}-key")
    assert "ours-key" in wire(provider("anthropic/m"))
    assert "given-key" in wire(provider("anthropic/m", api_key="given-key"))
    monkeypatch.delenv("BRIDLE_API_KEY")
    assert "theirs-key" in wire(provider("anthropic/m"))


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic/m", "ANTHROPIC_BASE_URL"),
        ("openai/m", "OPENAI_BASE_URL"),
        ("openai-chat/m", "OPENAI_BASE_URL"),
    ],
)
def test_an_address_comes_from_the_caller_or_the_vendors_variable(monkeypatch, name, variable):
    """A3."""
    monkeypatch.setenv(variable, "http://127.0.0.1:8/v1")
    assert "127.0.0.1:8" in wire(provider(name, api_key="k"))
    given = provider(name, api_key="k", base_url="http://127.0.0.1:9/v1")
    assert "127.0.0.1:9" in wire(given)
    assert "127.0.0.1:8" not in wire(given)


def test_each_name_goes_to_its_own_address():
    """A key is never sent to another vendor."""
    assert "127.0.0.1:11434" in wire(provider("ollama/m"))
    assert "127.0.0.1:8080" in wire(provider("llamacpp/m"))
    assert "127.0.0.1:1234" in wire(provider("lmstudio/m"))
    assert "openrouter.ai" in wire(provider("openrouter/a/b", api_key="k"))
    assert "api.anthropic.com" in wire(provider("anthropic/m", api_key="k"))
    assert "api.openai.com" in wire(provider("openai/m", api_key="k"))


def test_calls_in_text_are_read_on_local_servers_and_nowhere_else():
    assert provider("ollama/m").provider.calls_in_text
    local = provider("openai-chat/m", base_url="http://localhost:9/v1")
    assert local.provider.calls_in_text
    assert local.info.local
    assert not provider("openai-chat/m", api_key="k").provider.calls_in_text
    assert not provider("ollama/m", calls_in_text=False).provider.calls_in_text


def test_a_price_and_a_window_can_be_given():
    found = provider("ollama/m", price=Price(1.0, 2.0), context_window=7)
    assert (found.info.price, found.info.context_window) == (Price(1.0, 2.0), 7)


def test_an_option_that_is_not_there_is_a_type_error():
    with pytest.raises(TypeError, match="retrys"):
        provider("ollama/m", retrys=3)


def test_split():
    assert split("scripted:a/b.json") == ("scripted", "a/b.json")
    assert split("openrouter/a/b") == ("openrouter", "a/b")
    assert split("o3-mini") == ("openai", "o3-mini")
    assert split("ollama:llama") == ("ollama:llama", "")
    assert split("offline") == ("offline", "")
