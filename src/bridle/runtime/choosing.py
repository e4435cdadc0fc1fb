"""Which provider is used when none is named, and why.

Flag, then configuration, then the keys found in the environment, then a local server that answers.
`offline` is used only if it is named. Every step is kept, so that `bridle doctor` can show it.
"""

import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from bridle.config import KEY_VARIABLES, URL_VARIABLES, Settings
from bridle.errors import MissingModel
from bridle.promises.provider import Provider
from bridle.runtime.adapters import LOCAL, REMOTE, find_key, split
from bridle.runtime.adapters import provider as provider_of

_DEFAULTS = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.4"}


class Considered(Struct, frozen=True):
    """One place that was looked at. `lacks` says what is missing where something was found."""

    place: str
    found: str
    used: bool = False
    lacks: str = ""


class Choice(Struct, frozen=True):
    """The provider that will be used, and why. Without a `name` none was found."""

    name: str
    why: str
    considered: tuple[Considered, ...]
    settings: Settings
    base_url: str = ""

    def provider(self) -> Provider:
        """Make it. Raise `MissingModel` if none was found."""
        if not self.name:
            raise self._missing()
        settings = self.settings
        return provider_of(
            self.name,
            api_key=settings.api_key or None,
            base_url=self.base_url or settings.base_url or None,
            idle_timeout=settings.idle_timeout,
            request_timeout=settings.request_timeout,
            retries=settings.retries,
            retry_seconds=settings.retry_seconds,
        )

    def _missing(self) -> MissingModel:
        lacking = [f"{step.found}. {step.lacks}" for step in self.considered if step.lacks]
        hint = "; ".join(lacking) or (
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as Ollama, or name "
            "a model (`offline` is for trying bridle out; it is not a language model). "
            "`bridle doctor` shows what was looked for."
        )
        return MissingModel(f"no model was found: {self.why}", hint=hint)


Probe = Callable[[], list[tuple[str, str, str]]]  # name, base URL and first model of each


def find_provider(
    settings: Settings, environ: Mapping[str, str] | None = None, probe: Probe | None = None
) -> Choice:
    """Choose. Looks at the network only when nothing else was found."""
    environ = os.environ if environ is None else environ
    steps: list[Considered] = []
    if settings.name:
        vendor, model = split(settings.name)
        name = f"{vendor}/{model or _DEFAULTS[vendor]}" if vendor in _DEFAULTS else settings.name
        steps.append(Considered("flag or configuration", name, used=True))
        return Choice(name, "it was named", tuple(steps), settings)
    steps.append(Considered("flag or configuration", "no model is named"))
    for vendor, model in _DEFAULTS.items():
        _, variable = find_key(vendor, environ)
        if variable or settings.api_key:
            found = variable or "api_key in the configuration"
            if elsewhere := _elsewhere(vendor, settings, environ):
                steps.append(_modelless(vendor, f"{found} is set, and {elsewhere}", "openai-chat"))
                continue
            steps.append(Considered(f"key for {vendor}", found, used=True))
            return Choice(f"{vendor}/{model}", f"{found} is set", tuple(steps), settings)
        steps.append(Considered(f"key for {vendor}", "not found"))
    for vendor in REMOTE:
        variable = KEY_VARIABLES[vendor]
        there = bool(environ.get(variable, "").strip())
        step = Considered(f"key for {vendor}", "not found")
        steps.append(_modelless(vendor, f"{variable} is set", vendor) if there else step)
    return _without_key(settings, steps, probe or local_servers)


def _modelless(vendor: str, found: str, name: str) -> Considered:
    """A key is there, and which of the models behind it is meant has to be said."""
    lacks = f"Name a model: {name}/MODEL."
    return Considered(f"key for {vendor}", f"{found}, but no model is named", lacks=lacks)


def _elsewhere(vendor: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """Where OpenAI's key is meant for somebody else's server, whose models nobody knows."""
    if vendor != "openai":
        return ""
    url = settings.base_url or environ.get(URL_VARIABLES[vendor], "").strip()
    host = (urlsplit(url).hostname or "") if url else "openai.com"
    own = host == "openai.com" or host.endswith(".openai.com")
    return "" if own else f"the base URL is at {host or 'another place'}"


def _without_key(settings: Settings, steps: list[Considered], probe: Probe) -> Choice:
    servers = probe()
    keys = "no model is named" if any(step.lacks for step in steps) else "no key was found"
    for server, url, model in servers:
        used = Considered("local servers", f"{server} answers at {url}", used=True)
        why = f"{keys}, and {server} answers at {url}"
        return Choice(f"{server}/{model}", why, (*steps, used), settings, url)
    steps.append(Considered("local servers", f"none of {', '.join(LOCAL)} answers"))
    return Choice("", f"{keys}, and no local server answers", tuple(steps), settings)


def local_servers() -> list[tuple[str, str, str]]:
    """The local servers that answer and have a model."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from bridle.providers.local_servers import find_local_servers

    with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop of its own
        found = pool.submit(lambda: asyncio.run(find_local_servers())).result()
    return [(one.name, one.base_url, one.models[0]) for one in found if one.models]
