"""Builds an engine: provider, tools, workspace, store, and the settings of a turn."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from bridle import __version__
from bridle.config.loader import check_patterns
from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver, EngineConfig, OnAsk, PolicyEngine
from bridle.errors import ConfigError
from bridle.policy import MODES, Mode, Rule, read_rule
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.store import Day, Durability, Store
from bridle.protocols.tool import Files, Tool, ToolSource
from bridle.runtime.agents import child_agent_of, resolved, translated
from bridle.runtime.providers import known_secrets
from bridle.runtime.providers import provider as provider_of
from bridle.runtime.telemetry import watched
from bridle.runtime.workspace_setup import Folder, Surroundings, surroundings, undo_of
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import as_tool
from bridle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from typing import Unpack

    from opentelemetry.trace import TracerProvider

    from bridle.config.diagnostics import Check
    from bridle.protocols.agent import BaseAgent
    from bridle.protocols.hooks import Hooks, UndoStore
    from bridle.tools.skill import Skill


class EngineOptions(TypedDict, total=False):
    """What else can be said of an engine; what is left out has a sensible default.

    `approver` answers the gate's questions; without one they are denied, or wait for
    `session.answer` with on_ask="wait"; with "park" the turn rests in the log until then. `small`
    is a cheap model for titles and summaries, `fallback` is asked when the first is overloaded.
    A failed request is retried for `retry_seconds` (300; 0: not at all), at most `retries` times
    (None: as often as the time allows); a provider of your own is retried only if one of the two is
    given.
    `state` is the folder of the sessions, `day` who keeps the account for the limits of a day.
    `redact` are regular expressions of what nobody is to read; `redact_tokens=False` lets pass
    what looks like a token of a well-known service. Known keys never pass.

    `rules` are rules or their words (`"allow: shell(git status)"`); files of rules are the command
    line's, and `bridle.config.folder.load_rules(folder)` reads them. `policy` is a
    `PolicyEngine` of your own, asked after the floor and the deny rules; it lifts neither. `hooks`
    stand before and after tools, prompts and turns: functions (`bridle.hook`), objects, commands
    (`bridle.config.folder.load_hooks(folder)` reads files of them), or `Hooks` of your own.
    `instructions` is told to the model behind the usual system prompt; a `system` of your own takes
    the place of both. `also` are more folders to work on. `sandbox` is what commands run in (auto,
    bubblewrap, landlock, none), `hosts` whom `web_fetch` may ask (none: there is no such tool);
    both are for the built-in tools. `undo=False` keeps nothing of what turns change, nor does a
    store of your own without a `state`. `agent` carries the turns in the place of our own loop: its
    name (`claude-code`, `acp:COMMAND`, `loop`) or any object of the shape of `BaseAgent`; it needs
    no provider. A yes for the session ends after `ask_grant_seconds`; a rule made of a yes is
    handed to `learn`, in its words, with who made it. `sources` have tools that come and go:
    `bridle.runtime.mcp.mcp_sources(folder)` are the MCP servers that the person has set up.
    `telemetry` sends OpenTelemetry spans: True, False, or a tracer provider of your own; left out,
    where the process has a provider or the environment (`OTEL_…`) names an exporter. They carry
    nothing that was said, unless `telemetry_content` is set. `diagnostics` are command lines that
    look at changed files (`"ruff check {files}"`) in the sandbox, and the model is told. `skills`
    are offered to it by name: `bridle.config.folder.load_skills(folder)` finds them.
    """

    agent: "BaseAgent | str"
    mode: Mode
    rules: Iterable[Rule | str]
    policy: PolicyEngine
    hooks: "Hooks | Iterable[Any] | Callable[..., Any]"
    also: Iterable[Folder]
    sandbox: Literal["auto", "bubblewrap", "landlock", "none"]
    hosts: Iterable[str]
    undo: bool
    approver: Approver
    on_ask: OnAsk
    ask_seconds: float
    ask_grant_seconds: float
    learn: Callable[[str, str], None]
    limits: Limits
    config: RequestConfig
    system: str
    instructions: str
    deps: Any
    small: Provider | str
    fallback: Provider | str
    retries: int | None
    retry_seconds: float
    state: str | os.PathLike[str]
    durability: Durability
    day: Day
    redact: Iterable[str]
    redact_tokens: bool
    face: str
    sources: Iterable[ToolSource]
    telemetry: "bool | TracerProvider | None"
    telemetry_content: bool
    diagnostics: "Iterable[Check | str]"
    skills: "Iterable[Skill]"


def build_engine(
    provider: Provider | str | None = None,
    *,
    tools: Iterable[Tool | Callable[..., Any]] | None = None,
    workspace: Folder | Files | None = None,
    store: Store | None = None,
    **options: "Unpack[EngineOptions]",
) -> Engine:
    """An engine, ready for sessions.

    Without a provider, it is chosen as on the command line: by the settings, a key or a local
    server. Raise `MissingModel` if there is none; an `agent` needs none. Without tools there are
    the built-in ones, which work on the files of the workspace (default: the current folder). With
    tools of your own and no workspace, the model has only your tools, and a short neutral system
    prompt that says nothing about files.
    """
    _check(options)
    agent = resolved(options.get("agent"))
    model = _model(provider, agent, options)
    small = options.get("small")
    kept = {key: options[key] for key in _KEPT if key in options}  # type: ignore[literal-required]
    folder = _folder(workspace, options.get("also", ()))
    around = surroundings(folder, options.get("state"), options.get("sandbox", "auto"))
    named = _tools(around, tools, agent, options)
    coding = tools is None or workspace is not None or "also" in options
    parts = EngineConfig(
        model,
        named,
        _store(store, options),
        folder,
        _rules(options.get("rules", ())),
        judge=options.get("policy"),
        machine=around.machine,
        sandbox=around.sandbox if tools is None and around.sandbox is not None else "",
        undo=_keeper(around, named, options, elsewhere=store is not None),
        hooks=_hooks(_watching(around, options), folder.root),
        system=_told(agent, folder.root, named, options, coding=coding),
        agent=agent,
        agents=child_agent_of,
        translate=translated,
        small=provider_of(small) if isinstance(small, str) else small,
        sources=tuple(options.get("sources", ())),
        version=__version__,
        secrets=known_secrets(os.environ),
        redact=check_patterns(options.get("redact", ()), "redact"),
        day=_day(options, elsewhere=store is not None),
        **kept,
    )
    return Engine(parts)


_CHOICES: dict[str, tuple[str, ...]] = {
    "mode": MODES,
    "on_ask": ("wait", "deny", "park"),
    "durability": ("disk", "process"),
    "sandbox": ("auto", "bubblewrap", "landlock", "none"),
}
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # whether it fits, and what would
    "limits": (lambda value: isinstance(value, Limits), "Pass limits=Limits(…)."),
    "config": (lambda value: isinstance(value, RequestConfig), "Pass config=RequestConfig(…)."),
    "system": (lambda value: isinstance(value, str), "Pass the system prompt as a string."),
    "instructions": (lambda value: isinstance(value, str), "Pass the instructions as a string."),
    "approver": (
        lambda value: value is None or callable(value),
        "Pass an async function that takes the question and returns True or False.",
    ),
    "policy": (
        lambda value: value is None or callable(getattr(value, "evaluate", None)),
        "Pass an object with `async def evaluate(self, tool, arguments)`.",
    ),
    "learn": (
        lambda value: value is None or callable(value),
        "Pass a function that takes a rule and the name of the person who made it.",
    ),
    "ask_seconds": (lambda value: isinstance(value, int | float), "Pass a number of seconds."),
    "ask_grant_seconds": (
        lambda value: isinstance(value, int | float),
        "Pass a number of seconds.",
    ),
    "undo": (lambda value: isinstance(value, bool), "Pass True or False."),
    "redact_tokens": (lambda value: isinstance(value, bool), "Pass True or False."),
    "telemetry_content": (lambda value: isinstance(value, bool), "Pass True or False."),
    "face": (lambda value: isinstance(value, str), "Pass a string; the log shows it."),
}
_UNLIMITED = 3600.0  # seconds of a command, if the engine has no limit for a call
_KEPT = (
    "mode",
    "approver",
    "on_ask",
    "ask_seconds",
    "ask_grant_seconds",
    "learn",
    "limits",
    "config",
    "deps",
    "redact_tokens",
    "face",
)


def _check(options: EngineOptions) -> None:
    unknown = options.keys() - EngineOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"build_engine has no option {', '.join(sorted(unknown))}")
    for key, choices in _CHOICES.items():
        if options.get(key, choices[0]) not in choices:
            raise ConfigError(
                f"there is no {key} {options.get(key)!r}", hint=f"Choose {', '.join(choices)}."
            )
    for key, (fits, wanted) in _KINDS.items():
        if key in options and not fits(options.get(key)):
            kind = type(options.get(key)).__name__
            raise ConfigError(f"{key} cannot be a value of type {kind}", hint=wanted)
    if (schema := options.get("config", RequestConfig()).output_schema) is not None:
        from bridle.engine.structured_output import AnswerSchema

        try:
            AnswerSchema(schema)
        except ConfigError as error:
            raise ConfigError(f"output_schema: {error.message}", hint=error.hint) from None


def _rules(given: Iterable[Rule | str]) -> tuple[Rule, ...]:
    """Rules, or their words, as rules. Raise `ConfigError`."""
    words = (given,) if isinstance(given, str) else given
    return tuple(read_rule(one, "rules") if isinstance(one, str) else one for one in words)


def default_system(
    root: str, tools: Iterable[str], options: EngineOptions, *, coding: bool = True
) -> str:
    """What the model is told of its work: what was passed in, or a prompt of ours.

    `coding`: that of a coding assistant, which names the folder. Otherwise it is a neutral one.
    """
    if "system" in options:
        return options["system"]
    from bridle.runtime.prompts import neutral_prompt, system_prompt

    if not coding:
        return neutral_prompt(options.get("instructions", ""))
    skills = {one.name: one.description for one in options.get("skills", ())}
    return system_prompt(root, tools, options.get("instructions", ""), skills)


def _watching(around: Surroundings, options: EngineOptions) -> Any:
    """The hooks, and behind them what looks at changed files, where that was asked for."""
    given, checks = options.get("hooks"), tuple(options.get("diagnostics", ()))
    if not checks or around.workspace is None:
        return given
    from bridle.runtime.diagnostics import Diagnostics, as_checks, behind

    last = Diagnostics(
        as_checks(checks),
        around.workspace,
        rules=_rules(options.get("rules", ())),
        machine=around.machine,
        sandbox=around.sandbox,
        policy_engine=options.get("policy"),
    )
    return behind(given, last)


def _hooks(given: Any, root: str) -> "Hooks | None":
    """What was handed in as hooks, as one. Raise `ConfigError`."""
    if given is None:
        return None
    from bridle.runtime.hooks import as_hooks

    return as_hooks(given, root)


def _told(
    agent: "BaseAgent | None",
    root: str,
    tools: Iterable[str],
    options: EngineOptions,
    *,
    coding: bool,
) -> str:
    """What the model is told. Another agent knows its own work, and is told what is special."""
    if agent is None:
        return default_system(root, tools, options, coding=coding)
    return options.get("system", options.get("instructions", ""))


def _model(
    provider: Provider | str | None, agent: "BaseAgent | None", options: EngineOptions
) -> Provider:
    """The model's side; where another agent carries the turns it is left out, unless named."""
    if agent is None or provider is not None:
        found = _with_retries(_resolved(provider), options)
        return _with_fallback(found, options.get("fallback"))
    from bridle.engine.foreign.agent import NoModel

    return NoModel(agent)


def _tools(
    around: Surroundings,
    given: Iterable[Tool | Callable[..., Any]] | None,
    agent: "BaseAgent | None",
    options: EngineOptions,
) -> dict[str, Tool]:
    """The tools by name. What another agent does is judged by ours of the same kind, too."""
    named = {} if given is None else _named(given)
    if given is not None and agent is None:
        return named
    return {tool.name: tool for tool in _builtin(around, options)} | named


def _resolved(provider: Provider | str | None) -> Provider:
    if isinstance(provider, str):
        return provider_of(provider)
    if provider is not None:
        if lacking := [name for name in ("info", "stream", "close") if not hasattr(provider, name)]:
            raise ConfigError(
                f"{type(provider).__name__} is not a provider: it has no {', '.join(lacking)}",
                hint="Pass a name such as anthropic/MODEL, or an object with these attributes.",
            )
        return provider
    from bridle.config import load_settings
    from bridle.runtime.providers import find_provider

    return find_provider(load_settings({}, os.environ).settings).provider()


def _with_retries(found: Provider, options: EngineOptions) -> Provider:
    """The provider with the retries that were asked for here; else it keeps its own."""
    if not ("retries" in options or "retry_seconds" in options):
        return found
    from bridle.providers.retry import SECONDS, Retrying, RetryPolicy

    inner = found.provider if isinstance(found, Retrying) else found
    retries, seconds = options.get("retries"), options.get("retry_seconds", SECONDS)
    if retries == 0 or seconds == 0:
        return inner
    return Retrying(inner, RetryPolicy(retries, seconds))


def _with_fallback(first: Provider, second: Provider | str | None) -> Provider:
    if not second:
        return first
    from bridle.providers.fallback import Fallback

    return Fallback(first, provider_of(second) if isinstance(second, str) else second)


def _builtin(around: Surroundings, options: EngineOptions) -> tuple[Tool, ...]:
    from bridle.tools.builtin import builtin_tools

    hosts, skills = tuple(options.get("hosts", ())), tuple(options.get("skills", ()))
    longest = options.get("limits", Limits()).tool_seconds or _UNLIMITED
    return builtin_tools(sandbox=around.sandbox, hosts=hosts, skills=skills, longest=longest)


def _named(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in named:
            raise ConfigError(f"two tools are named {tool.name!r}", hint="Give one another name.")
        named[tool.name] = tool
    return named


def _folder(workspace: Folder | Files | None, also: Iterable[Folder]) -> Files:
    if workspace is None or isinstance(workspace, str | os.PathLike):
        others = tuple(map(Path, (also,) if isinstance(also, str) else also))
        return Workspace(Path(workspace) if workspace else Path.cwd(), also=others)
    if tuple(also):
        raise ConfigError(
            "more folders go with the path of a folder, and the workspace is an object",
            hint="Hand in the folder's path, or a Workspace that has them.",
        )
    return workspace


def _store(given: Store | None, options: EngineOptions) -> Store:
    """Where the sessions are kept; and where telemetry is wanted, told of."""
    store = given or JsonlStore(_state(options), options.get("durability", "disk"))
    content = options.get("telemetry_content", False)
    return watched(store, options.get("telemetry"), content, os.environ)


def _keeper(
    around: Surroundings, tools: Mapping[str, Tool], options: EngineOptions, *, elsewhere: bool
) -> "UndoStore | None":
    """Who keeps what turns change, where there are tools that change files, and a place for it."""
    policies = [tool.policy for tool in tools.values()]
    changing = any((one.files and not one.read_only) or one.runs for one in policies)
    placeless = elsewhere and "state" not in options
    if around.workspace is None or not changing or placeless or not options.get("undo", True):
        return None
    return undo_of(around.workspace, _state(options), tools)


def _state(options: EngineOptions) -> Path:
    if "state" in options:
        return Path(options["state"])
    from bridle.config import state_folder

    return state_folder(os.environ)


def _day(options: EngineOptions, *, elsewhere: bool) -> Day | None:
    """Who keeps the day's account, where there is a limit that needs one."""
    if "day" in options or not options.get("limits", Limits()).lasts_a_day:
        return options.get("day")
    if elsewhere and "state" not in options:
        raise ConfigError(
            "a limit of a day needs the day's sessions, and they are in a store of your own",
            hint="Hand in who keeps its account (day=…), or drop the limit.",
        )
    from bridle.stores.day_budget import DayBudget

    return DayBudget(_state(options))
