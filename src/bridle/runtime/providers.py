"""Choose a provider: by its name, by the settings, by a key, or a server on this machine.

`openai` is the Responses API, `openai-chat` is Chat Completions and everything that speaks it.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.config.settings import KEY_VARIABLES, URL_VARIABLES, Settings, bare_vendor
from bridle.errors import ConfigError, MissingKey, MissingModel
from bridle.protocols.provider import Provider
from bridle.providers.anthropic import Anthropic
from bridle.providers.catalogue import lookup
from bridle.providers.offline import Offline
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.providers.retry import SECONDS, Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.providers.wire import Timeouts
from bridle.usage import Price

if TYPE_CHECKING:
    from typing import Unpack

LOCAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
REMOTE = {"openrouter": "https://openrouter.ai/api/v1"}
_DEFAULT_URLS = {**LOCAL, **REMOTE}
_DEFAULT_MODELS = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.4"}
_VENDORS = ("anthropic", "openai", "openai-chat", *REMOTE, *LOCAL)
_WITHOUT_VENDOR = ("offline", "scripted")
_secrets: set[str] = set()  # keys that came as an argument, so that they can be kept out of logs


class ProviderOptions(TypedDict, total=False):
    """The options of a provider.

    `retries`: how often a failed request is retried (0: never; None: as often as the time allows),
    `retry_seconds`: for how long (300). `sdk`: use the vendor's own SDK as the transport: True, or
    an async client, which signs in by itself and needs no key here (Bedrock, Vertex, Azure).
    `calls_in_text`: run a call that a model wrote as JSON text (the default for local servers).
    `price`: what the model costs, if the catalogue does not know it.
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


def provider(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    **options: "Unpack[ProviderOptions]",
) -> Provider:
    """Return the provider of that name, ready to stream. Nothing is connected yet."""
    if unknown := options.keys() - ProviderOptions.__annotations__.keys():
        raise TypeError(f"provider has no option {', '.join(sorted(unknown))}")
    vendor, model = split(name)
    if vendor not in (*_VENDORS, *_WITHOUT_VENDOR):
        raise ConfigError(
            f"there is no provider for {name!r}",
            hint=f"Write VENDOR/MODEL, scripted:FILE or offline. Vendors: {', '.join(_VENDORS)}.",
        )
    add_secrets([api_key or ""])
    if vendor in _WITHOUT_VENDOR:
        if idle := options.keys() & {"price", "context_window"}:
            raise ConfigError(
                f"{vendor} takes no {' and no '.join(sorted(idle))}",
                hint="Leave it out, or make a `bridle.testing.Scripted` with an info of its own.",
            )
        if vendor == "offline":
            return Offline()
        if not model:
            raise ConfigError("a scripted model needs a file", hint="Write scripted:FILE.")
        return Scripted.from_file(model)
    if not model:
        raise ConfigError(
            f"{name!r} names no model", hint=f"Write {vendor}/MODEL, with the vendor's own name."
        )
    made = _vendor_provider(vendor, model, api_key or "", base_url or "", options)
    retries, seconds = options.get("retries"), options.get("retry_seconds", SECONDS)
    if retries == 0 or seconds == 0:
        return made
    return Retrying(made, RetryPolicy(retries, seconds))


def _vendor_provider(
    vendor: str, model: str, key: str, url: str, options: ProviderOptions
) -> Provider:
    url = url or os.environ.get(URL_VARIABLES.get(vendor, ""), "") or _DEFAULT_URLS.get(vendor, "")
    host = urlsplit(url).hostname or ""
    is_local = vendor in LOCAL or host in ("localhost", "::1") or host.startswith("127.")
    sdk = options.get("sdk")
    has_client = sdk is not None and not isinstance(sdk, bool)
    if not has_client:
        key = key or find_key(vendor, os.environ)[0]
        if not key and vendor in KEY_VARIABLES and not (vendor == "openai-chat" and url):
            raise MissingKey(
                f"there is no API key for {vendor}",
                hint=f"Set {KEY_VARIABLES[vendor]}, or api_key in the configuration file.",
            )
    info = lookup(vendor, model)
    timeouts = Timeouts()
    common: dict[str, Any] = {
        "api_key": key,
        "timeouts": Timeouts(
            connect=options.get("connect_timeout", timeouts.connect),
            idle=options.get("idle_timeout", timeouts.idle),
            total=options.get("request_timeout", timeouts.total),
        ),
        "info": replace(
            info,
            local=is_local,
            price=options.get("price", info.price),
            context_window=options.get("context_window", info.context_window),
        ),
    }
    if url:
        common["base_url"] = url
    if sdk:
        from bridle.providers.sdk import client_secrets, sdk_transport  # an optional extra

        client = sdk if has_client else None
        if client is not None:
            add_secrets(client_secrets(client))
        common["transport"] = sdk_transport(vendor, client, api_key=key, base_url=url)
    if vendor == "anthropic":
        return Anthropic(model, **common)
    if vendor == "openai":
        return OpenAIResponses(model, **common)
    return OpenAIChat(model, calls_in_text=options.get("calls_in_text", is_local), **common)


def split(name: str) -> tuple[str, str]:
    """Return vendor and model of a name; `scripted` and the file of `scripted:FILE`."""
    if name.startswith("scripted:"):
        return "scripted", name.removeprefix("scripted:")
    vendor, slash, model = name.partition("/")
    if not slash and vendor not in _VENDORS and (known := bare_vendor(name)):
        return known, name
    return vendor, model


def find_key(vendor: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the key for a vendor, and the variable that has it; both empty if there is none."""
    for variable in ("BRIDLE_API_KEY", KEY_VARIABLES.get(vendor, "")):
        if environ.get(variable):
            return environ[variable], variable
    return "", ""


def add_secrets(secrets: Iterable[str]) -> None:
    """Keep these out of everything that engines made from now on record."""
    _secrets.update(filter(None, secrets))


def known_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return every key that this process knows: nothing that is recorded may contain one."""
    variables = ("BRIDLE_API_KEY", *KEY_VARIABLES.values())
    keys = {environ[name] for name in variables if environ.get(name)}
    return tuple(sorted(keys | _secrets))


# --- choosing one ------------------------------------------------------------------------------


class Considered(Struct, frozen=True):
    """A place that was looked at. `lacks` says what is missing if something was found there."""

    place: str
    found: str
    used: bool = False
    lacks: str = ""


class Choice(Struct, frozen=True):
    """The provider that will be used, and why. Without a `name`, none was found."""

    name: str
    why: str
    considered: tuple[Considered, ...]
    settings: Settings
    base_url: str = ""

    def provider(self) -> Provider:
        """Make it. Raise `MissingModel` if none was found."""
        if not self.name:
            lacking = [f"{step.found}. {step.lacks}" for step in self.considered if step.lacks]
            hint = "; ".join(lacking) or (
                "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as Ollama, or "
                "name a model (`offline` is for trying bridle out; it is not a language model). "
                "`bridle doctor` shows what was looked for."
            )
            raise MissingModel(f"no model was found: {self.why}", hint=hint)
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


Probe = Callable[[], list[tuple[str, str, str]]]  # name, base URL and first model of each


def find_provider(
    settings: Settings, environ: Mapping[str, str] | None = None, probe: Probe | None = None
) -> Choice:
    """Choose a provider. Look for local servers only if nothing else was found."""
    environ = os.environ if environ is None else environ
    steps: list[Considered] = []
    if settings.name:
        vendor, model = split(settings.name)
        name = (
            f"{vendor}/{model or _DEFAULT_MODELS[vendor]}"
            if vendor in _DEFAULT_MODELS
            else settings.name
        )
        steps.append(Considered("flag or configuration", name, used=True))
        return Choice(name, "it was named", tuple(steps), settings)
    steps.append(Considered("flag or configuration", "no model is named"))
    for vendor, model in _DEFAULT_MODELS.items():
        _, variable = find_key(vendor, environ)
        if variable or settings.api_key:
            key = variable or "api_key in the configuration"
            if host := _foreign_host(vendor, settings, environ):
                why = f"{key} is set, and the base URL is at {host}"
                steps.append(_without_model(vendor, why, "openai-chat"))
                continue
            steps.append(Considered(f"key for {vendor}", key, used=True))
            return Choice(f"{vendor}/{model}", f"{key} is set", tuple(steps), settings)
        steps.append(Considered(f"key for {vendor}", "not found"))
    for vendor in REMOTE:
        variable = KEY_VARIABLES[vendor]
        if environ.get(variable, "").strip():
            steps.append(_without_model(vendor, f"{variable} is set", vendor))
        else:
            steps.append(Considered(f"key for {vendor}", "not found"))
    return _without_key(settings, steps, probe or local_servers)


def _without_model(vendor: str, found: str, name: str) -> Considered:
    """There is a key, but it does not say which of the vendor's models to use."""
    lacks = f"Name a model: {name}/MODEL."
    return Considered(f"key for {vendor}", f"{found}, but no model is named", lacks=lacks)


def _foreign_host(vendor: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the host that OpenAI's key is for if it is somebody else's, whose models differ."""
    url = settings.base_url or environ.get(URL_VARIABLES[vendor], "").strip()
    if vendor != "openai" or not url:
        return ""
    host = urlsplit(url).hostname or ""
    return "" if host == "openai.com" or host.endswith(".openai.com") else host or "another place"


def _without_key(settings: Settings, steps: list[Considered], probe: Probe) -> Choice:
    servers = probe()
    keys = "no model is named" if any(step.lacks for step in steps) else "no key was found"
    for server, url, model in servers:
        used = Considered("local servers", f"{server} answers at {url}", used=True)
        why = f"{keys}, and {server} answers at {url}"
        return Choice(f"{server}/{model}", why, (*steps, used), settings, url)
    steps.append(Considered("local servers", f"none of {', '.join(LOCAL)} answers"))
    return Choice("", f"{keys}, and no local server answers", tuple(steps), settings)


# --- servers on this machine -------------------------------------------------------------------

# Ollama, llama.cpp and LM Studio are looked for on their usual ports: on loopback only, all at
# once, with a short deadline, over plain sockets. An answer counts only if it has the shape that
# the server is known for, since another program may listen on that port.

_HOST = "127.0.0.1"
_DEADLINE = 0.15  # seconds
_MAX_ANSWER = 2**20  # bytes
_PORTS: Mapping[str, int] = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234}


class LocalServer(Struct, frozen=True):
    """A server that answered: its base URL for the OpenAI API, and the models it has."""

    name: str
    base_url: str
    models: tuple[str, ...]


def local_servers() -> list[tuple[str, str, str]]:
    """Return name, base URL and first model of each local server that has a model."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop of its own
        servers = pool.submit(lambda: asyncio.run(find_local_servers())).result()
    return [(server.name, server.base_url, server.models[0]) for server in servers if server.models]


async def find_local_servers(
    ports: Mapping[str, int] | None = None, *, deadline: float = _DEADLINE
) -> list[LocalServer]:
    """Return the servers that answer within the deadline (seconds), in the order of `ports`."""
    probes = [_probe(name, port, deadline) for name, port in (ports or _PORTS).items()]
    return [server for server in await asyncio.gather(*probes) if server is not None]


async def _probe(name: str, port: int, deadline: float) -> LocalServer | None:
    path = "/api/tags" if name == "ollama" else "/v1/models"
    try:
        async with asyncio.timeout(deadline):
            answer = await _get(port, path)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    models = _models(name, answer)
    return None if models is None else LocalServer(name, f"http://{_HOST}:{port}/v1", models)


async def _get(port: int, path: str) -> bytes:
    """Return the body of an answer with status 200; empty for any other."""
    reader, writer = await asyncio.open_connection(_HOST, port, limit=_MAX_ANSWER)
    try:
        # 1.0, so that the answer is not chunked and ends where the connection does.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {_HOST}:{port}\r\n\r\n".encode())
        raw = await _read(reader)
    finally:
        writer.transport.abort()  # there is nothing more to send
    head, _, body = raw.partition(b"\r\n\r\n")
    status = head.split(None, 2)[1:2]
    return body if status == [b"200"] else b""


async def _read(reader: asyncio.StreamReader) -> bytes:
    pieces = bytearray()
    while len(pieces) < _MAX_ANSWER and (piece := await reader.read(2**16)):
        pieces += piece
    return bytes(pieces)


def _models(name: str, answer: bytes) -> tuple[str, ...] | None:
    """Return the models in an answer of the shape that this server gives, otherwise None."""
    try:
        data = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    key, field = ("models", "name") if name == "ollama" else ("data", "id")
    rows = data.get(key)
    if not isinstance(rows, list) or not all(_is_model(name, row, field) for row in rows):
        return None
    if name != "ollama" and (not rows or data.get("object") != "list"):
        return None
    return tuple(row[field] for row in rows if "embed" not in row[field])


def _is_model(name: str, row: Any, field: str) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get(field), str):
        return False
    # Many programs listen on llama.cpp's port, but only llama.cpp names itself as the owner.
    return name != "llamacpp" or row.get("owned_by") == "llamacpp"
