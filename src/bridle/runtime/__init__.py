"""The one place that knows the engine and the adapters, and puts them together."""

from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.runtime.adapters import ProviderOptions, provider
from bridle.runtime.assembly import EngineOptions, build_engine
from bridle.runtime.choosing import Choice, find_provider

__all__ = [
    "Choice",
    "Engine",
    "EngineOptions",
    "Limits",
    "ProviderOptions",
    "build_engine",
    "find_provider",
    "provider",
]
