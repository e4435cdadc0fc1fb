"""What is known of the vendors' models: context window, longest output, price, thinking.

The figures are data, in `catalogue.json`, read when they are first needed. A figure that is not
known, or that one number cannot express (a price with tiers), is null there and None here: an
unknown price is unknown, never zero.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.protocols.provider import ProviderInfo, Thinks
from bridle.usage import Price

_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest)$")
_SAME_MODELS = {"openai-chat": "openai"}
_LOCAL = ("ollama", "llamacpp", "lmstudio")


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One model. None is unknown."""

    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    native_schema: bool = True
    thinks: Thinks | None = None


Table = dict[str, dict[str, Entry]]


@cache
def _table() -> Table:
    raw = Path(__file__).with_name("catalogue.json").read_bytes()
    return msgspec.json.decode(raw, type=Table)


def lookup(
    provider: str, model: str, more: Mapping[str, Mapping[str, Any]] | None = None
) -> ProviderInfo:
    """What is known of a model; of one that nobody listed, its name.

    `more` adds entries or replaces them: `{"anthropic/claude-x": {"context_window": 1000,
    "price": {"input": 1, "output": 2}}}`.
    """
    entry = _find(_added(provider, more), model)
    if entry is None:
        entry = _find(_table().get(_SAME_MODELS.get(provider, provider), {}), model)
    if entry is None:
        entry = _unlisted(provider, model)
    return ProviderInfo(
        provider,
        model,
        entry.context_window,
        entry.max_output,
        entry.price,
        local=provider in _LOCAL,
        native_schema=entry.native_schema,
        thinks=entry.thinks,
    )


def models(more: Mapping[str, Mapping[str, Any]] | None = None) -> list[ProviderInfo]:
    """Return every model that is listed, the newest of a family first."""
    names = [(vendor, model) for vendor, table in _table().items() for model in table]
    names += [_split(name) for name in more or {} if _split(name) not in names]
    return [lookup(vendor, model, more) for vendor, model in names]


def _find(table: Mapping[str, Entry], model: str) -> Entry | None:
    """The model's own entry, or its family's: only a date may stand between the two names."""
    return table.get(model) or table.get(_DATE.sub("", model))


def _added(provider: str, more: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Entry]:
    found = {}
    for name, fields in (more or {}).items():
        vendor, model = _split(name)
        if vendor == provider:
            found[model] = _entry(name, fields)
    return found


def _entry(name: str, fields: Mapping[str, Any]) -> Entry:
    try:
        return msgspec.convert(dict(fields), Entry)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"what is said of the model {name!r} is wrong: {error}",
            error,
            hint="A model may have context_window, max_output, price, native_schema and thinks.",
        ) from error


def _split(name: str) -> tuple[str, str]:
    vendor, _, model = name.partition("/")
    return vendor, model


def _unlisted(provider: str, model: str) -> Entry:
    """Return the entry of an unlisted model. A local one is free, unless it runs elsewhere."""
    if provider in _LOCAL:
        return Entry(price=None if model.endswith("cloud") else Price(0, 0))
    return Entry(native_schema=provider in ("anthropic", "openai"))
