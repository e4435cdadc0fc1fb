"""The settings: values, types, and names in the environment and as flags. No I/O."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bridle.policy import Mode

Durability = Literal["disk", "process"]  # as in the store, whose module takes 9 ms to load
SandboxChoice = Literal["auto", "bubblewrap", "landlock", "none"]
Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, le=1e12)]  # infinity would be no limit

KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
URL_VARIABLES = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
}
PROVIDERS = (
    *KEY_VARIABLES,
    "ollama",
    "llamacpp",
    "lmstudio",
    "scripted",
    "offline",
)
_BARE = {"claude": "anthropic", "gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}


class LimitSettings(Struct, frozen=True, omit_defaults=True):
    """Limits of a turn, of a session and of a day. None means the engine's default."""

    max_steps: Count | None = None
    max_tool_calls: Count | None = None
    max_seconds: Positive | None = None
    max_turn_tokens: Count | None = None
    max_cost: Positive | None = None
    max_session_tokens: Count | None = None
    max_session_cost: Positive | None = None
    max_day_tokens: Count | None = None
    max_day_cost: Positive | None = None


class Settings(Struct, frozen=True, omit_defaults=True):
    """What a person can set. An empty value or None means: not set, so a default applies.

    Text that matches the `redact` patterns is kept out of the log, the events and the requests to
    the model; with `redact_tokens`, text that looks like a key or a token is, too. Commands run in
    the `sandbox`; `web_fetch` may ask the `hosts` (without any, there is no such tool); with
    `undo`, the changes of a turn can be undone. The `agent` runs the turns: `loop` (built in),
    `claude-code`, `acp:COMMAND` or one of the person's own; `agent_env` names the variables that an
    ACP program may have. `telemetry` says whether OpenTelemetry spans are sent (None: if the
    environment says so), `telemetry_content` whether they contain prompts and replies. `theme` and
    `notify` are for the terminal: its colours, and how it notifies a person who looks elsewhere.
    `diagnostics` are command lines that look at the files that a turn has changed. A failed request
    to the model is retried for `retry_seconds`, at most `retries` times (None: as often as the time
    allows).
    """

    provider: str = ""
    model: str = ""
    api_key: str = ""
    base_url: str = ""
    max_tokens: Annotated[int, Meta(ge=0)] = 0
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    effort: str = ""
    request_timeout: Positive = 600.0
    idle_timeout: Positive = 120.0
    retries: Annotated[int, Meta(ge=0)] | None = None
    retry_seconds: Annotated[float, Meta(ge=0)] = 300.0
    fallback_model: str = ""
    small_model: str = ""
    agent: str = ""
    agent_env: tuple[str, ...] = ()
    mode: Mode = "ask"
    limits: LimitSettings = LimitSettings()
    durability: Durability = "disk"
    redact: tuple[str, ...] = ()
    redact_tokens: bool = True
    sandbox: SandboxChoice = "auto"
    hosts: tuple[str, ...] = ()
    undo: bool = True
    telemetry: bool | None = None
    telemetry_content: bool = False
    diagnostics: tuple[str, ...] = ()
    theme: Literal["auto", "dark", "light", "plain"] = "auto"
    notify: Literal["auto", "bell", "osc9", "off"] = "auto"

    @property
    def name(self) -> str:
        """The model with its provider, `anthropic/claude-…`; empty if none was chosen."""
        if not self.provider or self.model.startswith(f"{self.provider}/"):
            return self.model
        return f"{self.provider}/{self.model}" if self.model else self.provider

    @property
    def vendor(self) -> str:
        """The provider's name alone."""
        return vendor_of(self.name)

    def __repr__(self) -> str:
        shown = {**msgspec.structs.asdict(self), "api_key": mask(self.api_key)}
        return f"Settings({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class SettingRow(Struct, frozen=True):
    """One setting as a person sees it: a key is masked."""

    key: str
    value: Any
    origin: str


class LoadedSettings(Struct, frozen=True):
    """The settings, where each came from by its key (`limits.max_steps`), and warnings."""

    settings: Settings
    origins: dict[str, str]
    file: Path
    warnings: tuple[str, ...] = ()

    def rows(self) -> Iterator[SettingRow]:
        """Yield every setting in the order of the documentation, keys masked."""
        for key in TYPES:
            first, _, rest = key.partition(".")
            value = getattr(self.settings, first)
            if rest:
                value = getattr(value, rest)
            if key in LISTS:
                value = list(value) or None
            shown = mask(value) if key == "api_key" else value
            yield SettingRow(key, shown, self.origins[key])


def vendor_of(name: str) -> str:
    """`anthropic` for `anthropic/claude-…` and `claude-…`, `scripted` for `scripted:FILE`."""
    first = name.split("/", 1)[0].split(":", 1)[0]
    return first if "/" in name else bare_vendor(name) or first


def bare_vendor(name: str) -> str:
    """`anthropic` for `claude-…`, `openai` for `gpt-…`; empty if the name alone does not say it."""
    return next((vendor for start, vendor in _BARE.items() if name.startswith(start)), "")


def mask(secret: str) -> str:
    """As much of a key as it takes to recognise it."""
    if not secret:
        return ""
    return f"{secret[:3]}…{secret[-4:]}" if len(secret) >= 20 else "…"


def _flat(kind: type[Struct], before: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        if field.type is LimitSettings:
            yield from _flat(LimitSettings, "limits.")
        else:
            yield before + field.name, field.type


TYPES: dict[str, Any] = dict(_flat(Settings))
FLAGS = {key: f"--{key.removeprefix('limits.').replace('_', '-')}" for key in TYPES}
FLAGS["fallback_model"] = "--fallback"
LISTS = ("redact", "hosts", "agent_env", "diagnostics")  # only the file can set them
VARIABLES = {
    key: f"BRIDLE_{key.removeprefix('limits.').upper()}" for key in TYPES if key not in LISTS
}
