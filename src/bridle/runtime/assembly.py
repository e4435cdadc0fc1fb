"""Builds an engine: provider, tools, workspace, store, and the settings of a turn."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from msgspec import Struct

from bridle import __version__
from bridle.config.loader import check_patterns, load_settings
from bridle.config.paths import config_file, policy_file, state_folder
from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver, EngineConfig, OnAsk, PolicyEngine
from bridle.engine.foreign.agent import NoModel
from bridle.engine.structured_output import AnswerSchema
from bridle.errors import ConfigError
from bridle.policy import MODES, Mode, Rule, parse_rule
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.store import Day, Durability, Store
from bridle.protocols.tool import Files, Tool, ToolSource
from bridle.providers.retry import SECONDS, Fallback, Retrying, RetryPolicy
from bridle.runtime.agents import child_agent_of, resolve_agent, translate_call
from bridle.runtime.prompts import neutral_prompt, system_prompt
from bridle.runtime.providers import find_provider, known_secrets
from bridle.runtime.providers import provider as provider_of
from bridle.runtime.telemetry import traced_store
from bridle.stores.day_budget import DayBudget
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import as_tool
from bridle.workspace.machine import LocalMachine
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.undo.undo import Undo
from bridle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from typing import Unpack

    from opentelemetry.trace import TracerProvider

    from bridle.config.diagnostics import Check
    from bridle.protocols.agent import BaseAgent
    from bridle.protocols.hooks import Hooks
    from bridle.tools.skill import Skill

Folder = str | os.PathLike[str]


class EngineOptions(TypedDict, total=False):
    """The options of an engine; each has a default that suits most programs.

    `approver` answers the approval requests. Without one they are denied; with on_ask="wait" they
    wait for `session.answer`, and with "park" the turn waits in the log. `small` is a cheap model
    for titles and summaries; `fallback` is asked if the first model is overloaded. A failed request
    is retried for `retry_seconds` (300; 0: never), at most `retries` times (None: as often as the
    time allows); a provider object is retried only if one of the two is given. `state` is the
    folder of the sessions, `day` keeps the account for the limits of a day. `redact` are regular
    expressions of text that must not be recorded or shown; `redact_tokens=False` lets through text
    that looks like a token of a well-known service. Known keys are always removed.

    `rules` are `Rule` objects or text (`"allow: shell(git status)"`). The command line reads files
    of rules; `bridle.config.folder.load_rules(folder)` does so, too. `policy` is a `PolicyEngine`,
    asked after the floor and the deny rules, neither of which it can lift. `hooks` run before and
    after tools, prompts and turns: functions (`bridle.hook`), objects, commands
    (`bridle.config.folder.load_hooks(folder)` reads files of them), or a `Hooks` object.
    `instructions` are added to the usual system prompt; `system` replaces both. `also` are
    more folders to work on. `sandbox` is what commands run in (auto, bubblewrap, landlock, none),
    `hosts` are the ones that `web_fetch` may ask (without any, there is no such tool); both are for
    the built-in tools. Changes can be undone unless `undo=False`, or if there is a store object and
    no `state`. `agent` runs the turns in place of our own loop: its name (`claude-code`,
    `acp:COMMAND`, `loop`) or any object of the shape of `BaseAgent`; it needs no provider.
    An approval for the session expires after `ask_grant_seconds`. If a person makes a rule of an
    approval, `learn` is called with the rule's text and the person's name. `sources` have tools
    that come and go: `bridle.runtime.mcp.mcp_sources(folder)` are the MCP servers in the person's
    settings. `telemetry` sends OpenTelemetry spans: True, False, or a tracer provider; by default,
    if the process has a provider or the environment (`OTEL_…`) names an exporter. Spans contain
    prompts and replies only with `telemetry_content`. `diagnostics` are command lines that check
    changed files (`"ruff check {files}"`) in the sandbox; the model is told what they print.
    `skills` are offered to it by name: `bridle.config.folder.load_skills(folder)` finds them.
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
    """Build an engine, ready for sessions.

    Without a provider, it is chosen as on the command line: by the settings, a key or a local
    server. Raise `MissingModel` if there is none; an `agent` needs none. Without tools there are
    the built-in ones, which work on the files of the workspace (default: the current folder). With
    tools of your own and no workspace, the model has only your tools, and a short neutral system
    prompt that says nothing about files.
    """
    _check_options(options)
    agent = resolve_agent(options.get("agent"))
    model = NoModel(agent) if agent and provider is None else _model(provider, options)
    small = options.get("small")
    given_rules = options.get("rules", ())
    rules = tuple(
        parse_rule(rule, "rules") if isinstance(rule, str) else rule
        for rule in ((given_rules,) if isinstance(given_rules, str) else given_rules)
    )
    files = _files(workspace, options.get("also", ()))
    folder = local_folder(files, options.get("state"), options.get("sandbox", "auto"))
    own_tools = tools is not None
    tools_by_name = _tools(tools, folder, agent, options)
    state = Path(options["state"]) if "state" in options else state_folder(os.environ)
    has_state = store is None or "state" in options
    store = store or JsonlStore(state, options.get("durability", "disk"))
    coding = not own_tools or workspace is not None or "also" in options
    config = EngineConfig(
        model,
        tools_by_name,
        traced_store(
            store,
            options.get("telemetry"),
            os.environ,
            content=options.get("telemetry_content", False),
        ),
        files,
        rules,
        judge=options.get("policy"),
        machine=folder.machine if folder is not None else None,
        sandbox="" if own_tools or folder is None else folder.sandbox,
        hooks=_hooks(folder, rules, files.root, options),
        system=_system_prompt(agent, files.root, tools_by_name, options, coding=coding),
        agent=agent,
        agents=child_agent_of,
        translate=translate_call,
        small=provider_of(small) if isinstance(small, str) else small,
        sources=tuple(options.get("sources", ())),
        version=__version__,
        secrets=known_secrets(os.environ),
        redact=check_patterns(options.get("redact", ()), "redact"),
        day=options.get("day"),
        **{key: options[key] for key in _PASSED_ON if key in options},  # type: ignore[literal-required]
    )
    if folder and has_state and options.get("undo", True) and _can_change_files(tools_by_name):
        config.undo = Undo(folder.workspace.root, state, tools=tools_by_name)
    if "day" not in options and config.limits.lasts_a_day:
        if not has_state:
            raise ConfigError(
                "a limit of a day needs the day's sessions, and they are in a store of your own",
                hint="Hand in who keeps its account (day=…), or drop the limit.",
            )
        config.day = DayBudget(state)
    return Engine(config)


_CHOICES: dict[str, tuple[str, ...]] = {
    "mode": MODES,
    "on_ask": ("wait", "deny", "park"),
    "durability": ("disk", "process"),
    "sandbox": ("auto", "bubblewrap", "landlock", "none"),
}
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # is it valid, and what would be
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
_LONGEST_COMMAND = 3600.0  # seconds, if the engine has no limit for a call
_PASSED_ON = (
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


def _check_options(options: EngineOptions) -> None:
    """Raise `TypeError` for an unknown option, and `ConfigError` for a value that cannot be."""
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
        try:
            AnswerSchema(schema)
        except ConfigError as error:
            raise ConfigError(f"output_schema: {error.message}", hint=error.hint) from None


# --- the model ---------------------------------------------------------------------------------


def _model(provider: Provider | str | None, options: EngineOptions) -> Provider:
    """Return the provider, with the retries and the fallback of the options."""
    if provider is None:
        model = find_provider(load_settings({}, os.environ).settings).provider()
    elif isinstance(provider, str):
        model = provider_of(provider)
    else:
        model = provider
        if lacking := [name for name in ("info", "stream", "close") if not hasattr(model, name)]:
            raise ConfigError(
                f"{type(model).__name__} is not a provider: it has no {', '.join(lacking)}",
                hint="Pass a name such as anthropic/MODEL, or an object with these attributes.",
            )
    if "retries" in options or "retry_seconds" in options:
        model = model.provider if isinstance(model, Retrying) else model
        retries, seconds = options.get("retries"), options.get("retry_seconds", SECONDS)
        if retries != 0 and seconds != 0:
            model = Retrying(model, RetryPolicy(retries, seconds))
    if fallback := options.get("fallback"):
        second = provider_of(fallback) if isinstance(fallback, str) else fallback
        model = Fallback(model, second)
    return model


def _system_prompt(
    agent: "BaseAgent | None",
    root: str,
    tools: Iterable[str],
    options: EngineOptions,
    *,
    coding: bool,
) -> str:
    """Return the system prompt. `coding`: with what a coding assistant is told about its folder."""
    instructions = options.get("instructions", "")
    if "system" in options:
        return options["system"]
    if agent is not None:
        return instructions  # it has a system prompt of its own
    if not coding:
        return neutral_prompt(instructions)
    skills = {skill.name: skill.description for skill in options.get("skills", ())}
    return system_prompt(root, tools, instructions, skills)


# --- the workspace -----------------------------------------------------------------------------


class LocalFolder(Struct, frozen=True):
    """A workspace on this machine, the facts that calls are judged by, and its sandbox."""

    workspace: Workspace
    machine: LocalMachine
    sandbox: Sandbox


def local_folder(
    files: Files, state: Folder | None = None, sandbox: str = "auto"
) -> LocalFolder | None:
    """Return what belongs to the files of a workspace; None if they are not on this machine."""
    if isinstance(files, Workspace):
        workspace = files
    elif os.path.isdir(files.root):  # noqa: PTH112 - it may be any text
        workspace = Workspace(files.root)
    else:
        return None
    state = str(state if state is not None else state_folder(os.environ))
    own = (str(config_file(os.environ)), str(policy_file(os.environ).parent), state)
    level = "" if sandbox == "auto" else sandbox
    confined = Sandbox(workspace.root, roots=workspace.roots[1:], hidden=own, level=level)
    confined.state = state
    machine = LocalMachine(workspace, own=own, temporary=lambda: confined.temp)
    return LocalFolder(workspace, machine, confined)


def _files(workspace: Folder | Files | None, also: Iterable[Folder]) -> Files:
    if workspace is None or isinstance(workspace, str | os.PathLike):
        others = tuple(map(Path, (also,) if isinstance(also, str) else also))
        return Workspace(Path(workspace) if workspace else Path.cwd(), also=others)
    if tuple(also):
        raise ConfigError(
            "more folders go with the path of a folder, and the workspace is an object",
            hint="Hand in the folder's path, or a Workspace that has them.",
        )
    return workspace


# --- tools and hooks ---------------------------------------------------------------------------


def _tools(
    given: Iterable[Tool | Callable[..., Any]] | None,
    folder: LocalFolder | None,
    agent: "BaseAgent | None",
    options: EngineOptions,
) -> dict[str, Tool]:
    """Return the tools by name. Another agent's calls are judged as calls of the built-in ones."""
    tools = _by_name(given) if given is not None else {}
    if given is not None and agent is None:
        return tools
    from bridle.tools.builtin import builtin_tools  # 12 ms, which tools of one's own do without

    builtin = builtin_tools(
        sandbox=folder.sandbox if folder is not None else None,
        hosts=tuple(options.get("hosts", ())),
        skills=tuple(options.get("skills", ())),
        longest=options.get("limits", Limits()).tool_seconds or _LONGEST_COMMAND,
    )
    return {tool.name: tool for tool in builtin} | tools


def _by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    tools_by_name: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in tools_by_name:
            raise ConfigError(f"two tools are named {tool.name!r}", hint="Give one another name.")
        tools_by_name[tool.name] = tool
    return tools_by_name


def _can_change_files(tools: Mapping[str, Tool]) -> bool:
    policies = [tool.policy for tool in tools.values()]
    return any((policy.files and not policy.read_only) or policy.runs for policy in policies)


def _hooks(
    folder: LocalFolder | None, rules: tuple[Rule, ...], root: str, options: EngineOptions
) -> "Hooks | None":
    """Return the hooks, and after them the diagnostics, as one. Raise `ConfigError`."""
    hooks, diagnostics = options.get("hooks"), tuple(options.get("diagnostics", ()))
    if hooks is None and not diagnostics:
        return None
    # 10 ms: their commands run as the shell tool's do, and few engines have any.
    from bridle.runtime.diagnostics import Diagnostics, as_checks
    from bridle.runtime.hooks import as_hooks

    if not diagnostics or folder is None:
        return as_hooks(hooks, root)
    last = Diagnostics(
        as_checks(diagnostics),
        folder.workspace,
        rules=rules,
        machine=folder.machine,
        sandbox=folder.sandbox,
        policy_engine=options.get("policy"),
    )
    return as_hooks(hooks, root, last)
