"""A provider by its name: `anthropic/MODEL`, `openai/MODEL`, `openai-chat/MODEL`, and the rest.

`openai` is the Responses API, `openai-chat` is Chat Completions and everything that speaks it.
Modules of vendors are loaded when one is asked for.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from urllib.parse import urlsplit

from msgspec import Struct

from bridle.config import KEY_VARIABLES, URL_VARIABLES, Settings, bare_vendor
from bridle.errors import ConfigError, MissingKey, MissingModel
from bridle.protocols.provider import Provider
from bridle.providers.anthropic import Anthropic
from bridle.providers.catalogue import lookup
from bridle.providers.local_servers import find_local_servers
from bridle.providers.offline import Offline
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.providers.retry import SECONDS, Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.providers.wire import Timeouts
from bridle.usage import Price

if TYPE_CHECKING:
    from typing import Unpack

    from bridle.providers.wire import Timeouts, Transport

LOCAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
REMOTE = {"openrouter": "https://openrouter.ai/api/v1"}
_handed_in: set[str] = set()  # keys that came as an argument, so that they can be kept out of logs
_USUAL = {**LOCAL, **REMOTE}


class ProviderOptions(TypedDict, total=False):
    """What else can be said of a provider.

    `retries`: how often a failed request is tried again (0: never; None: as often as there is
    time), `retry_seconds`: for how long (300). `sdk`: use the vendor's own SDK as the transport:
    True, or an async client of your own, which signs in by itself and needs no key here (Bedrock,
    Vertex, Azure). `calls_in_text`: take a call that a model wrote as JSON text for a call (the
    default for local servers). `price`: what the model costs, where the catalogue does not know it.
    """

    retries: int | None
    retry_seconds: float
    connect_timeout: float
    idle_timeout: float
    request_timeout: float | None
    sdk: Any
    calls_in_text: bool
    price: Price
    context_window: int


class _Wanted(NamedTuple):
    vendor: str
    model: str
    key: str
    url: str
    options: ProviderOptions

    @property
    def local(self) -> bool:
        """Does its server run on this machine?"""
        return self.vendor in LOCAL or _is_local(self.url)


def provider(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    **options: "Unpack[ProviderOptions]",
) -> Provider:
    """The provider of that name, ready to stream. Nothing is connected yet."""
    if unknown := options.keys() - ProviderOptions.__annotations__.keys():
        raise TypeError(f"provider has no option {', '.join(sorted(unknown))}")
    vendor, model = split(name)
    make = _MAKERS.get(vendor)
    if make is None:
        raise unknown_name(name)
    if vendor not in ("offline", "scripted") and not model:
        raise ConfigError(
            f"{name!r} names no model", hint=f"Write {vendor}/MODEL, with the vendor's own name."
        )
    if vendor in ("offline", "scripted") and (idle := options.keys() & {"price", "context_window"}):
        raise ConfigError(
            f"{vendor} takes no {' and no '.join(sorted(idle))}",
            hint="Leave it out, or make a `bridle.testing.Scripted` with an info of its own.",
        )
    if api_key:
        _handed_in.add(api_key)
    url = base_url or os.environ.get(URL_VARIABLES.get(vendor, ""), "") or _USUAL.get(vendor, "")
    client = options.get("sdk")
    if client is None or isinstance(client, bool):
        key = _key(vendor, api_key, url)
    else:
        key = api_key or ""
        from bridle.providers.sdk import client_secrets

        keep_out(client_secrets(client))
    return make(_Wanted(vendor, model, key, url, options))


def split(name: str) -> tuple[str, str]:
    """`anthropic/claude-x` → vendor and model; `scripted:FILE` → that and the file."""
    if name.startswith("scripted:"):
        return "scripted", name.removeprefix("scripted:")
    vendor, slash, model = name.partition("/")
    if not slash and vendor not in _MAKERS and (known := bare_vendor(name)):
        return known, name
    return vendor, model


def find_key(vendor: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The key for a vendor, and the variable in which it was found."""
    for variable in ("BRIDLE_API_KEY", KEY_VARIABLES.get(vendor, "")):
        if environ.get(variable):
            return environ[variable], variable
    return "", ""


def keep_out(secrets: Iterable[str]) -> None:
    """Have these taken out of everything that engines made from now on say."""
    _handed_in.update(filter(None, secrets))


def known_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every key that this process knows of: nothing that is recorded may say one."""
    variables = ("BRIDLE_API_KEY", *KEY_VARIABLES.values())
    found = {environ[name] for name in variables if environ.get(name)}
    return tuple(sorted(found | _handed_in))


def _key(vendor: str, given: str | None, url: str) -> str:
    key = given or find_key(vendor, os.environ)[0]
    if key or vendor not in KEY_VARIABLES or (vendor == "openai-chat" and url):
        return key
    raise MissingKey(
        f"there is no API key for {vendor}",
        hint=f"Set {KEY_VARIABLES[vendor]}, or api_key in the configuration file.",
    )


def unknown_name(name: str) -> ConfigError:
    """A name that no adapter answers to."""
    vendors = ", ".join(name for name in _MAKERS if name not in ("offline", "scripted"))
    return ConfigError(
        f"there is no provider for {name!r}",
        hint=f"Write VENDOR/MODEL, scripted:FILE or offline. Vendors: {vendors}.",
    )


def _timeouts(options: ProviderOptions) -> "Timeouts":
    given = Timeouts()
    return Timeouts(
        options.get("connect_timeout", given.connect),
        options.get("idle_timeout", given.idle),
        options.get("request_timeout", given.total),
    )


def _offline(wanted: _Wanted) -> Provider:
    return Offline()


def _scripted(wanted: _Wanted) -> Provider:
    if not wanted.model:
        raise ConfigError("a scripted model needs a file", hint="Write scripted:FILE.")
    return Scripted.from_file(wanted.model)


def _anthropic(wanted: _Wanted) -> Provider:
    return _retrying(Anthropic(wanted.model, **_common(wanted)), wanted)


def _responses(wanted: _Wanted) -> Provider:
    return _retrying(OpenAIResponses(wanted.model, **_common(wanted)), wanted)


def _chat(wanted: _Wanted) -> Provider:
    in_text = wanted.options.get("calls_in_text", wanted.local)
    return _retrying(OpenAIChat(wanted.model, calls_in_text=in_text, **_common(wanted)), wanted)


def _common(wanted: _Wanted) -> dict[str, Any]:
    """What the three APIs are all told."""
    from msgspec.structs import replace

    info = lookup(wanted.vendor, wanted.model)
    price = wanted.options.get("price", info.price)
    window = wanted.options.get("context_window", info.context_window)
    common: dict[str, Any] = {
        "api_key": wanted.key,
        "timeouts": _timeouts(wanted.options),
        "info": replace(info, local=wanted.local, price=price, context_window=window),
    }
    if wanted.url:
        common["base_url"] = wanted.url
    if wanted.options.get("sdk"):
        common["transport"] = _sdk_transport(wanted)
    return common


def _sdk_transport(wanted: _Wanted) -> "Transport":
    from bridle.providers.sdk import sdk_transport

    given = wanted.options["sdk"]
    client = None if given is True else given
    return sdk_transport(wanted.vendor, client, api_key=wanted.key, base_url=wanted.url)


def _retrying(made: Provider, wanted: _Wanted) -> Provider:
    retries, seconds = wanted.options.get("retries"), wanted.options.get("retry_seconds", SECONDS)
    if retries == 0 or seconds == 0:
        return made
    return Retrying(made, RetryPolicy(retries, seconds))


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


_MAKERS: dict[str, Callable[[_Wanted], Provider]] = {
    "anthropic": _anthropic,
    "openai": _responses,
    "openai-chat": _chat,
    "openrouter": _chat,
    "ollama": _chat,
    "llamacpp": _chat,
    "lmstudio": _chat,
    "offline": _offline,
    "scripted": _scripted,
}


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
        return provider(
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

    with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop of its own
        found = pool.submit(lambda: asyncio.run(find_local_servers())).result()
    return [(one.name, one.base_url, one.models[0]) for one in found if one.models]
