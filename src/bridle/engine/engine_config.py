"""What the sessions of one engine share. A value that is put together elsewhere."""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from bridle.engine.budget import Limits
from bridle.engine.redaction import Redactor
from bridle.events import ApprovalAsked
from bridle.policy import Mode, Rule
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.session import Answer
from bridle.protocols.store import Day, Store
from bridle.protocols.tool import Files, Tool, ToolSource

if TYPE_CHECKING:
    from bridle.engine.gate import Confinement
    from bridle.engine.session import Session
    from bridle.engine.subagents import Parent
    from bridle.protocols.agent import BaseAgent
    from bridle.protocols.hooks import Hooks, UndoStore
    from bridle.protocols.machine import Machine

Approver = Callable[[ApprovalAsked], Awaitable[Answer | bool]]
OnAsk = Literal["wait", "deny", "park"]
Back = Callable[[dict[str, Any]], dict[str, Any]]
Translate = Callable[[str, dict[str, Any], str], tuple[str, dict[str, Any], Back] | None]


class PolicyEngine(Protocol):
    """A person's own policy. It is asked after the floor and the deny rules, and lifts neither."""

    async def evaluate(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        """A `Decision`, or one of the words allowed, requires_approval, denied."""
        ...


class EngineConfig(Struct):
    """Provider, tools, store, workspace; rules and who is asked; limits and settings.

    `on_ask` says what an ask does when there is no approver: wait for `session.answer`, deny, or
    park the turn, which goes on from the log when the answers are there, in whichever process.
    An approver is asked one question at a time, and may say yes with True instead of an `Answer`.
    `ask_seconds` is how long a question stays open before it counts as a no. `secrets` are handed
    in to be taken out of everything that is said; they end up in the `redactor` alone, with the
    person's own patterns (`redact`) and, unless `redact_tokens` is off, what looks like a token.
    `day` keeps the account for the limits of a day. `machine` is what commands and paths are judged
    by, `judge` the person's own policy engine, which has `judge_seconds` before it counts as a no;
    `hooks` and `undo` stand around every effect.
    `sandbox` is the level that commands would run at (empty: none), or what knows it. A yes for
    the session ends after `ask_grant_seconds`; a rule that a person made of one goes to `learn`,
    with who it was.
    `agent` carries the turns in the place of our own loop; `agents` makes one of its name, for
    child sessions (None: our loop). `translate` reads the names and arguments of well-known agents'
    tools as ours, for a root, and tells the way back for arguments. `sources` have tools that come
    and go. `parent` is what a child session has above it; `begin` opens one, and is the engine's to
    say.
    """

    provider: Provider
    tools: Mapping[str, Tool]
    store: Store
    workspace: Files
    rules: tuple[Rule, ...] = ()
    mode: Mode = "ask"
    approver: Approver | None = None
    on_ask: OnAsk = "deny"
    ask_seconds: float = 86_400.0
    ask_grant_seconds: float = 28_800.0
    limits: Limits = Limits()
    config: RequestConfig = RequestConfig()
    system: str = ""
    deps: Any = None
    small: Provider | None = None
    face: str = "library"
    version: str = ""
    secrets: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    redact_tokens: bool = True
    day: Day | None = None
    machine: "Machine | None" = None
    judge: PolicyEngine | None = None
    judge_seconds: float = 10.0
    hooks: "Hooks | None" = None
    undo: "UndoStore | None" = None
    sandbox: "str | Confinement" = ""
    learn: Callable[[str, str], None] | None = None
    agent: "BaseAgent | None" = None
    agents: "Callable[[str], BaseAgent | None] | None" = None
    translate: Translate | None = None
    sources: "tuple[ToolSource, ...]" = ()
    parent: "Parent | None" = None
    begin: "Callable[[EngineConfig], Session] | None" = None
    redactor: Redactor | None = None
    offered: tuple[Tool, ...] = ()

    def __post_init__(self) -> None:
        self.offered = tuple(self.tools.values())
        self.redactor = Redactor(self.secrets, self.redact, shapes=self.redact_tokens) or None
        self.secrets = ()  # a value that is shown, or looked into, says none of them

    def changed(self, **given: Any) -> "EngineConfig":
        """The same for one session, but for these: provider, tools, system, config."""
        parts = copy(self)
        if (tools := given.pop("tools", None)) is not None:
            parts.offered = tuple(tools)
            parts.tools = {tool.name: tool for tool in parts.offered}
        for name, value in given.items():
            setattr(parts, name, value)
        return parts
