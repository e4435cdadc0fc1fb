"""From settings, flags and the files of a workspace to an engine and a session."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bridle.cli.exit_codes import complain
from bridle.cli.find import find_session, newest_in
from bridle.cli.options import to_settings
from bridle.cli.style import Paint
from bridle.cli.user_input import user_name
from bridle.cli.worktree import OtherSessions, open_worktree, worktree_note
from bridle.config.diagnostics import Check
from bridle.config.folder import (
    FolderConfig,
    load_diagnostics,
    load_hooks,
    load_rules,
    load_servers,
    load_skills,
)
from bridle.config.hooks import CommandLine
from bridle.config.loader import load_settings
from bridle.config.mcp import ServerSettings
from bridle.config.paths import hooks_file, policy_file, skills_folder, state_folder
from bridle.config.policy import add_rule
from bridle.config.settings import FLAGS, PROVIDERS, LoadedSettings, Settings, vendor_of
from bridle.config.skills import Skill
from bridle.config.trust import DIAGNOSTICS, HOOKS, POLICY, SKILLS
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver
from bridle.engine.foreign.agent import NoModel
from bridle.engine.session import Session
from bridle.errors import ConfigError, MissingKey, MissingModel, UsageError
from bridle.events import ModeChanged
from bridle.policy import Mode, Rule, parse_rule
from bridle.protocols.agent import BaseAgent
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.store import SessionSummary
from bridle.protocols.tool import ToolSource
from bridle.runtime import EngineOptions, Limits, build_engine, find_provider
from bridle.runtime.agents import (
    agent_of,
    check_agent,
    check_model,
    check_ready,
    is_agent,
    is_file_name,
)
from bridle.runtime.mcp import make_sources, may_have_servers
from bridle.runtime.prompts import FILES as INSTRUCTIONS
from bridle.runtime.prompts import project_instructions
from bridle.runtime.recorded_mode import record_mode
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import LastRun, last_run
from bridle.stores.transfer import head_of, is_imported
from bridle.workspace.text import one_line

T = TypeVar("T")
_LOOP_ONLY = (
    *("provider", "base_url", "fallback_model", "max_tokens", "temperature", "effort"),
    *("retries", "retry_seconds"),
)


class ProjectFiles(Struct):
    """What files of the user and of the workspace add to a session."""

    rules: tuple[Rule, ...] = ()
    hooks: tuple[CommandLine, ...] = ()
    diagnostics: tuple[Check, ...] = ()
    instructions: str = ""
    skills: tuple[Skill, ...] = ()


class Setup:
    """The model, workspace and session that a command works with, from its flags and settings.

    With `--resume` or `--continue`, `earlier` is the session to resume.
    """

    def __init__(self, flags: dict[str, Any]) -> None:
        self.loaded: LoadedSettings = load_settings(to_settings(flags))
        self.settings: Settings = self.loaded.settings
        self.folder = SessionFolder(state_folder(os.environ))
        named = flags.get("workspace")
        if (worktree := flags.get("worktree")) is not None:
            root = Path(named or _current_folder())
            named = open_worktree(root, worktree, self.folder.folder)
        self.earlier: SessionSummary | None = None
        if flags.get("resume") is not None:
            self.earlier = find_session(self.folder, flags["resume"])
        elif flags.get("go_on"):
            self.earlier = newest_in(self.folder, named or _current_folder())
        earlier_id = self.earlier.id if self.earlier is not None else ""
        self.log: Path | None = self.folder.path(earlier_id) if earlier_id else None
        self.is_imported = bool(earlier_id) and is_imported(self.folder, earlier_id)
        self._is_workspace_named = bool(named)
        if not named and self.earlier is not None and not self.is_imported:
            named = self.earlier.workspace if Path(self.earlier.workspace).is_dir() else ""
        self.workspace = Path(named) if named else _current_folder()
        self._others = OtherSessions(self.folder.folder, self.workspace, earlier_id)
        self._is_quiet = bool(flags.get("quiet"))
        self._last_run = last_run(self.log) if self.log is not None else LastRun()
        self._foreign_agent = ""  # it ran the session, and cannot be used here
        if self.earlier is not None and not self._is_flag("agent"):
            self.agent = self._resumed_agent()
        else:
            folder = str(Path.cwd()) if self._is_flag("agent") else ""
            self.agent = check_agent(self.settings.agent, folder)
        self.agent_model = self._earlier_model = ""
        if self.agent != "loop":
            self.agent_model = self._checked_agent_model()
        elif self.earlier is not None and flags.get("as_before", True):
            self._keep_model()
        self.also: tuple[str, ...] = tuple(flags.get("add_dir") or ())
        rules = flags.get("rules") or ()
        self._files = load_project(self.workspace, rules, self.settings.diagnostics)
        has_mode = flags.get("mode") or flags.get("yes")
        self.chosen_mode: Mode | None = self.settings.mode if has_mode else None
        # None leaves colours to the terminal
        self.paint = Paint(False) if self.settings.theme == "plain" else None
        for warning in self.loaded.warnings:
            complain(warning)

    def _resumed_agent(self) -> str:
        """Return the agent that the session last used, else that of the settings."""
        last = self._last_run.agent or self._last_run.model
        if is_agent(last) and not self.is_imported:  # an imported log may name any program
            if is_file_name(last) and last != check_agent(self.settings.agent):
                raise ConfigError(
                    f"this session last used the agent {last}, and bridle imports a file of code "
                    "only if you name it",
                    hint=f"Name it again with --agent {last}, or use --agent loop.",
                )
            return check_agent(last)
        self._foreign_agent = last if is_agent(last) else self._last_run.agent
        return "loop" if last else check_agent(self.settings.agent)

    def _keep_model(self) -> None:
        """Keep the model and the effort that the session last used, unless a flag names others."""
        model, vendor = self._last_run.model, vendor_of(self._last_run.model)
        if self.is_imported or vendor not in PROVIDERS or vendor == "scripted":
            return  # a script is a file, which the log does not name
        if not self.is_model_named:
            self._earlier_model = model
        if self._last_run.effort and not self._is_flag("effort"):
            self.settings = replace(self.settings, effort=self._last_run.effort)

    def _checked_agent_model(self) -> str:
        """Return the model that another agent is to use. Refuse flags that only our loop knows."""
        for key in _LOOP_ONLY:
            if self._is_flag(key):
                raise UsageError(
                    f"{FLAGS[key]} works only with bridle's own loop, not with {self.agent}",
                    hint="Leave it out, or choose --agent loop.",
                )
        check_ready(self.agent, str(self.workspace))
        return check_model(self.agent, self.settings.model, asked=self._is_flag("model"))

    def _is_flag(self, key: str) -> bool:
        return self.loaded.origins[key].startswith("flag ")

    @property
    def is_model_named(self) -> bool:
        """Return whether a flag says which model to use."""
        return any(map(self._is_flag, ("model", "provider", "base_url")))

    def provider(self) -> Provider:
        """Return the model to use. If the session's last one is not available, say so."""
        if self.agent != "loop":
            return NoModel(self.agent)  # the agent brings its own
        if not self._earlier_model:
            return find_provider(self.settings).provider()
        try:
            return self.other(self._earlier_model)
        except ConfigError as error:
            usual = find_provider(self.settings).provider()
            complain(
                f"{one_line(self._earlier_model)}, which this session last used, is not available: "
                f"{error.message}; {usual.info.label} continues the session",
                error.hint,
            )
            return usual

    def provider_or_refusal(self) -> Provider:
        """Return the model to use; if there is none, one that refuses every prompt and says why.

        For a server, which starts without a key.
        """
        try:
            return self.provider()
        except (MissingKey, MissingModel) as error:
            return NoModel(error=error)

    def engine(
        self, provider: Provider, approver: Approver | None, face: str, **extra: Any
    ) -> Engine:
        """Build an engine with these settings."""
        settings, files = self.settings, self._files
        agent: BaseAgent | str = self.agent
        if agent != "loop":
            inherit = settings.agent_env
            agent = agent_of(self.agent, model=self.agent_model, inherit=inherit) or self.agent
        options: EngineOptions = {
            "mode": settings.mode,
            "limits": to_limits(settings),
            "config": RequestConfig(
                settings.max_tokens,
                settings.temperature,
                settings.effort,
                output_schema=extra.get("schema"),
            ),
            "durability": settings.durability,
            "redact": settings.redact,
            "redact_tokens": settings.redact_tokens,
            "rules": files.rules,
            "learn": self._save_rule,
            "also": self.also,
            "sandbox": settings.sandbox,
            "hosts": settings.hosts,
            "undo": settings.undo,
            "telemetry": settings.telemetry,
            "telemetry_content": settings.telemetry_content,
            "face": face,
            "on_ask": extra.get("on_ask", "deny"),
            "agent": agent,
            "diagnostics": files.diagnostics,
            "skills": files.skills,
        }
        if approver is not None:
            options["approver"] = approver
        if settings.small_model:
            options["small"] = self.other(settings.small_model)
        if settings.fallback_model and self.agent == "loop":
            options["fallback"] = self.other(settings.fallback_model)
        if files.hooks:
            options["hooks"] = files.hooks
        if servers := load_mcp_servers(self.workspace, extra.get("servers", ())):
            options["sources"] = servers
        if files.instructions:
            options["instructions"] = files.instructions
        return build_engine(provider, workspace=self.workspace, **options)

    def _save_rule(self, rule: str, by: str) -> None:
        """Add a rule that came from an answer to the user's own rules, or say why that failed.

        It is for the workspace of the request, and applies to this session in any case.
        """
        today = datetime.now().astimezone().date()
        try:
            name = user_name() if by in ("", "me", "approver") else by
            note = f"from an answer by {name}, {today}"
            add_rule(policy_file(os.environ), rule, note, os.path.realpath(self.workspace))
        except ConfigError as error:
            complain(
                f"the rule applies to this session, but could not be saved: {error.message}",
                error.hint,
            )

    def other(self, name: str) -> Provider:
        """Return another model, with the same key if it is of the same vendor."""
        same = vendor_of(name) == self.settings.vendor
        settings = load_settings({"model": name}).settings
        retries, seconds = self.settings.retries, self.settings.retry_seconds
        settings = replace(settings, retries=retries, retry_seconds=seconds)
        if same:
            key, url = self.settings.api_key, self.settings.base_url
            settings = replace(settings, api_key=key, base_url=url)
        return find_provider(settings).provider()

    @property
    def worktree_note(self) -> str:
        """Where a session with a worktree works, and how to merge it; empty without one."""
        return worktree_note(self.workspace, self.folder.folder)

    @property
    def workspace_note(self) -> str:
        """Where the session works, unless it is the current folder."""
        if note := self.worktree_note:
            return note
        if self.is_imported:
            return f"working in {self.workspace}; the session was imported from elsewhere"
        if self.earlier is None:
            return ""
        own = "" if self._is_workspace_named else self.earlier.workspace
        if own and not Path(own).is_dir():
            return f"{own} no longer exists; working in {self.workspace}"
        is_current = Path().samefile(self.workspace)
        return "" if is_current else f"working in {self.workspace}, as the session did"

    @property
    def last_seq(self) -> int:
        """The newest record of the session to resume; 0 if there is none."""
        return head_of(self.folder, self.earlier.id).seq if self.earlier is not None else 0

    async def session(self, engine: Engine) -> Session:
        """Open the session to resume, or a new one, and warn of what the user should know."""
        if not self._is_quiet:
            self._others.warn()
        session = await engine.session(self.earlier.id if self.earlier is not None else None)
        if self._foreign_agent:
            complain(
                f"another agent, {one_line(self._foreign_agent)}, ran this session before; "
                "bridle's own loop continues it"
            )
        history, agent = session.history, getattr(engine.parts.agent, "name", "")
        if agent.startswith("acp:") and len(history.transcript) and agent not in history.attached:
            complain(
                f"{agent} did not run this session before, so it does not know the conversation; "
                "the log still has it",
                "Tell it what it needs to know, or choose --agent loop.",
            )
        if (mode := self.chosen_mode) is not None:
            session.mode = mode  # a flag comes before what the log says
            if mode == "plan" and session.history.mode != mode:  # recorded: it lasts until a yes
                session.emit_with_first_prompt(ModeChanged(mode))
        record_mode(session)
        return session


def to_limits(settings: Settings) -> Limits:
    """Return the limits that are set; for the others, the engine's defaults."""
    given = settings.limits
    plain = Limits()
    return Limits(
        given.max_steps or plain.max_steps,
        given.max_tool_calls or plain.max_tool_calls,
        given.max_seconds or plain.max_seconds,
        given.max_turn_tokens or plain.max_turn_tokens,
        given.max_cost or plain.max_cost,
        max_session_tokens=given.max_session_tokens or 0,
        max_session_cost=given.max_session_cost or 0.0,
        max_day_tokens=given.max_day_tokens or 0,
        max_day_cost=given.max_day_cost or 0.0,
    )


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists", hint="Name a folder with --workspace."
        ) from None


def load_project(workspace: Path, rules: Iterable[str], diagnostics: Sequence[str]) -> ProjectFiles:
    """Load what files add to a session, with these rules and diagnostics. Raise `ConfigError`.

    The user is told about files that have no effect because they are not trusted.
    """
    paths = {
        "rules": (policy_file(os.environ), workspace / POLICY),
        "hooks": (hooks_file(os.environ), workspace / HOOKS),
        "diagnostics": (workspace / DIAGNOSTICS,),
        "instructions": tuple(workspace / name for name in INSTRUCTIONS),
        "skills": (skills_folder(os.environ), *(workspace / name for name in SKILLS)),
    }
    existing = {kind for kind, places in paths.items() if any(map(os.path.lexists, places))}
    files = ProjectFiles(rules=tuple(parse_rule(rule, "--rule") for rule in rules))
    if "rules" in existing:
        files.rules = _items(load_rules(workspace)) + files.rules
    if "hooks" in existing:
        files.hooks = _items(load_hooks(workspace))
    if "diagnostics" in existing or diagnostics:
        files.diagnostics = _items(load_diagnostics(workspace, diagnostics))
    if "instructions" in existing:
        project = project_instructions(workspace)
        if project.unread:
            names = " and ".join(project.unread)
            are = "is" if len(project.unread) == 1 else "are"
            complain(f"{names} {are} not used until you trust the folder: bridle trust")
        files.instructions = project.instructions
    if "skills" in existing:
        files.skills = _items(load_skills(workspace))
    return files


def load_mcp_servers(
    workspace: Path, more: Sequence[ServerSettings] = ()
) -> tuple[ToolSource, ...]:
    """Return the MCP servers of the user and of the workspace as a source of tools; start none.

    `more` are those of an editor. The user's own come before those of the same name.
    """
    if not may_have_servers(workspace, os.environ):
        return make_sources(more, workspace)
    servers = _items(load_servers(workspace))
    names = {server.name for server in servers}
    others = [server for server in more if server.name not in names]
    return make_sources((*servers, *others), workspace)


def _items(config: FolderConfig[T]) -> tuple[T, ...]:
    """Return what applies, and tell the user what has no effect."""
    for note in config.notes:
        complain(*note)
    return config.items
