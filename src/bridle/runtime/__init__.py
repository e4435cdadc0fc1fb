"""The one place that knows the engine and all adapters, and puts them together.

`build_engine` makes an engine of a provider, tools, a workspace, a store and options. Here also:
providers and agents by name, the system prompt, the user's hooks, MCP servers and diagnostics,
telemetry, and what judges calls without running them (dry runs, replay).
"""

from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.runtime.assembly import EngineOptions, build_engine
from bridle.runtime.providers import Choice, ProviderOptions, find_provider, provider

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
