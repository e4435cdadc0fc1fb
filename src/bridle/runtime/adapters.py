"""A provider by its name: `anthropic/MODEL`, `openai/MODEL`, `openai-chat/MODEL`, and the rest.

`openai` is the Responses API, `openai-chat` is Chat Completions and everything that speaks it.
Modules of vendors are loaded when one is asked for.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from bridle.config import KEY_VARIABLES, URL_VARIABLES, bare_vendor
from bridle.errors import ConfigError, MissingKey
from bridle.promises.provider import Provider
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
    from bridle.providers.wire import Timeouts

    given = Timeouts()
    return Timeouts(
        options.get("connect_timeout", given.connect),
        options.get("idle_timeout", given.idle),
        options.get("request_timeout", given.total),
    )


def _offline(wanted: _Wanted) -> Provider:
    from bridle.providers.offline import Offline

    return Offline()


def _scripted(wanted: _Wanted) -> Provider:
    from bridle.providers.scripted import Scripted

    if not wanted.model:
        raise ConfigError("a scripted model needs a file", hint="Write scripted:FILE.")
    return Scripted.from_file(wanted.model)


def _anthropic(wanted: _Wanted) -> Provider:
    from bridle.providers.anthropic import Anthropic

    return _retrying(Anthropic(wanted.model, **_common(wanted)), wanted)


def _responses(wanted: _Wanted) -> Provider:
    from bridle.providers.openai_responses import OpenAIResponses

    return _retrying(OpenAIResponses(wanted.model, **_common(wanted)), wanted)


def _chat(wanted: _Wanted) -> Provider:
    from bridle.providers.openai_chat import OpenAIChat

    in_text = wanted.options.get("calls_in_text", wanted.local)
    return _retrying(OpenAIChat(wanted.model, calls_in_text=in_text, **_common(wanted)), wanted)


def _common(wanted: _Wanted) -> dict[str, Any]:
    """What the three APIs are all told."""
    from msgspec.structs import replace

    from bridle.providers.catalogue import lookup

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
    from bridle.providers.retry import SECONDS, Retrying, RetryPolicy

    retries, seconds = wanted.options.get("retries"), wanted.options.get("retry_seconds", SECONDS)
    if retries == 0 or seconds == 0:
        return made
    return Retrying(made, RetryPolicy(retries, seconds))


def _is_local(url: str) -> bool:
    from urllib.parse import urlsplit

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
