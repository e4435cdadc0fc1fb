"""For tests, ours and yours: a scripted model, fake vendor servers, and conformance suites.

Nothing inside bridle imports this package. Names are loaded when they are first used, so that
whoever wants only the scripted model does not load a web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.providers.scripted import Reply as Reply
    from bridle.providers.scripted import Scripted as Scripted
    from bridle.testing.agents import AgentConformance as AgentConformance
    from bridle.testing.agents import check_agent as check_agent
    from bridle.testing.anthropic import FakeAnthropic as FakeAnthropic
    from bridle.testing.bench import KEY as KEY
    from bridle.testing.conformance import ProviderConformance as ProviderConformance
    from bridle.testing.conformance import check_provider as check_provider
    from bridle.testing.openai import FakeLocal as FakeLocal
    from bridle.testing.openai import FakeOpenAI as FakeOpenAI
    from bridle.testing.script import WireReply as WireReply
    from bridle.testing.server import FakeServer as FakeServer
    from bridle.testing.server import Received as Received

_HOME = {
    "AgentConformance": "bridle.testing.agents",
    "FakeAnthropic": "bridle.testing.anthropic",
    "FakeLocal": "bridle.testing.openai",
    "FakeOpenAI": "bridle.testing.openai",
    "FakeServer": "bridle.testing.server",
    "KEY": "bridle.testing.bench",
    "ProviderConformance": "bridle.testing.conformance",
    "Received": "bridle.testing.server",
    "Reply": "bridle.providers.scripted",
    "Scripted": "bridle.providers.scripted",
    "WireReply": "bridle.testing.script",
    "check_agent": "bridle.testing.agents",
    "check_provider": "bridle.testing.conformance",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if (module := _HOME.get(name)) is None:
        raise AttributeError(f"module 'bridle.testing' has no attribute {name!r}")
    return getattr(import_module(module), name)
