"""From settings and flags to an engine and a session. The one module here that starts things."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from bridle.cli import project
from bridle.cli.failure import complain
from bridle.cli.find import find_session, newest_in
from bridle.cli.options import to_settings
from bridle.cli.style import Paint
from bridle.cli.worktree import Beside, with_worktree, words_of
from bridle.config import LoadedSettings, Settings, load_settings, state_folder, vendor_of
from bridle.config.paths import policy_file
from bridle.config.settings import FLAGS, PROVIDERS
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver
from bridle.engine.session import Session
from bridle.errors import ConfigError, MissingKey, MissingModel
from bridle.events import ModeChanged
from bridle.policy import Mode, Rule, parse_rule
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.store import SessionSummary
from bridle.runtime import Choice, EngineOptions, Limits, build_engine, find_provider
from bridle.runtime.gate_mode import tell_mode
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import LastRun, last_run
from bridle.stores.transfer import is_imported
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.protocols.agent import BaseAgent

_PROJECT_RULES = ".bridle/policy.yaml"
_LOOP_ONLY = (
    *("provider", "base_url", "fallback_model", "max_tokens", "temperature", "effort"),
    *("retries", "retry_seconds"),
)
_UNHEARD = (
    "{} takes up a session that it did not carry: "
    "it knows nothing of what was said before, which the log still has"
)
_STRANGER = (
    "{} carried this session, an agent from elsewhere: bridle's own loop goes on with it now"
)


class Setup:
    """What a command was asked to work with: settings, model, workspace, session."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.loaded: LoadedSettings = load_settings(to_settings(flags))
        self.settings: Settings = self.loaded.settings
        self.folder = SessionFolder(state_folder(os.environ))
        flags = with_worktree(flags, self.folder.folder, _here)
        self.earlier = _earlier(self.folder, flags)
        self.imported = self.earlier is not None and is_imported(self.folder, self.earlier.id)
        self._named = bool(flags.get("workspace"))
        self.workspace = _workspace(None if self.imported else self.earlier, flags)
        mine = self.earlier.id if self.earlier is not None else ""
        self._quiet = bool(flags.get("quiet"))
        self._beside = Beside(self.folder, self.workspace, mine)
        self._stranger = ""  # who carried the session, where only their own program has them
        self._carried = last_run(self.log) if self.log is not None else LastRun()
        self.agent = self._whose()
        self._earlier_model = ""
        if flags.get("as_before", True):
            self._keep_model()
        self.agent_model = self._check_agent()
        self.also: tuple[str, ...] = tuple(flags.get("add_dir") or ())
        self.rules = _rules(self.workspace, flags.get("rules") or ())
        self.hooks = project.hooks(self.workspace)
        self.diagnostics = project.diagnostics(self.workspace, self.settings.diagnostics)
        self.instructions = project.instructions(self.workspace)
        self.skills = project.skills(self.workspace)
        asked_for = flags.get("mode") or flags.get("yes")
        self.chosen_mode: Mode | None = self.settings.mode if asked_for else None
        for warning in self.loaded.warnings:
            complain(warning)

    def _whose(self) -> str:
        """Who carries the turns: the flag's, else who carried the session's, else the setting's."""
        from bridle.runtime.agents import check_agent, is_agent, names_file

        wanted, by_flag = self.settings.agent, self._by_flag("agent")
        if self.log is not None and not by_flag:
            agent, model = self._carried[:2]
            before = agent or model
            if is_agent(before) and not self.imported:  # whose log may name any program
                if names_file(before) and before != check_agent(wanted):
                    raise ConfigError(
                        f"this session last used the agent {before}; bridle imports a "
                        "file of code only if you name it",
                        hint=f"Name it again with --agent {before}, or use --agent loop.",
                    )
                return check_agent(before)
            self._stranger = before if is_agent(before) else agent
            if before:
                return "loop"
        return check_agent(wanted, str(Path.cwd()) if by_flag else "")

    def _keep_model(self) -> None:
        """The model and the effort that the session last used, unless a flag says otherwise."""
        model, vendor = self._carried.model, vendor_of(self._carried.model)
        if self.agent != "loop" or self.imported or vendor not in PROVIDERS or vendor == "scripted":
            return  # a script is a file, which the log does not name
        if not self.is_model_named:
            self._earlier_model = model
        if self._carried.effort and not self._by_flag("effort"):
            self.settings = replace(self.settings, effort=self._carried.effort)

    @property
    def is_model_named(self) -> bool:
        """Does a flag say which model is to answer?"""
        return any(map(self._by_flag, ("model", "provider", "base_url")))

    def _by_flag(self, key: str) -> bool:
        return self.loaded.origins[key].startswith("flag ")

    def _check_agent(self) -> str:
        """The model that another agent is to use. What only our loop knows is no flag for it."""
        if self.agent == "loop":
            return ""
        from bridle.runtime.agents import check_model, check_ready

        for key in _LOOP_ONLY:
            if self._by_flag(key):
                said = f"{FLAGS[key]} is for bridle's own loop, and {self.agent} carries the turns"
                raise click.UsageError(f"{said}\nLeave it out, or choose --agent loop.")
        check_ready(self.agent, str(self.workspace))
        return check_model(self.agent, self.settings.model, asked=self._by_flag("model"))

    def _carrier(self) -> "BaseAgent | str":
        """Who carries the turns, ready to be handed to an engine."""
        if self.agent == "loop":
            return self.agent
        from bridle.runtime.agents import agent_of

        inherit = self.settings.agent_env
        return agent_of(self.agent, model=self.agent_model, inherit=inherit) or self.agent

    def provider(self) -> Provider:
        """The model's side; another agent that carries the turns brings its own."""
        if self.agent == "loop":
            return self._model()
        from bridle.engine.foreign.agent import NoModel

        return NoModel(self.agent)

    def provider_or_refusal(self) -> Provider:
        """The model's side; if there is no model, one that refuses every prompt and says why.

        For a server, which starts without a key.
        """
        try:
            return self.provider()
        except (MissingKey, MissingModel) as error:
            from bridle.engine.foreign.agent import NoModel

            return NoModel(error=error)

    def _model(self) -> Provider:
        """The model that the session last used; if it cannot be had, the usual one, and say so."""
        if not (name := self._earlier_model):
            return self.choose().provider()
        try:
            return self.other(name)
        except ConfigError as error:
            usual = self.choose().provider()
            complain(
                f"{one_line(name)}, which this session last used, is not available: "
                f"{error.message}; {usual.info.label} continues the session",
                error.hint,
            )
            return usual

    def choose(self) -> Choice:
        """Which model, and why."""
        return find_provider(self.settings)

    def engine(
        self, provider: Provider, approver: Approver | None, face: str, **extra: Any
    ) -> Engine:
        """An engine with these settings."""
        settings = self.settings
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
            "rules": self.rules,
            "learn": self._learn,
            "also": self.also,
            "sandbox": settings.sandbox,
            "hosts": settings.hosts,
            "undo": settings.undo,
            "telemetry": settings.telemetry,
            "telemetry_content": settings.telemetry_content,
            "face": face,
            "on_ask": extra.get("on_ask", "deny"),
            "agent": self._carrier(),
            "diagnostics": self.diagnostics,
            "skills": self.skills,
        }
        if approver is not None:
            options["approver"] = approver
        if settings.small_model:
            options["small"] = self.other(settings.small_model)
        if settings.fallback_model and self.agent == "loop":
            options["fallback"] = self.other(settings.fallback_model)
        if self.hooks:
            options["hooks"] = self.hooks
        if servers := project.servers(self.workspace, extra.get("servers", ())):
            options["sources"] = servers
        if self.instructions:
            options["instructions"] = self.instructions
        return build_engine(provider, workspace=self.workspace, **options)

    def _learn(self, words: str, by: str) -> None:
        _learn(words, by, os.path.realpath(self.workspace))

    def other(self, name: str) -> Provider:
        """Another model: of the same vendor with the same key, else with what fits its own."""
        same = vendor_of(name) == self.settings.vendor
        settings = load_settings({"model": name}).settings
        retries, seconds = self.settings.retries, self.settings.retry_seconds
        settings = replace(settings, retries=retries, retry_seconds=seconds)
        if same:
            key, url = self.settings.api_key, self.settings.base_url
            settings = replace(settings, api_key=key, base_url=url)
        return find_provider(settings).provider()

    @property
    def paint(self) -> Paint | None:
        """No colour where none is wanted; None leaves it to the terminal."""
        return Paint(False) if self.settings.theme == "plain" else None

    @property
    def apart(self) -> str:
        """Where the session works, and how its changes come back, where it has a worktree."""
        return words_of(self.workspace, self.folder.folder)

    @property
    def moved(self) -> str:
        """A word about the folder where it is not what one would expect of the session."""
        if self.apart:
            return self.apart
        if self.imported:
            return f"working in {self.workspace}; the session was imported from elsewhere"
        own = self.earlier.workspace if self.earlier is not None and not self._named else ""
        if own and not Path(own).is_dir():
            return f"{own} is gone; working in {self.workspace}"
        away = self.earlier is not None and not Path().samefile(self.workspace)
        return f"working in {self.workspace}, as the session did" if away else ""

    @property
    def log(self) -> Path | None:
        """The log of the session to go on with."""
        return self.folder.path(self.earlier.id) if self.earlier is not None else None

    @property
    def seen(self) -> int:
        """The newest record of the session to go on with: what comes after it is news."""
        from bridle.stores.transfer import head_of

        return head_of(self.folder, self.earlier.id).seq if self.earlier is not None else 0

    async def session(self, engine: Engine) -> Session:
        """The session to go on with, or a new one; told where another is at work beside it."""
        if not self._quiet:
            self._beside.tell()
        session = await engine.session(self.earlier.id if self.earlier is not None else None)
        self._tell_unheard(engine, session)
        if (mode := self.chosen_mode) is not None:
            session.mode = mode  # what was asked for now comes before what the log says
            if mode == "plan" and session.history.mode != mode:
                session.emit_with_first_prompt(
                    ModeChanged(mode)
                )  # it lasts until somebody agrees to a plan
        tell_mode(session)
        return session

    def _tell_unheard(self, engine: Engine, session: Session) -> None:
        """A program that did not carry the session does not know it; the others are told."""
        if self._stranger:
            complain(_STRANGER.format(one_line(self._stranger)))
        history, name = session.history, getattr(engine.parts.agent, "name", "")
        if name.startswith("acp:") and len(history.transcript) and name not in history.attached:
            complain(_UNHEARD.format(name), "Tell it what it has to know, or choose --agent loop.")


def to_limits(settings: Settings) -> Limits:
    """The limits that were set; the engine's own for the rest."""
    given = settings.limits
    plain = Limits()
    return Limits(
        given.steps or plain.steps,
        given.tool_calls or plain.tool_calls,
        given.seconds or plain.seconds,
        given.tokens or plain.tokens,
        given.money or plain.money,
        session_tokens=given.session_tokens or 0,
        session_money=given.session_money or 0.0,
        day_tokens=given.day_tokens or 0,
        day_money=given.day_money or 0.0,
    )


def _earlier(folder: SessionFolder, flags: dict[str, Any]) -> SessionSummary | None:
    if flags.get("resume") is not None:
        return find_session(folder, flags["resume"])
    if not flags.get("go_on"):
        return None
    return newest_in(folder, flags.get("workspace") or _here())


def _workspace(earlier: SessionSummary | None, flags: dict[str, Any]) -> Path:
    """The folder that was named, else the session's own, else the current one."""
    if flags.get("workspace"):
        return Path(flags["workspace"])
    if earlier is not None and earlier.workspace and Path(earlier.workspace).is_dir():
        return Path(earlier.workspace)
    return _here()


def _rules(workspace: Path, given: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules that hold there, and those of the flags. Raise `ConfigError`."""
    said = tuple(parse_rule(text, "--rule") for text in given)
    if not any(map(os.path.lexists, (policy_file(os.environ), workspace / _PROJECT_RULES))):
        return said
    from bridle.config.folder import load_rules  # it reads YAML, and most people have no rules

    config = load_rules(workspace)
    for note in config.notes:
        complain(*note)
    return config.items + said


def _learn(words: str, by: str, root: str) -> None:
    """A rule that was made of an answer is the person's own from now on, or they are told why not.

    It is for the workspace that the question came from, and holds for this session in any case.
    """
    from datetime import datetime

    from bridle.cli.user_input import user_name
    from bridle.config.policy import add_rule

    today = datetime.now().astimezone().date()
    try:
        who = user_name() if by in ("", "me", "approver") else by
        note = f"from an answer by {who}, {today}"
        add_rule(policy_file(os.environ), words, note, root)
    except ConfigError as error:
        said = f"the rule holds for this session, but was not written: {error.message}"
        complain(said, error.hint)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise click.UsageError("the current folder is gone\nName one with --workspace.") from None


def is_interactive() -> bool:
    """Is there a person who can be asked?"""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())
