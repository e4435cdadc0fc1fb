"""The model catalogue: what is known, what stays unknown, and whose entry a name gets."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import ConfigError
from bridle.protocols.provider import ProviderInfo
from bridle.providers.catalogue import lookup, models
from bridle.usage import Price

SONNET = ProviderInfo(
    "anthropic",
    "claude-sonnet-4-5",
    200_000,
    64_000,
    Price(3, 15, 0.3, 3.75),
    native_schema=True,
    thinks="budget",
)


def test_a_listed_model_has_its_window_output_and_price() -> None:
    assert lookup("anthropic", "claude-sonnet-4-5") == SONNET


@pytest.mark.parametrize(
    ("provider", "dated", "family"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "claude-opus-4-20250514", "claude-opus-4"),
        ("anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("openai", "gpt-4-0613", "gpt-4"),
        ("openai-chat", "gpt-4.1-2025-04-14", "gpt-4.1"),
    ],
)
def test_a_dated_name_is_its_family(provider: str, dated: str, family: str) -> None:
    one, other = lookup(provider, dated), lookup(provider, family)
    assert one.context_window is not None
    assert (one.context_window, one.max_output, one.price) == (
        other.context_window,
        other.max_output,
        other.price,
    )


def test_a_dated_entry_of_its_own_wins_over_its_family() -> None:
    assert lookup("openai", "gpt-4o-2024-05-13").price == Price(5, 15)
    assert lookup("openai", "gpt-4o-2024-08-06").price == Price(2.5, 10, 1.25)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-5-9"),
        ("anthropic", "claude-sonnet"),
        ("openai", "gpt-5-chat-latest"),
        ("openai", "gpt-4-32k"),
        ("openai", "gpt-4.5-preview"),
        ("openai", "o3-deep-research"),
        ("openai", "claude-sonnet-4-5"),
        ("openrouter", "anthropic/claude-sonnet-4-5"),
    ],
)
def test_a_name_that_only_looks_alike_is_unknown(provider: str, model: str) -> None:
    info = lookup(provider, model)
    assert (info.model, info.context_window, info.max_output, info.price) == (
        model,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("model", ["claude-haiku-5-5", "claude-fable-5-2", "gpt-5.4", "gpt-6-sol"])
def test_a_price_that_is_not_known_is_none(model: str) -> None:
    vendor = "anthropic" if model.startswith("claude") else "openai"
    assert model in [info.model for info in models()]
    assert lookup(vendor, model).price is None


def test_no_listed_price_is_zero() -> None:
    prices = [info.price for info in models() if info.price is not None]
    assert len(prices) > 30
    assert [price for price in prices if not 0 < price.input < price.output] == []
    assert [p for p in prices if p.cache_read is not None and not 0 < p.cache_read < p.input] == []


def test_a_local_model_costs_nothing_unless_it_is_passed_on() -> None:
    assert lookup("ollama", "qwen3:8b") == ProviderInfo(
        "ollama", "qwen3:8b", price=Price(0, 0), local=True, native_schema=True
    )
    assert lookup("ollama", "gpt-oss:120b-cloud").price is None


def test_a_user_adds_and_replaces_entries() -> None:
    more = {
        "anthropic/claude-sonnet-4-5": {"context_window": 1},
        "openrouter/mine": {"price": {"input": 1, "output": 2}},
    }
    assert lookup("anthropic", "claude-sonnet-4-5-20250929", more).context_window == 1
    assert lookup("openrouter", "mine", more).price == Price(1, 2)
    assert ("openrouter", "mine") in [(info.name, info.model) for info in models(more)]
    assert lookup("anthropic", "claude-sonnet-4-5") == SONNET


def test_a_wrong_entry_is_a_config_error_that_names_the_model() -> None:
    with pytest.raises(ConfigError, match=r"model 'a/b' is wrong.*contextwindow"):
        lookup("a", "b", {"a/b": {"contextwindow": 3}})


def test_the_file_is_read_only_when_it_is_needed() -> None:
    code = "import bridle.providers.catalogue as c; print(c._table.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0\n"


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_name_gives_an_answer(provider: str, model: str) -> None:
    info = lookup(provider, model)
    assert (info.name, info.model) == (provider, model)


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("claude-opus-4-6", "adaptive"),
        ("claude-haiku-4-5-20251001", "budget"),
        ("claude-3-5-haiku-latest", "none"),
        ("claude-new-99", None),
    ],
)
def test_it_is_known_how_a_claude_takes_effort(model: str, thinks: str | None) -> None:
    assert lookup("anthropic", model).thinks == thinks
